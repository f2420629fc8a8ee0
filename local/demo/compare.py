"""Asks the demo's questions through the router, and again where nothing is cached.

Measures and compares; how it is shown is the table's business.
"""

import time
from collections.abc import Callable, Sequence

from ..errors import FailedError
from . import conditions, table
from .ask import Answer, ask, empty_cache, get_json
from .documents import DOCUMENTS, QUESTIONS, Question
from .install import NAME
from .kube import Kubectl
from .say import say

KNOWN_WITHIN_S = 30.0
POLL_S = 0.1
ENGINE_PORT = 30_000
ROUTER_METRICS_PORT = 9_090


def engines(kubectl: Kubectl) -> dict[str, str]:
    """Addresses by name of the engines that serve."""
    selector = f"serving.hypic.dev/cluster={NAME},serving.hypic.dev/role"
    pods = conditions.serving_pods(kubectl.get("pods", "-l", selector))
    return {name: f"http://{ip}:{ENGINE_PORT}" for name, ip in pods.items()}


def router_metrics(kubectl: Kubectl) -> list[str]:
    """Addresses of the routers' metrics ports."""
    selector = f"serving.hypic.dev/cluster={NAME},app.kubernetes.io/component=router"
    pods = conditions.serving_pods(kubectl.get("pods", "-l", selector))
    return [f"http://{ip}:{ROUTER_METRICS_PORT}" for ip in pods.values()]


def front_door(kubectl: Kubectl) -> str:
    """Address of the router's Service."""
    ip = kubectl.get("service", NAME)["spec"]["clusterIP"]
    return f"http://{ip}"


def wait_until_known(routers: Sequence[str], holds: Callable[[int], bool], engine: str) -> None:
    """Every router has heard how many segments an engine holds, or this fails."""
    deadline = time.monotonic() + KNOWN_WITHIN_S
    for url in routers:
        while not holds(conditions.n_known(get_json(url, "/fleet"), engine)):
            if time.monotonic() > deadline:
                raise FailedError(f"the router at {url} did not hear what {engine} holds")
            time.sleep(POLL_S)


def ask_all(kubectl: Kubectl, url: str) -> list[Answer]:
    """Empty all caches, ask every question through the router, the first one to fill the cache."""
    routers = router_metrics(kubectl)
    for name, engine_url in engines(kubectl).items():
        empty_cache(engine_url)
        wait_until_known(routers, lambda n_known: n_known < len(DOCUMENTS), name)
    say("emptied the engines' caches, so that the first order finds nothing")
    answers: list[Answer] = []
    for question in QUESTIONS:
        answer = ask(url, question.prompt)
        say(f"{question.order:4} first token after {answer.first_token_s:.2f} s, {answer.choice}")
        if answer.n_prompt_tokens != question.n_tokens:
            raise FailedError(
                f"the prompt has {question.n_tokens} bytes, the engine counts "
                f"{answer.n_prompt_tokens} tokens; the demo needs a tokenizer of bytes"
            )
        if not answers:
            wait_until_known(routers, lambda n_known: n_known >= len(DOCUMENTS), answer.engine)
        answers.append(answer)
    return answers


def compare(kubectl: Kubectl, answers: Sequence[Answer]) -> list[table.Row]:
    """A row for each answer, beside that of an engine whose cache is emptied every time."""
    # Where there is a choice, the engine that holds the documents keeps them.
    (name, url), *_ = sorted(
        engines(kubectl).items(), key=lambda item: item[0] == answers[-1].engine
    )
    say(f"comparing with {name} in the same mode, its cache emptied before each question")
    rows = []
    for question, answer in zip(QUESTIONS, answers, strict=True):
        empty_cache(url)
        empty = ask(url, question.prompt)
        found = table.difference(answer.ids, empty.ids, n_cached_when_empty=empty.n_cached_tokens)
        rows.append(row(question, answer, found))
    return rows


def row(question: Question, answer: Answer, difference: str) -> table.Row:
    """One line of the table."""
    return table.Row(
        order=question.order,
        n_document_tokens=question.n_document_tokens,
        n_cached_tokens=answer.n_cached_tokens,
        first_token_s=answer.first_token_s,
        engine=answer.engine,
        difference=difference,
    )
