"""Story: a router pod is deleted, and clients with their library's usual retries notice nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
from openai import OpenAI

from local.demo.install import NAME

from .world import routers, until

MODEL = "tiny-qwen3.5"
N_CLIENTS = 2


def ask_on(front, stop, answered):
    """One client, with the library's default number of retries, until told to stop."""
    with (
        httpx.Client(trust_env=False) as transport,
        OpenAI(base_url=f"{front}/v1", api_key="none", http_client=transport) as client,
    ):
        while not stop.is_set():
            client.completions.create(model=MODEL, prompt="Still there?", max_tokens=2)
            answered.release()


def replaced(kubectl, old):
    """Whether the pod has ended, not only been told to, and there are two again."""
    ended = not kubectl.run("get", "pod", old, "--ignore-not-found")
    ready = kubectl.get("deployment", NAME)["status"].get("readyReplicas", 0)
    return ended and ready == 2


def test_requests_go_on_while_a_router_is_replaced_gie_548(demo_kubectl, front):
    stop, answered = threading.Event(), threading.Semaphore(0)
    with ThreadPoolExecutor(N_CLIENTS) as pool:
        clients = [pool.submit(ask_on, front, stop, answered) for _ in range(N_CLIENTS)]
        try:
            assert answered.acquire(timeout=60)
            old = next(iter(routers(demo_kubectl, NAME)))
            demo_kubectl.run("delete", "pod", old, "--wait=false")
            until(
                lambda: replaced(demo_kubectl, old) or any(each.done() for each in clients),
                within_s=120,
                what="the router is replaced",
            )
            before = 0
            while answered.acquire(blocking=False):
                before += 1
            assert before > 0
            assert all(answered.acquire(timeout=60) for _ in range(2 * N_CLIENTS))
        finally:
            stop.set()
        for each in clients:
            each.result(timeout=60)
