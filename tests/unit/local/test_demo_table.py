from dataclasses import replace

import pytest

from local.demo.table import Row, Verdict, difference, table, verdict

ROW = Row(
    order="AB",
    n_document_tokens=1000,
    n_cached_tokens=984,
    first_token_s=0.254,
    engine="demo-both-0",
    difference="",
)
COLD = replace(ROW, n_cached_tokens=0, first_token_s=2.5)


def test_the_last_line_counts_tokens_after_the_first_order_and_answers_of_all():
    found = verdict([COLD, ROW, ROW])
    assert found.ok
    assert found.line == (
        "demo: ok, cached 1968 of 2000 document tokens after the first order, 3 of 3 answers equal"
    )


def test_one_unequal_answer_fails_the_demo():
    found = verdict([COLD, ROW, replace(ROW, difference="differs from token 2")])
    assert not found.ok
    assert found.line.startswith("demo: failed, cached 1968 of 2000 ")
    assert found.line.endswith("2 of 3 answers equal")


@pytest.mark.parametrize(("n_cached", "ok"), [(900, True), (899, False)])
def test_nine_tenths_of_the_document_tokens_must_be_cached(n_cached, ok):
    assert verdict([COLD, replace(ROW, n_cached_tokens=n_cached)]).ok is ok


def test_nothing_asked_is_no_success():
    assert not verdict([]).ok
    assert not verdict([COLD]).ok
    assert not Verdict(0, 0, 0, 0).ok


def test_the_table_shows_each_row_under_its_headings():
    lines = table([COLD, ROW]).splitlines()
    assert lines[0].split("  ")[1] == "order"
    assert "0 of 1000 (0%)" in lines[1]
    for word in ("A B", "984 of 1000 (98%)", "0.25 s", "demo-both-0", "equal"):
        assert word in lines[2]
    assert lines[1].index("equal") == lines[2].index("equal")


def test_equal_tokens_have_no_difference():
    assert difference([1, 2], [1, 2], n_cached_when_empty=0) == ""


@pytest.mark.parametrize(
    ("ids", "empty_ids", "token"),
    [([1, 2], [1, 3], 2), ([5], [1], 1), ([1, 2], [1], 2), ([], [1], 1)],
)
def test_a_difference_names_the_first_token_that_differs(ids, empty_ids, token):
    found = difference(ids, empty_ids, n_cached_when_empty=0)
    assert found == f"differs from token {token}"


def test_a_cache_that_was_not_empty_is_no_comparison():
    assert "not empty" in difference([1], [1], n_cached_when_empty=7)
