from hypic_engine.core.admission import Need, Room, Verdict, never_fits, verdict


def test_a_prompt_goes_when_all_it_needs_is_there():
    assert verdict(Need(100, 2), Room(100, 2)) is Verdict.GO


def test_a_prompt_waits_for_tokens_operators_and_what_others_reserved():
    assert verdict(Need(101, 2), Room(100, 2)) is Verdict.WAIT
    assert verdict(Need(100, 3), Room(100, 2)) is Verdict.WAIT
    assert verdict(Need(100, 2), Room(100, 2, n_reserved_tokens=1)) is Verdict.WAIT


def test_what_can_never_fit_is_told_with_both_numbers():
    assert never_fits(Need(100, 2), Room(100, 2)) is None
    assert "needs 101 tokens" in str(never_fits(Need(101, 2), Room(100, 2)))
    assert "has 100" in str(never_fits(Need(101, 2), Room(100, 2)))
    assert "3 segments" in str(never_fits(Need(100, 3), Room(100, 2)))
