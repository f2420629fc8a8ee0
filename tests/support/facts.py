"""What a status is made of, for clusters and pods that a test makes up."""

from datetime import UTC, datetime
from typing import Any

from hypic_operator.core import refusals, status
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.desired import engine
from hypic_operator.core.facts import Condition, Facts
from hypic_operator.core.observed import Observed
from hypic_operator.core.plan import Blocked
from hypic_operator.core.serving import Answer, Record

from . import resources
from .planned import planned

TOKEN = Answer(token=True, reason="TokenReceived", message="got one")
NONE = Answer(token=False, reason="NoAnswer", message="no answer")
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def facts(
    cluster: HypicCluster,
    observed: Observed,
    *,
    record: Record | None = None,
    blocked: Blocked | None = None,
    now: datetime = NOW,
) -> Facts:
    refusal = refusals.refusal(cluster, resources.POLICY)
    asked = record or Record().with_answer(TOKEN, now_s=1.0, ready=frozenset())
    plan = planned(cluster, observed, refusal)
    return Facts(cluster, observed, plan, refusal, asked, blocked, now=now)


def conditions(facts: Facts) -> dict[str, Condition]:
    return {item.type: item for item in status.conditions(facts)}


def whole(cluster: HypicCluster, **changed: Any) -> Observed:
    return Observed.of(cluster, *resources.snapshot(cluster, **changed))


def pods(cluster: HypicCluster, *statuses: Any) -> dict[str, Any]:
    name = f"{cluster.metadata.name}-both-{engine.revision(cluster)}"
    return {f"{name}-{n}": item for n, item in enumerate(statuses)}
