"""Plain prompts keep the prefix hits that they have with segment caching off."""

import pytest

from .conftest import PIC, running
from .prompts import documents, joined

STRATEGIES = {
    "extra_buffer": ("--mamba-radix-cache-strategy", "extra_buffer"),
    "no_buffer": ("--mamba-radix-cache-strategy", "no_buffer", "--disable-overlap-schedule"),
}
HEAD, *DOCUMENTS = documents(200, 40, 120, 90)
SEGMENTS = joined(HEAD, *DOCUMENTS, "question")
N_TURNS = 6
N_CONVERSATIONS, N_AT_ONCE = 500, 20


@pytest.fixture(scope="module", params=STRATEGIES)
def pair(request, tiny, tmp_path_factory):
    """A stock server and one that caches segments, both with the same kind of prefix tree."""
    flags = (*STRATEGIES[request.param], "--max-running-requests", str(N_AT_ONCE))
    stock = running(tiny, tmp_path_factory, "--enable-cache-report", *flags)
    segments = running(tiny, tmp_path_factory, *PIC, *flags)
    yield next(stock), next(segments)
    for server in (stock, segments):
        next(server, None)


def hit(answer) -> tuple[list[int], int]:
    return answer["output_ids"], answer["meta_info"]["cached_tokens"]


def conversation(server, seed: int, *, between=lambda: None) -> list[tuple[list[int], int]]:
    """Turns that each begin with all that was said, as a chat does."""
    said, heard = "You are brief. ", []
    for turn in documents(seed, *[70] * N_TURNS):
        said += turn
        answer = server.generate(said, n_tokens=9)
        heard.append(hit(answer))
        said += answer["text"]
        between()
    return heard


def batch(server, prompts: list[str], n_tokens: int):
    sampling = {"temperature": 0, "max_new_tokens": n_tokens}
    status, answers = server.post("/generate", {"text": prompts, "sampling_params": sampling})
    assert status == 200, answers
    return answers


def chats(server) -> list[tuple[list[int], int]]:
    """Many short conversations of two turns, some at a time."""
    first, second = documents(208, *[70] * N_CONVERSATIONS), documents(209, *[40] * N_CONVERSATIONS)
    heard = []
    for start in range(0, N_CONVERSATIONS, N_AT_ONCE):
        said = first[start : start + N_AT_ONCE]
        answers = batch(server, said, 2)
        heard += [hit(answer) for answer in answers]
        more = second[start : start + N_AT_ONCE]
        said = [a + b["text"] + c for a, b, c in zip(said, answers, more, strict=True)]
        heard += [hit(answer) for answer in batch(server, said, 2)]
    return heard


def test_a_conversation_has_the_same_hits_and_tokens(pair):
    stock, segments = pair
    expected = conversation(stock, 201)
    assert any(cached for _, cached in expected)
    assert conversation(segments, 201) == expected


def test_prompts_with_segments_in_between_change_neither_hits_nor_tokens(pair):
    stock, segments = pair
    expected = conversation(stock, 202)
    assert (
        conversation(segments, 202, between=lambda: segments.generate(SEGMENTS, n_tokens=4))
        == expected
    )


def test_branches_of_one_prefix_have_the_same_hits(pair):
    """States at branching points are kept by one strategy and not by the other."""
    common = documents(203, 150)[0]
    asks = [common + tail for tail in documents(204, 30, 80, 30, 140, 5)] * 2
    stock, segments = ([hit(server.generate(ask, n_tokens=7)) for ask in asks] for server in pair)
    assert segments == stock


def test_a_batch_of_plain_prompts_and_segments_at_once_keeps_states_apart(pair):
    stock, segments = pair
    plain = [documents(205, 150)[0] + tail for tail in documents(206, 70, 66, 130)]
    expected = [stock.generate(prompt, n_tokens=7)["output_ids"] for prompt in plain]
    alone = segments.generate(SEGMENTS, n_tokens=7)["output_ids"]
    for _ in range(3):
        answers = batch(segments, [*plain, SEGMENTS, *plain], 7)
        assert [a["output_ids"] for a in answers] == [*expected, alone, *expected]


def test_prompts_with_segments_never_enter_the_tree(pair):
    _, segments = pair
    segments.flush()
    for _ in range(2):
        segments.generate(SEGMENTS)
    segments.generate(joined(HEAD, *DOCUMENTS), pic={"recompute": "all"})
    assert segments.info["prefix_tokens"] == 0
    assert segments.info["segments"] == 3


def test_a_thousand_chat_turns_have_the_same_hits_and_flood_no_segment_that_is_used(pair):
    stock, segments = pair
    expected = chats(stock)
    assert len(expected) == 1_000
    segments.flush()
    for _ in range(2):
        segments.generate(SEGMENTS)
    assert chats(segments) == expected
    assert sum(cached > 0 for _, cached in expected) >= N_CONVERSATIONS
    assert 2 * segments.info["kv_tokens"] < N_CONVERSATIONS * (70 + 40), "everything fits"
    details = segments.generate(SEGMENTS)["meta_info"]["pic"]
    assert details["segments"] == {"hit": 3, "filled": 0, "in_place": 0}


def test_salts_of_prefixes_never_read_each_other(pair):
    _, segments = pair
    segments.flush()
    prompt = documents(207, 200)[0]
    for salt in ("one", "two", None):
        assert hit(segments.generate(prompt, extra_key=salt))[1] == 0
        assert hit(segments.generate(prompt + " and more", extra_key=salt))[1] > 0
