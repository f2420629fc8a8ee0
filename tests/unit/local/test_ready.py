from typing import Any

import pytest

from local.cluster.ready import ready_since

SAID_AT_S = 1795953600  # 2026-11-29T12:00:00Z


def node(status: str, kind: str = "Ready") -> dict[str, Any]:
    condition = {"type": kind, "status": status, "lastHeartbeatTime": "2026-11-29T12:00:00Z"}
    return {"status": {"conditions": [condition]}}


def test_ready_said_after_the_start_counts() -> None:
    assert ready_since(node("True"), SAID_AT_S)
    assert ready_since(node("True"), SAID_AT_S + 0.9)


def test_ready_said_before_the_start_does_not() -> None:
    assert not ready_since(node("True"), SAID_AT_S + 1.0)


@pytest.mark.parametrize("seen", [None, {}, node("False"), node("Unknown"), node("True", "Disk")])
def test_nothing_else_is_ready(seen: dict[str, Any] | None) -> None:
    assert not ready_since(seen, 0.0)
