import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_operator.core import names

from ...support import resources

LONG_ONE = "retrieval-assistant-for-the-northern-harbour-authority-eu-one"
LONG_TWO = "retrieval-assistant-for-the-northern-harbour-authority-eu-two"
ALLOWED = string.ascii_lowercase + string.digits + "-."


def test_a_plain_name_is_kept() -> None:
    assert names.base("demo") == "demo"
    assert names.base("a" * names.BASE_LIMIT) == "a" * names.BASE_LIMIT


@pytest.mark.parametrize("name", [LONG_ONE, "qwen3.5-35b.v2", "7b", "a" * (names.BASE_LIMIT + 1)])
def test_another_name_is_cut_and_keeps_apart_by_a_hash(name: str) -> None:
    assert names.base(name) != name
    assert len(names.base(name)) <= names.BASE_LIMIT


def test_long_names_that_begin_alike_stay_apart() -> None:
    assert names.base(LONG_ONE) != names.base(LONG_TWO)


def test_a_dot_and_a_dash_stay_apart() -> None:
    assert names.base("a.b") != names.base("a-b")


@given(
    st.text(ALLOWED, min_size=1, max_size=63).filter(
        lambda n: n[0] not in "-." and n[-1] not in "-."
    )
)
def test_every_derived_name_can_be_a_service_and_fits_a_label(name: str) -> None:
    cluster = resources.cluster(name)
    revision = "0" * names.REVISION_DIGITS
    derived = [
        names.service(cluster),
        names.engines(cluster, "prefill"),
        names.engine_account(cluster),
        names.router_access(cluster),
        f"{names.engine_set(cluster, 'prefill', revision)}-511",
        f"{names.engine_set(cluster, 'prefill', revision)}-0123456789",
    ]
    for found in derived:
        assert len(found) <= names.LABEL_LIMIT
        assert found[0] in string.ascii_lowercase
        assert found[-1] in string.ascii_lowercase + string.digits
        assert "." not in found


def test_the_owner_blocks_foreground_deletion_and_controls() -> None:
    owner = names.owner(resources.cluster(uid="u"))
    assert owner["uid"] == "u"
    assert owner["controller"] is True
    assert owner["blockOwnerDeletion"] is True


def test_a_childs_labels_name_its_cluster() -> None:
    labels = names.labels(resources.cluster("demo"), "router")
    assert names.owner_of(labels) == "demo"
    assert names.owner_of({}) is None


def test_the_url_is_inside_the_cluster() -> None:
    assert names.url(resources.cluster("demo", namespace="ai")) == "http://demo.ai.svc:80"
