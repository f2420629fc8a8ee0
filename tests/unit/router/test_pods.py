import pytest

from hypic_router.core.pods import address, selector
from hypic_router.core.workers import Address, Role, State


def pod(metadata=None, **status):
    ready = [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": "p-0", "uid": "u", **(metadata or {})},
        "status": {"podIP": "10.0.0.7", "phase": "Running", "conditions": ready, **status},
    }


def test_a_ready_pod_is_an_engine():
    assert address(pod(), 30_000) == Address("p-0", "http://10.0.0.7:30000", "u")


def test_an_ipv6_address_is_written_with_brackets():
    at = address(pod(podIP="fd00::7"), 1)
    assert at is not None
    assert at.url == "http://[fd00::7]:1"


@pytest.mark.parametrize("status", [{"podIP": None}, {"phase": "Failed"}, {"phase": "Succeeded"}])
def test_a_pod_without_a_running_engine_is_none(status):
    assert address(pod(**status), 1) is None


@pytest.mark.parametrize(
    ("metadata", "status", "state", "reason"),
    [
        ({"deletionTimestamp": "t"}, {}, State.DRAINING, "terminating"),
        ({"annotations": {"serving.hypic.dev/drain": "t9"}}, {}, State.DRAINING, "until t9"),
        ({"annotations": {"serving.hypic.dev/drain": ""}}, {}, State.DRAINING, "drains"),
        ({"annotations": None}, {}, State.READY, ""),
        ({}, {"conditions": None}, State.UNREADY, "no Ready condition"),
        (
            {},
            {"conditions": [{"type": "Ready", "status": "False", "message": "probe"}]},
            State.UNREADY,
            "probe",
        ),
        ({}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, State.UNREADY, "not ready"),
    ],
)
def test_its_state_and_the_reason_are_told(metadata, status, state, reason):
    at = address(pod(metadata, **status), 1)
    assert at is not None
    assert at.state is state
    assert reason in at.reason


def test_a_prefill_pod_says_where_decode_finds_it_and_whom_it_fits():
    labels = {"serving.hypic.dev/role": "prefill", "serving.hypic.dev/revision": "r7"}
    at = address(pod({"labels": labels}), 30_000)
    assert at is not None
    assert (at.role, at.revision, at.bootstrap) == (Role.PREFILL, "r7", ("10.0.0.7", 8998))


def test_engines_of_every_role_are_selected():
    expected = "serving.hypic.dev/cluster=demo,serving.hypic.dev/role in (both,prefill,decode)"
    assert selector("demo") == expected
