"""What choosing needs of a request body: its segments, its size, whether it streams.

Reads the body once and changes nothing in it: the bytes that came are the bytes that are sent on.
Does not know which engine holds what.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

import orjson

from hypic_engine.contract.request import SegmentOptions, options
from hypic_engine.contract.segments import salt_of
from hypic_engine.errors import RequestError

from . import cut
from .cut import Cut, NoPromptError, Scope, Segment

DEFAULT_OUTPUT_TOKENS = 256
MAX_OUTPUT_TOKENS = 2_048
MAX_SAMPLES = 128


class UnknownModelError(RequestError):
    """The request names a model that is not served here."""


class Endpoint(StrEnum):
    """The generating routes; each has its own place for the prompt."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    GENERATE = "/generate"


@dataclass(frozen=True, slots=True)
class Names:
    """What router and engines were both started with.

    Attributes:
        model: served model name.
        separator: text that cuts segments.
        max_segments: most segments one prompt may have, its query counted.
    """

    model: str
    separator: str
    max_segments: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request, as far as choosing an engine for it needs it.

    Attributes:
        segments: those that may be taken from a cache, in order, of all prompts of a batch.
        n_bytes: text of the whole request, segments included.
        n_ids: token ids of the whole request, segments included.
        output_tokens: what it may generate, all samples together; a guess where not said.
        stream: whether the client asked for a stream.
        generates: whether anything is generated, so that prefill and decode are both needed.
        prefix: names how the prompt begins; equal beginnings give equal names.
    """

    segments: tuple[Segment, ...] = ()
    n_bytes: int = 0
    n_ids: int = 0
    output_tokens: int = DEFAULT_OUTPUT_TOKENS
    stream: bool = False
    generates: bool = True
    prefix: str = ""


def prompt(endpoint: Endpoint, body: bytes, names: Names) -> Prompt:
    """What the body asks for.

    A field of an unexpected type is no error here: the engine judges it, in its own words.

    Raises:
        NoPromptError: there is nothing to generate from.
        UnknownModelError: it names another model.
        RequestError: not a JSON object, more segments than allowed, or segment options that make
            no sense.
    """
    fields = _fields(body)
    _check_model(endpoint, fields, names)
    wishes = _options(endpoint, fields, names)
    cuts = _cuts(endpoint, fields, names, wishes)
    most, limit = max(len(one.pieces) for one in cuts) + 1, names.max_segments
    if most > limit:
        raise RequestError("prompt", f"has {most} segments; at most {limit} segments are allowed")
    beginning = cuts[0].beginning.encode("utf-8", "surrogatepass")
    return Prompt(
        segments=tuple(_usable(cuts, wishes)),
        n_bytes=sum(one.n_bytes for one in cuts),
        n_ids=sum(one.n_ids for one in cuts),
        output_tokens=_output_tokens(endpoint, fields) * len(cuts),
        stream=fields.get("stream") is True,
        prefix=hashlib.blake2b(beginning, digest_size=8).hexdigest(),
    )


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _fields(body: bytes) -> dict[str, Any]:
    if not body:
        raise RequestError("body", "is empty; a JSON object is needed")
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        fields = _slowly(body)
    if not isinstance(fields, dict):
        raise RequestError("body", f"must be a JSON object, got {type(fields).__name__}")
    return fields


def _slowly(body: bytes) -> Any:
    """What SGLang's parser reads though a strict one does not, or what is wrong in its words."""
    try:
        return json.loads(body, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise RequestError("body", f"is not JSON: {str(error)[:200]}") from error


def _check_model(endpoint: Endpoint, fields: Mapping[str, Any], names: Names) -> None:
    """An adapter may follow the model's name; a name that is no text is the engine's to judge."""
    model = fields.get("model")
    if endpoint is Endpoint.GENERATE or not isinstance(model, str):
        return
    if model.split(":", 1)[0] not in (names.model, names.model.split(":", 1)[0]):
        raise UnknownModelError("model", f"{model[:100]!r} is not served here; {names.model!r} is")


def _cuts(
    endpoint: Endpoint, fields: Mapping[str, Any], names: Names, wishes: Sequence[SegmentOptions]
) -> list[Cut]:
    scope = _scope(endpoint, fields, names)
    match endpoint:
        case Endpoint.CHAT:
            return cut.chat(fields, scope)
        case Endpoint.COMPLETIONS:
            return cut.prompts(fields.get("prompt"), "prompt", scope, wishes)
        case Endpoint.GENERATE if fields.get("text") is not None:
            return cut.prompts(fields["text"], "text", scope, wishes)
        case Endpoint.GENERATE if fields.get("input_ids") is not None:
            return cut.prompts(fields["input_ids"], "input_ids", scope, wishes)
        case Endpoint.GENERATE if fields.get("input_embeds") is not None:
            return [Cut()]
        case _:
            raise NoPromptError("text", "is missing: give text, input_ids or input_embeds")


def _scope(endpoint: Endpoint, fields: Mapping[str, Any], names: Names) -> Scope:
    """What names of segments depend on; an adapter in the model's name wins, as in SGLang."""
    adapter = fields.get("lora_path") or ""
    model = fields.get("model")
    if endpoint is not Endpoint.GENERATE and isinstance(model, str) and ":" in model:
        adapter = model.split(":", 1)[1].strip() or adapter
    cache_salt, extra_key = fields.get("cache_salt") or "", fields.get("extra_key") or ""
    if not all(isinstance(value, str) for value in (adapter, cache_salt, extra_key)):
        return Scope(names.model, names.separator, "", None)
    return Scope(names.model, names.separator, adapter, salt_of(cache_salt, extra_key))


def _options(
    endpoint: Endpoint, fields: Mapping[str, Any], names: Names
) -> tuple[SegmentOptions, ...]:
    """One for the whole request, or one for each prompt of a batch."""
    places = [fields]
    if endpoint is Endpoint.GENERATE:
        given = fields.get("sampling_params")
        places = [one for one in (given if isinstance(given, list) else [given]) if one]
    found = [
        options(place.get("custom_params"), max_segments=names.max_segments)
        for place in places
        if isinstance(place, Mapping)
    ]
    return tuple(found) or (SegmentOptions(),)


def _usable(cuts: Sequence[Cut], wishes: Sequence[SegmentOptions]) -> list[Segment]:
    """Named pieces that the client lets come from the cache."""
    return [
        piece
        for i, one in enumerate(cuts)
        for index, piece in enumerate(one.pieces)
        if piece is not None
        and (wish := wishes[min(i, len(wishes) - 1)]).enabled
        and not wish.recomputes(index)
    ]


def _output_tokens(endpoint: Endpoint, fields: Mapping[str, Any]) -> int:
    place: Any = fields
    limits: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    if endpoint is Endpoint.GENERATE:
        given = fields.get("sampling_params")
        place = given[0] if isinstance(given, list) and given else given
        limits = ("max_new_tokens",)
    if not isinstance(place, Mapping):
        return DEFAULT_OUTPUT_TOKENS
    said = [place[name] for name in limits if isinstance(place.get(name), int)]
    tokens = min(max(said[0], 1), MAX_OUTPUT_TOKENS) if said else DEFAULT_OUTPUT_TOKENS
    n = place.get("n")
    return tokens * (n if isinstance(n, int) and 1 <= n <= MAX_SAMPLES else 1)
