"""Our references against stock SGLang's rotary embeddings and transformers' Qwen3.5."""

import warnings

import pytest
import torch

from hypic_engine.ops.move_keys import move

from ...support.oracle import full

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
FIRST, LAST = [torch.tensor(range(start, start + 4)) for start in (0, 6)]


@pytest.fixture(scope="module")
def stock_rope():
    """Builds stock rotary embeddings, which ask for the arguments of a server."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("SGLANG_USE_CPU_ENGINE", "1")
        from sglang.srt import server_args  # noqa: PLC0415 - seconds, and warnings on the way
        from sglang.srt.layers.rotary_embedding import get_rope  # noqa: PLC0415

        arguments = object.__new__(server_args.ServerArgs)
        patch.setattr(server_args, "_global_server_args", arguments)
        patch.setattr(arguments, "rl_on_policy_target", None, raising=False)
        yield get_rope


def moved(rope, keys, delta):
    k_cache, v_cache = torch.zeros(10, 2, 64), torch.zeros(10, 2, 64)
    k_cache[:4] = keys
    shift = torch.full((4,), delta)
    move(k_cache, v_cache, FIRST, LAST, shift, rope.cos_sin_cache, 16, rope.is_neox_style)
    return k_cache[6:]


@pytest.mark.parametrize("neox", [True, False], ids=["halves", "neighbours"])
@pytest.mark.parametrize("delta", [600, -100])
def test_a_moved_key_is_what_stock_computes_at_the_new_position(stock_rope, neox, delta):
    rope = stock_rope(64, 16, 2048, 10_000, neox, dtype=torch.float32)
    raw = torch.randn(4, 128, generator=torch.Generator().manual_seed(0))

    def at(positions):
        return rope.forward_native(positions, raw.clone(), raw.clone())[1].view(4, 2, 64)

    start = torch.arange(100, 104)
    torch.testing.assert_close(moved(rope, at(start), delta), at(start + delta), **CLOSE)


@pytest.mark.parametrize("interleaved", [True, False], ids=["interleaved", "in sections"])
def test_text_keys_of_three_axis_embeddings_move_like_plain_ones(stock_rope, interleaved):
    scaling = {"rope_type": "default", "mrope_section": [3, 3, 2], "mrope_interleaved": interleaved}
    rope = stock_rope(64, 16, 2048, 10_000, True, scaling, dtype=torch.float32)
    assert type(rope).__name__ == "MRotaryEmbedding"
    raw = torch.randn(4, 128, generator=torch.Generator().manual_seed(0))

    def at(positions):
        three = positions.repeat(3, 1)
        return rope.forward_native(three, raw.clone(), raw.clone())[1].view(4, 2, 64)

    start = torch.arange(4)
    torch.testing.assert_close(moved(rope, at(start), 600), at(start + 600), **CLOSE)


@pytest.fixture(scope="module")
def transformers_model(tiny):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import Qwen3_5ForConditionalGeneration  # noqa: PLC0415

        return Qwen3_5ForConditionalGeneration.from_pretrained(tiny, dtype=torch.float32)


@torch.no_grad()
def test_the_oracle_answers_what_transformers_answers(model, transformers_model):
    prompt = list(b"The Eiffel Tower is in Paris, France. Question: where is it?")
    ids = list(prompt)
    for _ in range(12):
        logits = transformers_model(input_ids=torch.tensor([ids]), use_cache=False).logits
        ids.append(int(logits[0, -1].argmax()))
    assert full(model, prompt, 12) == ids[len(prompt) :]
