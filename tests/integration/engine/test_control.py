"""What the engine tells about its cache, over HTTP."""

import json
import threading
import urllib.request
from contextlib import contextmanager

from hypic_engine.contract import events, segments

from ...support.waiting import eventually
from .prompts import documents, joined

HEAD, *DOCUMENTS = documents(95, 30, 60, 70)


@contextmanager
def following(server, query=""):
    """Lines of ``/pic/events`` as they come."""
    url = f"{server.url}/pic/events{query}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        yield (events.decode(line) for line in answer)


def held(server) -> list[events.Item]:
    items, cursor = [], None
    while True:
        suffix = "" if cursor is None else f"?cursor={cursor}"
        with urllib.request.urlopen(f"{server.url}/pic/segments{suffix}", timeout=30) as answer:
            page = events.decode_page(answer.read())
        items += page.items
        if page.next is None:
            return items
        cursor = page.next


def test_a_ready_engine_says_so_and_describes_itself(engine):
    assert engine.get("/pic/ready") == {"ready": True}
    info = engine.get("/pic/info")
    assert info["settings"]["mode"] == "transition_rope_recompute"
    assert info["settings"]["separator"] == "<<PIC_SEP>>"
    assert "control_path" not in info["settings"]
    assert info["engine"]["kv_tokens"] == 16_384


def test_segments_are_listed_under_the_digests_of_their_text(engine):
    engine.flush()
    engine.generate(joined(HEAD, *DOCUMENTS, "question"))
    by_digest = {digest: item for item in held(engine) for digest in item.digests}
    for piece in (HEAD, *DOCUMENTS):
        item = by_digest[segments.text_digest(piece, model=str(engine.model))]
        assert item.n_tokens == len(piece)
        assert item.bytes > 0


def test_ids_and_salts_have_digests_of_their_own(engine):
    engine.flush()
    ids = list((DOCUMENTS[0] + "question").encode())
    engine.generate(ids, pic={"segment_ends": [len(DOCUMENTS[0])]}, extra_key="tenant")
    (item,) = held(engine)
    named = {"model": str(engine.model), "salt": "tenant"}
    assert item.digests == (segments.ids_digest(ids[: len(DOCUMENTS[0])], **named),)
    engine.generate(joined(DOCUMENTS[0], "question"), extra_key="tenant")
    (item,) = held(engine)
    assert segments.text_digest(DOCUMENTS[0], **named) in item.digests


def test_what_is_stored_and_removed_is_told_in_order(small):
    small.flush()
    with following(small) as lines:
        hello = next(lines)
        assert isinstance(hello, events.Hello)
        small.generate(joined(DOCUMENTS[0], "question"))
        stored = next(line for line in lines if isinstance(line, events.Stored))
        assert (stored.seq, stored.item.n_tokens) == (hello.seq + 1, len(DOCUMENTS[0]))
        for seed in range(96, 104):
            small.generate(joined(*documents(seed, 200, 200), "question"))
        removed = next(line for line in lines if isinstance(line, events.Removed))
    assert removed.seq > stored.seq


def test_a_follower_resumes_where_it_was(small):
    small.flush()
    small.generate(joined(HEAD, *DOCUMENTS, "question"))
    with following(small) as lines:
        epoch, seq = (hello := next(lines)).epoch, hello.seq
    assert seq == 3
    with following(small, f"?epoch={epoch}&after=1") as lines:
        assert [next(lines).seq for _ in range(3)] == [3, 2, 3]


def test_another_epoch_or_a_number_of_the_future_is_a_gap(small):
    for query in ("?epoch=another&after=0", "?after=1000000", "?after=-1"):
        with following(small, query) as lines:
            assert isinstance(next(lines), events.Hello)
            assert isinstance(next(lines), events.Gap)


def test_a_flush_begins_an_epoch_and_says_so_to_followers(small):
    small.generate(joined(HEAD, "question"))
    with following(small) as lines:
        epoch = next(lines).epoch
        small.flush()
        assert isinstance(next(lines), events.Gap)
    with following(small) as lines:
        assert next(lines).epoch != epoch
    assert held(small) == []


def test_a_silent_engine_says_that_it_is_alive(engine):
    with following(engine) as lines:
        next(lines)
        assert isinstance(next(lines), events.Alive)  # the socket would time out after 30 s


def test_new_weights_leave_no_segment_of_the_old_ones(small):
    small.flush()
    asked = joined(HEAD, *DOCUMENTS, "question")
    small.generate(asked)
    assert small.generate(asked)["meta_info"]["cached_tokens"] > 0
    for flush in (True, False):
        small.generate(asked)
        body = {"model_path": str(small.model), "flush_cache": flush}
        status, answer = small.post("/update_weights_from_disk", body)
        assert (status, answer["success"]) == (200, True)
        assert held(small) == []
        assert small.generate(asked)["meta_info"]["cached_tokens"] == 0


def test_weights_that_are_not_there_are_refused_and_the_old_ones_serve_on(small, tmp_path):
    small.flush()
    asked = joined(HEAD, *DOCUMENTS, "question")
    before = small.generate(asked)["text"]
    (tmp_path / "config.json").write_text((small.model / "config.json").read_text())
    status, answer = small.post("/update_weights_from_disk", {"model_path": str(tmp_path)})
    assert (status, answer["success"]) == (400, False)
    assert small.generate(asked)["text"] == before


def test_the_engine_stays_ready_through_one_long_batch(engine):
    engine.flush()
    answers = []
    body = {"text": documents(99, 12_000)[0], "sampling_params": {"max_new_tokens": 1}}
    thread = threading.Thread(target=lambda: answers.append(engine.post("/generate", body)))
    thread.start()
    eventually(lambda: engine.info["computing"], within_s=20)
    while thread.is_alive():
        assert engine.get("/pic/ready") == {"ready": True}
    assert answers[0][0] == 200
    assert json.dumps(answers[0][1])
