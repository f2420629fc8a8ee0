import random

import pytest

from hypic_engine.plugin.spans import positions, repeated


@pytest.mark.parametrize("n_spans", [0, 1, 2, 500])
def test_positions_are_those_of_each_span_in_turn(n_spans):
    dice = random.Random(n_spans)
    starts = [dice.randrange(10_000) for _ in range(n_spans)]
    spans = [(start, start + dice.choice((0, 1, 3, 64))) for start in starts]
    wanted = [token for start, end in spans for token in range(start, end)]
    assert positions(spans).tolist() == wanted


def test_values_are_repeated_as_often_as_their_lengths_say():
    assert repeated([5, 0, 7], [2, 0, 3]).tolist() == [5, 5, 7, 7, 7]
