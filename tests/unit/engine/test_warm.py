import pytest

from hypic_engine.contract.warm import Warm, warm
from hypic_engine.errors import RequestError

LIMITS = {"max_segments": 2, "separator": "<<SEP>>"}


def test_text_and_ids_may_stand_side_by_side():
    asked = warm({"segments": ["a text", [1, 2]], "salt": "s", "wait": False}, **LIMITS)
    assert asked == Warm(("a text", [1, 2]), "s", wait=False)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        (None, "body"),
        ({}, "segments"),
        ({"segments": []}, "segments"),
        ({"segments": "text"}, "segments"),
        ({"segments": ["a", "b", "c"]}, "at most 2"),
        ({"segments": ["a", ""]}, r"segments\[1\]: is empty"),
        ({"segments": [[]]}, r"segments\[0\]: is empty"),
        ({"segments": [[1, True]]}, r"segments\[0\]"),
        ({"segments": [[1, "2"]]}, r"segments\[0\]"),
        ({"segments": [5]}, r"segments\[0\]"),
        ({"segments": ["a<<SEP>>b"]}, "separator <<SEP>>"),
        ({"segments": ["a"], "salt": None}, "salt"),
        ({"segments": ["a"], "salt": "s" * 4097}, "4096"),
        ({"segments": ["a"], "wait": "no"}, "wait"),
        ({"segments": ["a"], "text": "a"}, "text: is unknown"),
    ],
)
def test_what_cannot_be_warmed_is_refused_with_the_field_and_its_limit(fields, named):
    with pytest.raises(RequestError, match=named):
        warm(fields, **LIMITS)
