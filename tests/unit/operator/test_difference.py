from typing import Any

import pytest

from hypic_operator.core import difference

WANTED = {
    "metadata": {"name": "a", "labels": {"x": "1"}},
    "spec": {
        "replicas": 2,
        "args": ["--a", "1"],
        "containers": [{"name": "c", "env": [{"name": "E", "value": ""}]}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}},
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}],
        "rules": [{"verbs": ["get"]}],
        "note": None,
    },
}
LIVE = {
    "metadata": {"name": "a", "uid": "u", "labels": {"x": "1", "others": "2"}},
    "spec": {
        "replicas": 2,
        "args": ["--a", "1"],
        "containers": [
            {"name": "injected"},
            {"name": "c", "env": [{"name": "E"}], "terminationMessagePath": "/dev/x"},
        ],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        "rules": [{"verbs": ["get"]}],
    },
}


def _changed(path: str, value: Any) -> dict[str, Any]:
    live: dict[str, Any] = {**LIVE, "spec": {**LIVE["spec"], path: value}}
    return live


def test_what_others_add_and_what_the_server_fills_in_does_not_matter() -> None:
    assert difference.settled(LIVE, WANTED)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("replicas", 3),
        ("args", ["--a"]),
        ("args", ["--a", "2"]),
        ("args", "--a 1"),
        ("containers", [{"name": "injected"}]),
        ("containers", [{"name": "c", "env": "E"}]),
        ("resources", {"limits": {"cpu": "2", "memory": "1Gi"}}),
        ("resources", {"limits": {"cpu": "many", "memory": "1Gi"}}),
        ("resources", {"limits": {"cpu": "1Xi", "memory": "1Gi"}}),
        ("resources", "none"),
        ("volumes", [{"name": "v", "emptyDir": {"sizeLimit": "2Gi"}}]),
        ("rules", [{"verbs": ["get"]}, {"verbs": ["delete"]}]),
        ("rules", [{"verbs": ["get", "list"]}]),
    ],
)
def test_a_change_of_our_fields_is_seen(field: str, value: Any) -> None:
    assert not difference.settled(_changed(field, value), WANTED)


def test_long_lists_are_compared_in_one_pass() -> None:
    env = [{"name": f"NOTE_{n}", "value": str(n)} for n in range(20_000)]
    assert difference.settled({"env": env[::-1]}, {"env": env})
    assert not difference.settled({"env": env[1:]}, {"env": env})


def test_a_field_that_is_gone_is_seen() -> None:
    assert not difference.settled({"metadata": LIVE["metadata"]}, WANTED)


def test_a_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    assert difference.fingerprint({"a": 1, "b": 2}) == difference.fingerprint({"b": 2, "a": 1})
    assert len(difference.fingerprint({})) == 12


def test_a_field_that_is_not_wanted_any_more_is_seen_by_the_fingerprint() -> None:
    before = difference.signed({"metadata": {"name": "a"}, "spec": {"x": 1, "y": 2}})
    after = difference.signed({"metadata": {"name": "a"}, "spec": {"x": 1}})
    assert not difference.settled(before, after)
    assert not difference.same_fingerprint(before, after)
    assert difference.same_fingerprint(after, after)
    assert not difference.same_fingerprint({"metadata": {}}, after)


def test_signing_keeps_other_annotations() -> None:
    signed = difference.signed({"metadata": {"name": "a", "annotations": {"k": "v"}}})
    assert signed["metadata"]["annotations"]["k"] == "v"
