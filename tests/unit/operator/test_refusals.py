import pytest

from hypic_operator.core import refusals
from hypic_operator.core.refusals import Policy

from ...support import resources

ROUTER = "localhost/hypic/router:1"
HOST_MODEL = {"name": "m", "source": {"hostPath": {"path": "/m"}}}
HOST_VOLUME = {"template": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}


def _with_args(*arguments: str) -> dict[str, object]:
    return {"template": {"engine": {"extraArgs": list(arguments)}}}


def test_a_plain_spec_can_be_carried_out() -> None:
    assert refusals.refusal(resources.cluster(), resources.POLICY) is None


def test_a_model_of_the_node_needs_the_flag() -> None:
    cluster = resources.cluster(model=HOST_MODEL)
    found = refusals.refusal(cluster, resources.POLICY)
    assert found is not None
    assert (found.condition, found.reason) == ("ModelReady", "HostPathNotAllowed")
    allowed = Policy(ROUTER, "e", allow_host_path=True)
    assert refusals.refusal(cluster, allowed) is None


def test_a_volume_of_the_node_needs_the_flag() -> None:
    cluster = resources.cluster(prefill=HOST_VOLUME)
    found = refusals.refusal(cluster, resources.POLICY)
    assert found is not None
    assert "v is a hostPath" in found.message
    allowed = Policy(ROUTER, "e", allow_host_path=True)
    assert refusals.refusal(cluster, allowed) is None


def test_a_cache_of_the_node_needs_the_flag() -> None:
    source = {"huggingFace": {"repo": "a/b"}}
    cluster = resources.cluster(
        model={"name": "m", "source": source}, modelCache={"node": {"path": "/m"}}
    )
    found = refusals.refusal(cluster, resources.POLICY)
    assert found is not None
    assert (found.condition, found.reason) == ("ModelReady", "HostPathNotAllowed")
    assert "modelCache.node" in found.message
    assert "modelCache.pvc" in found.message
    assert refusals.refusal(cluster, Policy(ROUTER, "e", allow_host_path=True)) is None


def _with_volume(**volume: object) -> dict[str, object]:
    return {"template": {"volumes": [{"name": "v", **volume}]}}


@pytest.mark.parametrize(
    "volume",
    [{"nfs": {"server": "s"}}, {"iscsi": {}}, {"flexVolume": {}}, {"gcePersistentDisk": {}}],
)
def test_a_volume_that_no_restricted_pod_may_have_is_refused(volume: dict[str, object]) -> None:
    for policy in (resources.POLICY, Policy(ROUTER, "e", allow_host_path=True)):
        found = refusals.refusal(resources.cluster(prefill=_with_volume(**volume)), policy)
        assert found is not None
        assert found.reason == "VolumeNotAllowed"
        assert next(iter(volume)) in found.message


@pytest.mark.parametrize("kind", sorted(refusals.VOLUMES))
def test_every_volume_that_a_restricted_pod_may_have_is_the_users(kind: str) -> None:
    cluster = resources.cluster(prefill=_with_volume(**{kind: {}}))
    assert refusals.refusal(cluster, resources.POLICY) is None


def test_a_token_for_the_api_server_is_refused() -> None:
    sources = [{"configMap": {"name": "c"}}, {"serviceAccountToken": {"path": "token"}}]
    cluster = resources.cluster(prefill=_with_volume(projected={"sources": sources}))
    found = refusals.refusal(cluster, resources.POLICY)
    assert found is not None
    assert found.reason == "TokenNotAllowed"
    assert "serviceAccountToken" in found.message


@pytest.mark.parametrize("projected", [None, "x", [], {"sources": "x"}, {"sources": [None]}])
def test_a_volume_of_any_form_ends_in_no_exception(projected: object) -> None:
    cluster = resources.cluster(prefill=_with_volume(projected=projected))
    assert refusals.refusal(cluster, resources.POLICY) is None


def test_each_role_is_looked_at_and_named() -> None:
    cluster = resources.cluster(decode=_with_args("--port"))
    found = refusals.refusal(cluster, resources.POLICY)
    assert found is not None
    assert found.condition == "DecodeReady"
    assert found.message.startswith("decode.template.engine.extraArgs: --port")


def test_somebody_must_name_the_engines_image() -> None:
    found = refusals.refusal(resources.cluster(), Policy(ROUTER))
    assert found is not None
    assert found.reason == "NoEngineImage"
    named = resources.cluster(prefill={"template": {"engine": {"image": "e:1"}}})
    assert refusals.refusal(named, Policy(ROUTER)) is None


@pytest.mark.parametrize(
    "argument", ["--port", "--port=1", "--por", "--pic-mode", "--tp", "--model-path", "--pic"]
)
def test_a_flag_of_the_operator_is_named(argument: str) -> None:
    found = refusals.refusal(resources.cluster(prefill=_with_args(argument)), resources.POLICY)
    assert found is not None
    assert found.reason == "OwnedArgument"
    assert argument.split("=", maxsplit=1)[0] in found.message


@pytest.mark.parametrize("argument", ["--api-key", "--api-key=k", "--admin-api-key", "--api"])
def test_a_key_that_probes_and_routers_do_not_send_is_refused(argument: str) -> None:
    found = refusals.refusal(resources.cluster(prefill=_with_args(argument)), resources.POLICY)
    assert found is not None
    assert found.reason == "KeyNotSupported"
    assert argument.split("=", maxsplit=1)[0] in found.message
    assert "=k" not in found.message
    assert "gateway" in found.message


@pytest.mark.parametrize(
    "argument", ["--max-total-tokens", "16384", "-h", "--", "port", "--pic-max-bytes=1"]
)
def test_other_arguments_are_the_users(argument: str) -> None:
    cluster = resources.cluster(prefill=_with_args(argument))
    assert refusals.refusal(cluster, resources.POLICY) is None
