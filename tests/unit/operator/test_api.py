import pytest
from pydantic import ValidationError

from hypic_operator.core.api import HypicCluster

from ...support import resources


def test_a_resource_is_read_with_its_defaults() -> None:
    spec = resources.cluster().spec
    assert spec.pic.mode == "transition_rope_recompute"
    assert spec.prefill.replicas == 1
    assert spec.router.policy == "segment"
    assert spec.model.source.pvc is not None
    assert spec.model.source.pvc.claim_name == "models"


def test_a_number_and_its_text_are_the_same_seam() -> None:
    assert resources.cluster(pic={"seam": 8}) == resources.cluster(pic={"seam": "8"})


def test_a_resource_does_not_change() -> None:
    with pytest.raises(ValidationError):
        resources.cluster().spec.prefill.replicas = 3  # type: ignore[misc]


def test_unknown_fields_are_somebody_elses() -> None:
    assert resources.cluster(later={"field": 1}) == resources.cluster()


def test_a_resource_that_is_being_deleted_says_so() -> None:
    found = resources.cluster()
    assert not found.deleting
    leaving = {**found.metadata.model_dump(), "deletion_timestamp": "2026-01-01T00:00:00Z"}
    body = {"metadata": leaving, "spec": found.spec.model_dump()}
    assert HypicCluster.model_validate(body).deleting
