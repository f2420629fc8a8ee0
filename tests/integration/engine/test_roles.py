"""Prefill and decode apart: prompts are assembled on one server and go on, right, on another."""

import concurrent.futures
import http.client
import json
import threading
import urllib.request

import pytest

from ...support.front import front
from ...support.oracle import full, generate, load
from ...support.pair import pair
from ...support.waiting import eventually
from .conftest import written
from .oracle_cases import cases
from .prompts import documents, joined
from .test_aborts import gauge
from .test_draining import drain

N_TOKENS = 8
GAUGES = ("running_reqs", "queue_reqs", "decode_prealloc_queue_reqs", "decode_transfer_queue_reqs")
HEAD, FIRST, SECOND, THIRD = documents(170, 40, 70, 90, 60)
QUESTION = "Which of them is it?"
BREAK = "HYPIC_TEST_BREAKS_TRANSFERS"
# Another plugin of SGLang's: while a file exists, sending a linear state fails as a network would.
BREAKING = f"""
import os
from pathlib import Path

def register():
    from sglang.srt.disaggregation.mooncake.conn import MooncakeKVManager as Manager
    stock = Manager._send_mamba_state
    def send(self, *args):
        return -1 if Path(os.environ["{BREAK}"]).exists() else stock(self, *args)
    Manager._send_mamba_state = send
"""


@pytest.fixture(scope="module")
def switch(tmp_path_factory):
    return tmp_path_factory.mktemp("switch") / "broken"


@pytest.fixture(scope="module")
def both(tiny, tmp_path_factory, switch):
    packages = tmp_path_factory.mktemp("packages")
    (packages / "breaking.py").write_text(BREAKING)
    info = packages / "breaking-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: breaking\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[sglang.srt.plugins]\nbreaking = breaking:register\n")
    folder = tmp_path_factory.mktemp("roles")
    with pair(tiny, folder, path=packages, **{BREAK: str(switch)}) as servers:
        yield servers
        for server in (servers.prefill, servers.decode):
            assert server.alive, server.log.read_text()[-4000:]
            assert "memory leak" not in server.log.read_text()


def wanted(model, *pieces):
    ids = [list(piece.encode()) for piece in pieces]
    if len(ids) == 1:
        return full(model, ids[0], N_TOKENS)
    return generate(model, ids, recompute=frozenset(), n_tokens=N_TOKENS)


def answered(both, *pieces):
    answer = both.generate(joined(*pieces), n_tokens=N_TOKENS)
    return answer["output_ids"], answer["meta_info"]["cached_tokens"]


def goes_on_right(both, model):
    """Cold, partly and wholly cached, and without segments."""
    both.prefill.flush()
    cold = (HEAD, FIRST, QUESTION)
    assert answered(both, *cold) == (wanted(model, *cold), 0)
    partly = (HEAD, SECOND, FIRST, QUESTION)
    n_found = len(HEAD) + len(FIRST) - 16
    assert answered(both, *partly) == (wanted(model, *partly), n_found)
    wholly = (HEAD, FIRST, SECOND, QUESTION)
    n_found += len(SECOND) - 8
    assert answered(both, *wholly) == (wanted(model, *wholly), n_found)
    assert answered(both, QUESTION)[0] == wanted(model, QUESTION)


def test_cold_partly_and_wholly_cached_prompts_go_on_with_the_tokens_of_one_server(both, model):
    goes_on_right(both, model)


@pytest.mark.parametrize("family", ["ring", "bailing-v2.5"])
def test_prompts_of_lightning_models_do_too(family, tmp_path_factory):
    folder = written(family, tmp_path_factory)
    with pair(folder, tmp_path_factory.mktemp("roles")) as servers:
        goes_on_right(servers, load(folder))


def test_a_prompt_without_segments_finds_its_prefix_on_the_prefill_server(both, model):
    both.prefill.flush()
    turns = ("".join(documents(171, 270)), "And then it slept.", "For how long?")
    cached = []
    for n_turns in range(1, 4):
        prompt = "".join(turns[:n_turns])
        tokens, n_cached = answered(both, prompt)
        assert tokens == wanted(model, prompt)
        cached.append(n_cached)
    assert cached[0] == 0
    assert all(n_cached >= 256 for n_cached in cached[1:])


