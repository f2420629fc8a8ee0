"""Hook on a decode server: a prompt that was given up is waited for no longer.

SGLang 0.5.14 keeps such a request among those whose prefill server is still to be found, takes its
receiver away, and ends the whole server once that prefill server could not be reached.
"""

from collections.abc import Callable
from typing import Any


def resolve(original: Callable[..., Any], queue: Any) -> None:
    """Around ``DecodePreallocQueue._resolve_pending_reqs``: forget who was given up."""
    queue.pending_reqs = [one for one in queue.pending_reqs if one.kv_receiver is not None]
    original(queue)
