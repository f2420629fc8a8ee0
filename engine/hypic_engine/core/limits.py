"""Values that SGLang 0.5.14 takes from a request unchecked and that stop its scheduler.

Looks at plain values only; the messages name the field and what is allowed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import RequestError

MAX_SAMPLES = 128


def token_ids(field: str, ids: Sequence[Any], vocab_size: int) -> None:
    """Raise unless every id is one of the model's.

    Raises:
        RequestError: an id is no integer, or lies outside the vocabulary.
    """
    kinds = set(map(type, ids)) - {int}
    if kinds:
        raise RequestError(field, f"must hold integers, got {kinds.pop().__name__}")
    if ids and (min(ids) < 0 or max(ids) >= vocab_size):
        foreign = next(i for i in ids if not 0 <= i < vocab_size)
        raise RequestError(field, f"holds {foreign}; ids run from 0 to {vocab_size - 1}")


def samples(sampling_params: object) -> None:
    """Raise unless each prompt asks for a number of samples that OpenAI's interface knows.

    SGLang makes a request of each before it looks at any.

    Raises:
        RequestError: ``n`` is no integer, or out of range.
    """
    every = sampling_params if isinstance(sampling_params, list) else [sampling_params]
    for params in every:
        n = params.get("n", 1) if isinstance(params, Mapping) else 1
        if n is not None and (type(n) is not int or not 1 <= n <= MAX_SAMPLES):
            raise RequestError("n", f"must be an integer from 1 to {MAX_SAMPLES}")


def text(field: str, value: object) -> None:
    """Raise unless a text, or each of a list, is one that can be written as UTF-8.

    Raises:
        RequestError: half a character is in it; no tokenizer takes that.
    """
    for one in value if isinstance(value, list) else [value]:
        try:
            str(one).encode()
        except UnicodeEncodeError as error:
            at = error.start
            raise RequestError(field, f"holds a lone surrogate at character {at}") from None


def request_ids(rid: object) -> None:
    """Raise unless the requests of a batch have ids of their own.

    Raises:
        RequestError: an id is given twice; SGLang would keep the first for ever.
    """
    if isinstance(rid, list) and len(set(map(str, rid))) < len(rid):
        raise RequestError("rid", "names two requests of one batch alike")


def embeds(input_embeds: object) -> None:
    """Raise when there are any: SGLang's Qwen3.5 dies of them.

    Raises:
        RequestError: there are.
    """
    if input_embeds is not None:
        raise RequestError("input_embeds", "cannot be combined with --pic-enable")


def sampling(params: Mapping[str, Any], vocab_size: int) -> None:
    """Raise unless the ids that sampling parameters name are the model's.

    Raises:
        RequestError: as for `token_ids`, or ``custom_params`` is no object.
    """
    custom = params.get("custom_params")
    if custom is not None and not isinstance(custom, Mapping):
        raise RequestError("custom_params", f"must be an object, got {type(custom).__name__}")
    stops = params.get("stop_token_ids")
    if isinstance(stops, list):
        token_ids("stop_token_ids", stops, vocab_size)
