import pytest

from local.demo import install
from local.demo.kube import Kubectl
from local.errors import FailedError

REASON = "False ImagePullBackOff: no such image"


class Unready(Kubectl):
    """A cluster whose HypicCluster never gets ready."""

    def get(self, *_: str) -> dict[str, object]:
        kind, _, rest = REASON.partition(" ")
        reason, _, message = rest.partition(": ")
        ready = {"type": "Ready", "status": kind, "reason": reason, "message": message}
        return {"metadata": {"generation": 1}, "status": {"conditions": [ready]}}


def test_a_cluster_that_does_not_get_ready_is_given_up_with_its_own_reason(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "READY_WITHIN_S", 0.1)
    monkeypatch.setattr(install, "POLL_S", 0.01)
    with pytest.raises(FailedError, match=f"Ready {REASON}"):
        install.wait_until_ready(Unready(tmp_path, tmp_path, "n"))
