"""Story: a client of any of the three endpoints finds its documents in the cache, in any order."""

import json
import urllib.request
from dataclasses import dataclass

import httpx
import pytest
from openai import OpenAI

from local.demo import compare
from local.demo.ask import get_json
from local.demo.conditions import n_known
from local.demo.documents import SEPARATOR

from .world import until

MODEL = "tiny-qwen3.5"
N_TOKENS = 8
HEAD = "Answer from the records below."
ENDPOINTS = ("generate", "completions", "chat")
EXPLAIN = {"x-hypic-explain": "1"}


@dataclass(frozen=True)
class Said:
    text: str
    n_cached: int
    engine: str


@pytest.fixture(scope="module")
def client(front):
    with (
        httpx.Client(trust_env=False) as transport,
        OpenAI(base_url=f"{front}/v1", api_key="none", http_client=transport) as opened,
    ):
        yield opened


def by_generate(front, prompt, *, stream):
    sampling = {"temperature": 0, "max_new_tokens": N_TOKENS, "ignore_eos": True}
    body = json.dumps({"text": prompt, "sampling_params": sampling, "stream": stream}).encode()
    headers = {"Content-Type": "application/json"} | EXPLAIN
    request = urllib.request.Request(f"{front}/generate", body, headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        content, engine = response.read().decode(), response.headers["x-hypic-engine"]
    if stream:
        *_, last, done = (line for line in content.splitlines() if line)
        assert done == "data: [DONE]"
        content = last.removeprefix("data: ")
    answer = json.loads(content)
    return Said(answer["text"], answer["meta_info"]["cached_tokens"], engine)


def by_openai(create, text_of, arguments, *, stream):
    options = {"stream_options": {"include_usage": True}} if stream else {}
    raw = create(
        model=MODEL,
        max_tokens=N_TOKENS,
        temperature=0,
        stream=stream,
        extra_headers=EXPLAIN,
        extra_body={"ignore_eos": True},
        **arguments,
        **options,
    )
    engine, answer = raw.headers["x-hypic-engine"], raw.parse()
    pieces = list(answer) if stream else [answer]
    text = "".join(text_of(piece.choices[0]) or "" for piece in pieces if piece.choices)
    # SGLang leaves the details out where nothing was cached.
    details = pieces[-1].usage.prompt_tokens_details
    return Said(text, details.cached_tokens if details else 0, engine)


@pytest.fixture(scope="module")
def ask(front, client):
    def ask(endpoint, pieces, *, stream):
        prompt = SEPARATOR.join(pieces)
        match endpoint:
            case "generate":
                return by_generate(front, prompt, stream=stream)
            case "completions":
                create = client.completions.with_raw_response.create
                return by_openai(
                    create, lambda choice: choice.text, {"prompt": prompt}, stream=stream
                )
            case _:
                create = client.chat.completions.with_raw_response.create
                messages = [{"role": "user", "content": prompt}]
                return by_openai(
                    create,
                    lambda choice: (choice.delta if stream else choice.message).content,
                    {"messages": messages},
                    stream=stream,
                )

    return ask


def record(case, number):
    sentences = (f"Record {number} of {case}, line {line}: nothing to report." for line in range(7))
    return " ".join(sentences)


def known(kubectl):
    """For each engine the fewest segments that any router believes it to hold."""
    fleets = [get_json(url, "/fleet") for url in compare.router_metrics(kubectl)]
    names = {each["name"] for fleet in fleets for each in fleet["engines"]}
    return {name: min(n_known(fleet, name) for fleet in fleets) for name in names}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_documents_are_found_in_another_order(endpoint, stream, ask, demo_kubectl):
    first, second = (record(f"{endpoint} {stream}", number) for number in (1, 2))
    before = known(demo_kubectl)
    cold = ask(endpoint, [HEAD, first, second, "Which?"], stream=stream)
    until(
        lambda: known(demo_kubectl).get(cold.engine, 0) >= before.get(cold.engine, 0) + 2,
        within_s=15,
        what=f"routers hear what {cold.engine} holds",
    )
    warm = ask(endpoint, [HEAD, second, first, "Which one?"], stream=stream)
    assert cold.n_cached < len(first)
    assert warm.n_cached >= 0.9 * (len(first) + len(second))
    assert warm.engine == cold.engine


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_stream_says_the_same_as_a_whole_answer(endpoint, ask):
    pieces = [HEAD, record(endpoint, 8), record(endpoint, 9), "Which?"]
    whole = ask(endpoint, pieces, stream=False)
    assert whole.text
    assert ask(endpoint, pieces, stream=True).text == whole.text


def test_a_prompt_without_separators_is_answered(ask):
    assert ask("completions", ["Once upon a time"], stream=False).text


def test_the_model_is_listed_under_its_name(client):
    assert [model.id for model in client.models.list()] == [MODEL]


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"{", 400, "JSON"),
        (b"[]", 400, "object"),
        (json.dumps({"text": SEPARATOR.join("abcdef" * 90)}).encode(), 400, "segments"),
    ],
    ids=["no JSON", "no object", "too many segments"],
)
def test_bad_bodies_get_an_error_of_openais_shape_and_leave_the_engines_up(
    body, status, word, front, client
):
    with httpx.Client(trust_env=False, timeout=60) as plain:
        response = plain.post(f"{front}/generate", content=body)
    assert response.status_code == status, response.text
    message = response.json()["error"]["message"]
    assert word in message
    assert client.completions.create(model=MODEL, prompt="Still there?", max_tokens=1).choices
