"""Story: a wrong field is refused by the API server, which says what is wrong."""

import pytest

from local.errors import FailedError

from .world import manifest

PVC = {"claimName": "hypic-models"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"pic": {"mode": "fast"}}, "transition_rope_recompute"),
        ({"pic": {"separator": ""}}, "spec.pic.separator"),
        ({"pic": {"seam": "-1"}}, "seam: 0, a part above 0 up to 1"),
        ({"prefill": {"replicas": 0}}, "greater than or equal to 1"),
        ({"router": {"policy": "random"}}, "least_load"),
        ({"drain": {"timeoutSeconds": "soon"}}, "spec.drain.timeoutSeconds"),
        ({"decode": {"replicas": -1}}, "spec.decode.replicas"),
        (
            {"model": {"name": "m", "source": {}}},
            "exactly one of huggingFace, pvc, image, hostPath",
        ),
        ({"model": {"name": "m", "source": {"pvc": PVC | {"path": "../x"}}}}, "without .."),
        ({"model": {"source": {"pvc": PVC}}}, "spec.model.name"),
        ({"prefil": {"replicas": 1}}, 'unknown field "spec.prefil"'),
    ],
)
def test_a_wrong_field_is_refused_by_name(spec, words, spare_kubectl):
    with pytest.raises(FailedError, match=r"(?s).*") as refused:
        spare_kubectl.run(
            *("apply", "--dry-run=server", "--validate=strict", "-f", "-"),
            text_in=manifest("wrong", **spec),
        )
    assert words in str(refused.value)


def test_every_field_is_explained(spare_kubectl):
    explained = spare_kubectl.run("explain", "hypiccluster.spec", "--recursive=false")
    for field in ("model", "pic", "prefill", "router", "drain"):
        assert field in explained
    assert "<no description>" not in explained
