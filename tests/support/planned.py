"""What the operator would do now, from its pure parts alone."""

from collections.abc import Mapping
from datetime import UTC, datetime

from hypic_operator.core import desired, drain, plan
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.drain import Heard
from hypic_operator.core.observed import Observed
from hypic_operator.core.plan import Plan
from hypic_operator.core.refusals import Refusal

from . import resources

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def planned(
    cluster: HypicCluster,
    observed: Observed,
    refusal: Refusal | None = None,
    *,
    heard: Mapping[str, Heard] | None = None,
    now: datetime = NOW,
) -> Plan:
    """The plan for what runs.

    Args:
        cluster: the resource.
        observed: what runs.
        refusal: what its spec must change.
        heard: what was heard about pods that go, by their names.
        now: the time.
    """
    wanted = desired.children(cluster, resources.POLICY, observed)
    where = plan.where(cluster, observed, refusal)
    timeout_s = cluster.spec.drain.timeout_seconds
    drains = drain.drains(observed, where, heard or {}, timeout_s=timeout_s, now=now)
    return plan.plan(observed, wanted, refusal, where, drains)
