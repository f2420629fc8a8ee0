"""Counts are those of one prompt, whatever SGLang asked for on its way to the answer."""

import json
from types import SimpleNamespace

from hypic_engine.contract.details import Details
from hypic_engine.plugin.front.usage import Cached, Usage

PIC = Details(reused=5, hit=1).to_json()


async def lifted(obj, *metas):
    async def responses():
        for meta in metas:
            yield {"meta_info": meta}

    found = Usage().lift(lambda *_: responses(), None, obj)
    return [response["meta_info"] async for response in found]


def told(cached, pic=PIC):
    return {"cached_tokens": cached, "cached_tokens_details": {"device": cached, "pic": pic}}


async def test_details_become_meta_info_pic():
    obj = SimpleNamespace(hypic_told=[])
    (meta,) = await lifted(obj, told(5))
    assert meta == {"cached_tokens": 5, "cached_tokens_details": {"device": 5}, "pic": PIC}
    assert json.dumps(meta["cached_tokens"]) == "5"


async def test_a_prompt_without_details_stays_as_it_was():
    plain = {"cached_tokens": 0, "cached_tokens_details": None}
    assert await lifted(SimpleNamespace(hypic_told=[]), plain, plain) == [plain, plain]
    assert await lifted(SimpleNamespace(hypic_told=[]), {"id": "x"}) == [{"id": "x"}]


async def test_every_sample_tells_what_was_cached_before_the_first():
    prompt = SimpleNamespace(hypic_told=[])
    cold = Details(filled=1).to_json()
    (first,) = await lifted(prompt, told(0, cold))
    (sample,) = await lifted(SimpleNamespace(hypic_told=prompt.hypic_told), told(5))
    assert (first["cached_tokens"], sample["cached_tokens"]) == (0, 0)
    assert sample["pic"] == cold


def test_a_number_of_tokens_carries_its_details_into_usage():
    cached = Cached.of(5, PIC)
    assert (cached + 1, cached.pic) == (6, PIC)