def test_eight_at_once_have_the_tokens_of_one_server(both, model):
    drawn = [case for case in cases(seed=3, n_cases=40) if not case.recompute]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda case: answered(both, *case.pieces)[0], drawn))
    assert answers == [wanted(model, *case.pieces) for case in drawn]


def completions(both, prompt, **fields):
    body = {"model": "any", "prompt": prompt, "max_tokens": N_TOKENS, "temperature": 0, **fields}
    (_, left), (status, answer) = both.ask("/v1/completions", body, 60)
    assert status == 200, (left, answer)
    return answer


def test_several_samples_have_transfers_of_their_own_and_count_one_prompt(both):
    prompt = joined(HEAD, FIRST, SECOND, QUESTION)
    one = completions(both, prompt)
    three = completions(both, prompt, n=3)
    text = one["choices"][0]["text"]
    assert [(c["index"], c["text"]) for c in three["choices"]] == [(n, text) for n in range(3)]
    assert three["usage"]["prompt_tokens"] == one["usage"]["prompt_tokens"]
    batch = completions(both, [prompt, joined(HEAD, THIRD, QUESTION)], n=2)
    assert [c["index"] for c in batch["choices"]] == [0, 1, 2, 3]
    assert [c["text"] for c in batch["choices"]][:2] == [text, text]


def test_streamed_samples_end_within_a_minute(both):
    body = {"model": "any", "prompt": joined(HEAD, FIRST, QUESTION), "max_tokens": N_TOKENS}
    roomed = both.with_room(body | {"n": 3, "temperature": 0})
    with concurrent.futures.ThreadPoolExecutor(1) as leg:
        prefill = leg.submit(both.prefill.post, "/v1/completions", roomed, 60)
        events = both.decode.pieces("/v1/completions", roomed, 60)
        assert prefill.result()[0] == 200
    texts = ["", "", ""]
    for event in events:
        for choice in event["choices"]:
            texts[choice["index"]] += choice["text"]
    assert texts[0]
    assert texts == [texts[0]] * 3


def test_a_state_that_did_not_arrive_is_an_error_on_both_sides_and_no_wrong_token(
    both, model, switch
):
    prompt = (HEAD, SECOND, QUESTION)
    body = {"text": joined(*prompt), "sampling_params": {"temperature": 0, "max_new_tokens": 4}}
    switch.touch()
    try:
        (left, _), (right, answer) = both.ask("/generate", body, 60)
    finally:
        switch.unlink()
    assert (left, right) == (500, 500), answer
    assert "output_ids" not in json.dumps(answer)
    assert answered(both, *prompt)[0] == wanted(model, *prompt)


