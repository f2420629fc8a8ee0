import pytest

from hypic_router.core.caches.pressure import Pressure, after_eviction

HELD = {"one": 6_000, "two": 4_000}


def test_an_engine_with_room_has_no_pressure():
    assert Pressure().of("one") == 0.0
    pressure = after_eviction(Pressure(), "one", 500, held_tokens=HELD)
    assert (pressure.of("one"), pressure.of("two")) == (2.0, 0.0)
    assert pressure.of("unheard of") == 0.0


def test_engines_that_throw_out_the_same_have_the_same_pressure():
    pressure = Pressure()
    for turn in range(200):
        pressure = after_eviction(pressure, ("one", "two")[turn % 2], 100, held_tokens=HELD)
    assert pressure.of("one") == pytest.approx(1.0, abs=0.02)
    assert pressure.of("two") == pytest.approx(1.0, abs=0.02)


def test_the_past_is_forgotten_once_all_memory_was_filled_anew():
    pressure = after_eviction(Pressure(), "one", 1_000, held_tokens=HELD)
    for _ in range(300):
        pressure = after_eviction(pressure, "two", 100, held_tokens=HELD)
    assert pressure.of("one") < 0.02


def test_an_engine_that_left_counts_no_longer():
    pressure = after_eviction(Pressure(), "one", 1_000, held_tokens=HELD)
    pressure = after_eviction(pressure, "two", 1_000, held_tokens={"two": 4_000})
    assert pressure.of("one") == 0.0
    assert pressure.of("two") == 1.0
