"""What an answer tells about its prompt, alone and for a batch."""

from hypic_engine.contract.details import Details, of_batch

ONE = Details(found=50, reused=42, recomputed=8, moved=90, hit=1, filled=2, fill_ms=7.5)
OTHER = Details(reused=5, radix=5, in_place=1, fill_ms=1.0, assemble_ms=3.0)


def test_details_are_sent_with_their_segments_together():
    assert ONE.to_json() == {
        "found": 50,
        "reused": 42,
        "recomputed": 8,
        "moved": 90,
        "radix": 0,
        "fill_ms": 7.5,
        "assemble_ms": 0.0,
        "segments": {"hit": 1, "filled": 2, "in_place": 0},
    }


def test_a_batch_adds_its_counts_and_waits_for_its_slowest():
    together = of_batch([ONE.to_json(), OTHER.to_json()])
    assert (together["reused"], together["radix"], together["moved"]) == (47, 5, 90)
    assert together["segments"] == {"hit": 1, "filled": 2, "in_place": 1}
    assert (together["fill_ms"], together["assemble_ms"]) == (7.5, 3.0)


def test_a_batch_of_one_says_what_its_prompt_says():
    assert of_batch([ONE.to_json()]) == ONE.to_json()
