"""A planned layer asks the device for nothing, and does as much for many segments as for few.

Tensors have a device and a shape here but no values, so that whatever waits for one raises. Kernels
are replaced by the shapes they return; everything around them is the engine's own code.
"""

import importlib
import warnings
from dataclasses import fields, is_dataclass, replace
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hypic_engine.core.layout import Seam, layout, segments
from hypic_engine.ops.lightning import fill_kernel
from hypic_engine.ops.lightning import kernel as lightning_kernel
from hypic_engine.ops.move_keys import kernel as move_kernel
from hypic_engine.ops.tails import kernel as tails_kernel
from hypic_engine.ops.walk import kernel as walk_kernel
from hypic_engine.plugin.cpu import standins
from hypic_engine.plugin.prompts import Capture, Prompt, Wanted
from hypic_engine.plugin.runner.family import Inputs
from hypic_engine.plugin.runner.planning import forward_plan
from hypic_engine.plugin.runner.pool import OperatorPool, Shape
from hypic_engine.plugin.runner.rotary import Rotary
from hypic_engine.plugin.settings import Mode

HEADS, DIM, SLOTS, LENGTH, SEAM = 2, 16, 300, 20, 4
CHANNELS = 3 * HEADS * DIM


class Watched(TorchDispatchMode):
    """Counts operations, and refuses those that bring something back to the host."""

    def __init__(self):
        super().__init__()
        self.n_operations = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.n_operations += 1
        result = function(*args, **(kwargs or {}))
        came_from = {x.device.type for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        went_to = {x.device.type for x in tree_leaves(result) if isinstance(x, Tensor)}
        assert not ("cuda" in came_from and "cpu" in went_to), f"{function} brings values back"
        return result


def plan_of(n_segments):
    """A prompt of cached segments, and a fill for each of as many others."""
    ends = [LENGTH * (i + 1) for i in range(n_segments)]
    n_tokens = ends[-1] + 9
    cut = layout(segments(ends, n_tokens), seam=Seam(SEAM), min_tokens=6, in_place=lambda _: False)
    prompt = Prompt(cut, (), n_segments=n_segments)
    places = [torch.arange(end - LENGTH, end) for end in ends]
    prompt.entries = tuple(
        SimpleNamespace(operator=1 + i, slots=place) for i, place in enumerate(places)
    )
    prompt.copies = tuple(SimpleNamespace(slots=place[SEAM:]) for place in places)
    prompt.moves = (True,) * n_segments
    captures = [Capture(Wanted(None, "", b"", ""), SEAM, i + 1, "") for i in range(n_segments)]
    lengths = [n_tokens, *[LENGTH] * n_segments]
    return forward_plan(
        [SimpleNamespace(prefix_indices=[], fill_len=length) for length in lengths],
        [prompt, *[None] * n_segments],
        [None, *captures],
        mode=Mode.TRANSITION_ROPE_RECOMPUTE,
        device="cpu",
    )


def there(value):
    """The same without values, on an accelerator."""
    if isinstance(value, Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="cuda")
    if is_dataclass(value):
        own = {field.name: there(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **own)
    return value


def floats(*size):
    return torch.empty(size, dtype=torch.bfloat16, device="cuda")


@pytest.fixture(scope="module")
def runner():
    """The modules that run inside SGLang, which warns of a machine without an accelerator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        standins.install()
        chunk = importlib.import_module("sglang.srt.layers.attention.fla.chunk")
        names = ("gdn", "lightning", "keys")
        own = {
            name: importlib.import_module(f"hypic_engine.plugin.runner.{name}") for name in names
        }
    return SimpleNamespace(chunk=chunk, **own)


@pytest.fixture
def layers(runner, monkeypatch):
    """The modules, with kernels and SGLang's own replaced by the shapes they give."""

    def nothing(*_args, **_options):
        return None

    def tails(stored, segments, *_):
        return stored.new_empty(len(segments), *stored.shape[1:])

    def ends(k, v, _slope, offsets):
        return v.new_empty(len(offsets) - 1, *k.shape[1:], v.shape[2])

    def gates(_rate, a, _b, _bias):
        return a.new_empty(1, *a.shape), a.new_empty(1, *a.shape)

    for place, name, function in (
        (walk_kernel, "walk_pool", nothing),
        (lightning_kernel, "walk_pool", nothing),
        (fill_kernel, "end_states", ends),
        (move_kernel, "move", nothing),
        (tails_kernel, "gather", tails),
        (runner.chunk, "chunk_gated_delta_rule", nothing),
        (runner.gdn.gdn_backend, "causal_conv1d_fn", lambda x, *_, **__: torch.empty_like(x)),
        (runner.gdn.gdn_backend, "fused_gdn_gating", gates),
        (runner.lightning.seg_la, "seg_la_fwd", lambda _q, _k, v, *_, **__: torch.empty_like(v)),
    ):
        monkeypatch.setattr(place, name, function)
    return runner


def stock(n_rows):
    """SGLang's linear backend, as far as a family asks it."""
    cache = SimpleNamespace(
        conv=[floats(SLOTS, CHANNELS, 3)], temporal=floats(SLOTS, HEADS, DIM, DIM)
    )
    pool = SimpleNamespace(mamba2_layer_cache=lambda _: cache, mamba_map={0: 0})
    metadata = SimpleNamespace(
        has_mamba_track_mask=False,
        mamba_cache_indices=torch.empty(n_rows, dtype=torch.int32, device="cuda"),
    )
    extend = SimpleNamespace(extend=lambda _q, _k, v, *_, **__: (torch.empty_like(v), None, None))
    return SimpleNamespace(
        req_to_token_pool=pool,
        forward_metadata=metadata,
        kernel_dispatcher=extend,
        tp_slope=torch.empty(1, HEADS, 1, 1, device="cuda"),
        _track_mamba_state_extend=lambda *_: None,
    )


def pool_of(d_transition, conv_dim):
    shape = Shape(1, HEADS, (DIM, DIM), d_transition, conv_dim, torch.bfloat16)
    return OperatorPool(shape, n_slots=SLOTS, dtype=torch.bfloat16, device="cuda")


def gated_delta_layer(layers, plan):
    family = layers.gdn.GatedDelta(stock(len(plan.last)), pool_of(DIM, CHANNELS), composes=True)
    size = HEADS * DIM
    layer = SimpleNamespace(
        **dict.fromkeys(("q_dim", "k_dim", "v_dim"), size),
        **dict.fromkeys(("num_q_heads", "num_k_heads", "num_v_heads"), HEADS),
        **dict.fromkeys(("head_q_dim", "head_k_dim", "head_v_dim"), DIM),
        **dict.fromkeys(("conv_weights", "bias", "activation", "A_log", "dt_bias")),
        layer_id=0,
    )
    n_tokens = len(plan.positions)
    gates = floats(n_tokens, HEADS)
    return family.extend(plan, layer, Inputs(floats(n_tokens, CHANNELS), gates, gates))


def lightning_layer(layers, plan):
    family = layers.lightning.Lightning(
        stock(len(plan.last)), pool_of(0, 0), None, n_positions=10_000
    )
    q, k, v = (floats(len(plan.positions), HEADS, DIM) for _ in range(3))
    return family.extend(plan, SimpleNamespace(layer_id=0), Inputs(q=q, k=k, v=v))


def keys_of_a_layer(layers, plan):
    cached = object.__new__(layers.keys.CachedKeys)
    buffer = floats(10_000, HEADS, DIM)
    cached._pool = SimpleNamespace(
        get_key_buffer=lambda _: buffer, get_value_buffer=lambda _: buffer, use_mla=False
    )
    cached._layer_ids = [0]
    cached._rotary = Rotary(torch.empty(10_000, DIM, device="cuda"), DIM, True)
    cached.move(plan.moves)


@pytest.mark.parametrize("layer", [gated_delta_layer, lightning_layer, keys_of_a_layer])
def test_many_segments_cost_the_operations_of_two_and_none_waits_for_the_device(layers, layer):
    plans, counts = [plan_of(n) for n in (2, 100)], []
    for plan in plans:
        with FakeTensorMode(), Watched() as watched:
            layer(layers, there(plan))
        counts.append(watched.n_operations)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("ask", [Tensor.tolist, Tensor.nonzero, Tensor.cpu, lambda x: x[x > 0]])
def test_a_layer_that_asks_would_be_found(ask):
    with FakeTensorMode(), Watched(), pytest.raises((RuntimeError, AssertionError)):
        ask(torch.empty(3, device="cuda"))
