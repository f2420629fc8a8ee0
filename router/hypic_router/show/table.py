"""The fleet as a table of plain values, for the operator and other programs."""

from ..core.workers import Fleet, State


def published(fleet: Fleet, now_s: float) -> list[dict[str, object]]:
    """The fleet for people and for the operator, one object an engine."""
    return [
        {
            "name": worker.at.name,
            "url": worker.at.url,
            "role": worker.at.role.value,
            "revision": worker.at.revision,
            "state": worker.state.value,
            "draining": worker.state is State.DRAINING,
            "reason": worker.reason,
            "requests": worker.load.requests,
            "work_tokens": round(worker.load.tokens),
            "segments": len(worker.residency.keys),
            "directory_full": worker.residency.full,
            "epoch": worker.residency.epoch,
            "seq": worker.residency.seq,
            "breaker": worker.breaker.state(now_s),
        }
        for worker in fleet.workers
    ]
