"""What a HypicCluster's status says, as lines to show; decides when it is ready.

Pure: takes the resource as the API server gives it.
"""

from collections.abc import Mapping
from typing import Any

Words = Mapping[str, str]


def words(resource: Mapping[str, Any]) -> Words:
    """For each condition its status, reason and message, in the operator's own words."""
    conditions = resource.get("status", {}).get("conditions", [])
    return {
        each["type"]: f"{each['status']} {each['reason']}: {each['message']}" for each in conditions
    }


def changes(before: Words, after: Words) -> list[str]:
    """A line for each condition that is new or says something else."""
    return [f"{name} {said}" for name, said in after.items() if before.get(name) != said]


def is_current(resource: Mapping[str, Any]) -> bool:
    """Whether the status is about the spec as it is now."""
    seen = resource.get("status", {}).get("observedGeneration")
    return bool(seen == resource["metadata"]["generation"])


def is_ready(resource: Mapping[str, Any]) -> bool:
    """Whether the operator has seen this spec, and a token came back."""
    return is_current(resource) and words(resource).get("Ready", "").startswith("True ")


def serving_pods(pods: Mapping[str, Any]) -> dict[str, str]:
    """Addresses by name of the pods that are ready and not leaving, in the names' order."""
    found = {}
    for pod in pods["items"]:
        conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", [])}
        leaving = "deletionTimestamp" in pod["metadata"]
        if conditions.get("Ready") == "True" and not leaving:
            found[pod["metadata"]["name"]] = pod["status"]["podIP"]
    return dict(sorted(found.items()))


def n_known(fleet: Mapping[str, Any], engine: str) -> int:
    """How many segments a router believes an engine to hold; 0 for an engine it does not know."""
    return sum(each["segments"] for each in fleet["engines"] if each["name"] == engine)
