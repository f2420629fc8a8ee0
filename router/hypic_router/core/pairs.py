"""Which engines make a pair of prefill and decode, and what both are told of it.

Does not prefer one pair to another.
"""

import json
from collections.abc import Collection, Sequence

from hypic_engine.errors import RequestError

from .workers import ASKABLE, Address, Fleet, Role, Worker

JSON_SPACE = b" \t\r\n"
# Rooms are signed 64-bit numbers in SGLang, which counts on from the given one in a batch.
ROOMS = 1 << 62


def startable(fleet: Fleet, tried: Collection[str]) -> Sequence[Worker]:
    """The engines that could take a request's prompt, whatever their own state."""
    both, prefill = Role.BOTH, Role.PREFILL
    return [
        worker
        for worker in fleet.workers
        if worker.at.name not in tried
        and (
            worker.at.role is both or (worker.at.role is prefill and partners(fleet, worker, tried))
        )
    ]


def partners(fleet: Fleet, prefill: Worker, tried: Collection[str]) -> list[Worker]:
    """The decode engines that could continue what a prefill engine began."""
    return [
        worker
        for worker in fleet.workers
        if worker.at.role is Role.DECODE
        and worker.at.revision == prefill.at.revision
        and worker.state in ASKABLE
        and not {worker.at.name, name(prefill.at.name, worker.at.name)} & set(tried)
    ]


def lacking(fleet: Fleet) -> list[str]:
    """What engines that answer in pairs lack; nothing where there are none, or a pair is there."""
    if not fleet.workers or any(worker.at.role is Role.BOTH for worker in fleet.workers):
        return []
    here = {worker.at.role for worker in fleet.workers if worker.state in ASKABLE}
    missing = [role for role in (Role.PREFILL, Role.DECODE) if role not in here]
    lacks = [f"no {role} engine is ready" for role in missing]
    if lacks or startable(fleet, ()):
        return lacks
    return ["no prefill and decode engine have the same revision"]


def name(prefill: str, decode: str) -> str:
    """What people call a pair of two names."""
    return f"{prefill}+{decode}"


def with_room(body: bytes, prefill: Address, room: int) -> bytes:
    """The body for both engines of a pair, which meet in ``room``.

    The fields are added at the end, where they win over any of the same name.

    Raises:
        RequestError: the body is not JSON in UTF-8.
    """
    host, port = prefill.bootstrap
    fields = {"bootstrap_host": host, "bootstrap_port": port, "bootstrap_room": room}
    trimmed = body.rstrip(JSON_SPACE)
    if not trimmed.endswith(b"}"):
        raise RequestError("body", "is not JSON in UTF-8")
    rest = trimmed[:-1].rstrip(JSON_SPACE)
    comma = b"" if rest.endswith(b"{") else b","
    return rest + comma + json.dumps(fields).encode()[1:]
