"""What a request may say about segments is read alike by router and engine."""

import pytest

from hypic_engine.contract.request import SegmentOptions, options
from hypic_engine.errors import RequestError


def read(pic, limit=4):
    return options({"pic": pic}, max_segments=limit)


@pytest.mark.parametrize("custom_params", [None, {}, {"other": 1}, {"pic": None}, "text", 3])
def test_a_request_that_says_nothing_gets_the_defaults(custom_params):
    assert options(custom_params, max_segments=4) == SegmentOptions()


def test_everything_that_is_said_is_read():
    read_back = read({"enabled": False, "segment_ends": [3, 9], "recompute": [1]})
    assert read_back == SegmentOptions(False, (3, 9), frozenset({1}))
    assert read_back.recomputes(1)
    assert not read_back.recomputes(0)


def test_all_segments_can_be_computed_in_place():
    assert all(read({"recompute": "all"}).recomputes(i) for i in range(9))


@pytest.mark.parametrize(
    ("pic", "words"),
    [
        ([], "custom_params.pic: must be an object"),
        ({"segment_end": [1]}, "unknown field 'segment_end'"),
        ({"enabled": 1}, "custom_params.pic.enabled: must be true or false"),
        ({"segment_ends": 3}, "custom_params.pic.segment_ends: must be a list"),
        ({"segment_ends": [1, -2]}, "integers that are 0 or more"),
        ({"segment_ends": [True]}, "integers that are 0 or more"),
        ({"segment_ends": [2, 2]}, "strictly increasing"),
        ({"segment_ends": [1, 2, 3, 4, 5]}, "holds 5 segments; at most 4"),
        ({"recompute": "some"}, "custom_params.pic.recompute: must be a list"),
    ],
)
def test_a_wrong_wish_is_refused_by_the_name_of_its_field(pic, words):
    with pytest.raises(RequestError, match=words):
        read(pic)
