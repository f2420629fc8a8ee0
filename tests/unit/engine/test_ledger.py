from hypic_engine.contract import events
from hypic_engine.core.ledger import Ledger


def item(key: str, *digests: str) -> events.Item:
    return events.Item(key, digests, n_tokens=10, bytes=100)


def test_events_are_numbered_from_one_and_told_in_order():
    ledger = Ledger("e")
    ledger.stored(item("a"))
    ledger.alias("a", "d")
    ledger.removed("a")
    assert ledger.after("e", 0) == [
        events.Stored(1, item("a")),
        events.Alias(2, item("a", "d")),
        events.Removed(3, "a"),
    ]
    assert ledger.after("e", 2) == [events.Removed(3, "a")]
    assert ledger.after("e", 3) == []
    assert ledger.position() == ("e", 3)


def test_what_is_not_held_is_neither_aliased_nor_removed():
    ledger = Ledger("e")
    ledger.stored(item("a", "d"))
    ledger.alias("a", "d")
    ledger.alias("b", "d")
    ledger.removed("b")
    assert ledger.position() == ("e", 1)


def test_an_older_event_than_the_ring_holds_is_a_gap():
    ledger = Ledger("e", capacity=2)
    for key in "abc":
        ledger.stored(item(key))
    assert ledger.after("e", 0) is None
    assert ledger.after("e", 1) == [events.Stored(2, item("b")), events.Stored(3, item("c"))]


def test_another_epoch_or_a_number_from_the_future_is_a_gap():
    ledger = Ledger("e")
    assert ledger.after("f", 0) is None
    assert ledger.after("e", 1) is None


def test_a_new_epoch_begins_empty():
    ledger = Ledger("e")
    ledger.stored(item("a"))
    ledger.restarted("f")
    assert ledger.epoch == "f"
    assert ledger.after("e", 1) is None
    assert ledger.after("f", 0) == []
    assert ledger.page(None).items == ()


def test_pages_cover_what_is_held_once():
    ledger = Ledger("e")
    for key in "dbca":
        ledger.stored(item(key))
    first = ledger.page(None, limit=3)
    second = ledger.page(first.next, limit=3)
    assert [i.key for i in (*first.items, *second.items)] == list("abcd")
    assert (first.seq, second.next) == (4, None)


def test_listeners_hear_of_every_change():
    heard = []
    ledger = Ledger("e")
    ledger.listen(lambda: heard.append(ledger.position()))
    ledger.stored(item("a"))
    ledger.removed("a")
    ledger.restarted("f")
    assert heard == [("e", 1), ("e", 2), ("f", 0)]