def test_a_prefill_server_warms_without_a_decode_server(both):
    both.prefill.flush()
    request = urllib.request.Request(
        f"{both.prefill.url}/pic/warm", json.dumps({"segments": [THIRD]}).encode()
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["segments"][0]["stored"] is True
    assert answered(both, HEAD, THIRD, QUESTION)[1] == len(THIRD) - 8


def test_a_decode_server_holds_no_segments_and_says_so(both):
    status, answer = both.decode.post("/pic/warm", {"segments": [THIRD]})
    assert status == 404
    assert "servers that prefill" in answer["error"]
    assert both.decode.get("/pic/ready") == {"ready": True}


def test_a_prefill_server_is_drained_when_its_transfers_are_done(both):
    body = {"text": joined(HEAD, FIRST, QUESTION), "sampling_params": {"max_new_tokens": 4}}
    roomed = both.with_room(body)
    legs = [
        threading.Thread(target=server.post, args=("/generate", roomed, 60))
        for server in (both.prefill, both.decode)
    ]
    legs[0].start()
    eventually(lambda: drain(both.prefill)[1]["queued"] == 1)
    assert drain(both.prefill, body={"deadline_s": 60})[1]["draining"] is True
    legs[1].start()
    left = ("running", "queued", "transfers")
    eventually(lambda: not any(map(drain(both.prefill)[1].get, left)), within_s=60)
    for leg in legs:
        leg.join()
    assert drain(both.prefill, "DELETE")[1]["draining"] is False


@pytest.fixture(scope="module")
def router(both, tmp_path_factory):
    prefill = f"{both.prefill.url}#{both.bootstrap_port}"
    log = tmp_path_factory.mktemp("router") / "log"
    with front(log, "--prefill", prefill, "--decode", both.decode.url, ready=2) as started:
        yield started


def chatting(**fields):
    document = {"type": "text", "text": FIRST, "cache_control": {"type": "ephemeral"}}
    messages = [{"role": "user", "content": [document, {"type": "text", "text": QUESTION}]}]
    body = {"model": "any", "messages": messages, "max_tokens": N_TOKENS, "temperature": 0}
    return body | fields


def idle(both):
    counts = [drain(server)[1] for server in (both.prefill, both.decode)]
    return not any(one["running"] + one["queued"] + one["transfers"] for one in counts)


def shown(both):
    """What SGLang's own gauges show of both servers."""
    return [
        gauge(server, f"sglang:num_{name}")
        for server in (both.prefill, both.decode)
        for name in GAUGES
    ]


def test_through_a_router_eight_at_once_have_the_tokens_of_one_server(router, model):
    drawn = [case for case in cases(seed=5, n_cases=20) if not case.recompute]

    def tokens(case):
        sampling = {"temperature": 0, "max_new_tokens": N_TOKENS, "ignore_eos": True}
        body = {"text": joined(*case.pieces), "sampling_params": sampling}
        return router.post("/generate", body)[1]["output_ids"]

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(tokens, drawn))
    assert answers == [wanted(model, *case.pieces) for case in drawn]


@pytest.mark.parametrize("stream", [False, True])
def test_through_a_router_a_prompt_past_the_context_is_refused_at_once(router, both, stream):
    status, answer, seconds = router.timed(
        "/v1/completions", {"model": "any", "prompt": "word " * 40_000, "stream": stream}
    )
    assert (status, answer["object"]) == (400, "error")
    assert seconds < 10
    eventually(lambda: idle(both))


def test_through_a_router_samples_and_batches_are_whole(router):
    one = router.post("/v1/chat/completions", chatting())[1]
    three = router.post("/v1/chat/completions", chatting(n=3))[1]
    text = one["choices"][0]["message"]["content"]
    seen = [(choice["index"], choice["message"]["content"]) for choice in three["choices"]]
    assert seen == [(n, text) for n in range(3)]
    assert three["usage"]["prompt_tokens"] == one["usage"]["prompt_tokens"]
    batch = {"model": "any", "prompt": [FIRST, SECOND], "max_tokens": 2, "temperature": 0, "n": 2}
    status, answer = router.post("/v1/completions", batch)
    assert (status, [choice["index"] for choice in answer["choices"]]) == (200, [0, 1, 2, 3])


def test_through_a_router_a_stream_has_usage_and_a_logprob_for_each_token(router):
    body = chatting(logprobs=True, top_logprobs=2)
    plain = router.post("/v1/chat/completions", body)[1]
    body["stream_options"] = {"include_usage": True}
    *events, last = router.pieces("/v1/chat/completions", body)
    assert last["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
    assert not any(event.get("usage") for event in events)
    choices = [choice for event in events for choice in event["choices"]]
    logprobs = [one for choice in choices for one in (choice["logprobs"] or {}).get("content", ())]
    assert len(logprobs) == last["usage"]["completion_tokens"]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert text == plain["choices"][0]["message"]["content"]


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"n": 3, "stream": True}])
def test_through_a_router_a_client_that_leaves_frees_both(router, both, fields):
    body = json.dumps(chatting(**fields) | {"max_tokens": 4_000, "ignore_eos": True})
    connection = http.client.HTTPConnection("127.0.0.1", router.port, timeout=60)
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    eventually(lambda: not idle(both))
    connection.sock.close()
    eventually(lambda: idle(both), within_s=5)
    eventually(lambda: not any(shown(both)), within_s=5)
