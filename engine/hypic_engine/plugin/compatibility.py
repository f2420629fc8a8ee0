"""SGLang's flags beside segment caching: what works, what is preset, what is refused.

Reads flags and models' names; starts nothing.
"""

import argparse
from collections.abc import Mapping
from typing import Any

from ..errors import SettingsError
from .models import families

BACKEND = "hypic"

# field -> (flag, values that work, value that is preset)
REQUIRED: Mapping[str, tuple[str, tuple[Any, ...], Any]] = {
    "page_size": ("--page-size", (1,), 1),
    "chunked_prefill_size": ("--chunked-prefill-size", (-1,), -1),
    "radix_cache_backend": ("--radix-cache-backend", (), BACKEND),
    "enable_multimodal": ("--enable-multimodal", (False,), False),
    "cuda_graph_backend_prefill": ("--cuda-graph-backend-prefill", ("disabled",), "disabled"),
    "attention_backend": ("--attention-backend", ("triton", "torch_native"), "triton"),
    "prefill_attention_backend": ("--prefill-attention-backend", (), None),
    "decode_attention_backend": ("--decode-attention-backend", (), None),
    "linear_attn_backend": ("--linear-attn-backend", ("triton",), None),
    "linear_attn_prefill_backend": ("--linear-attn-prefill-backend", ("triton",), None),
    "linear_attn_decode_backend": ("--linear-attn-decode-backend", ("triton",), None),
    "kv_cache_dtype": ("--kv-cache-dtype", ("auto", "bfloat16", "bf16"), None),
    "enable_int8_mamba_checkpoint": ("--enable-int8-mamba-checkpoint", (False,), None),
    "speculative_algorithm": ("--speculative-algorithm", (), None),
    "dllm_algorithm": ("--dllm-algorithm", (), None),
    "enable_lora": ("--enable-lora", (False,), None),
    "lora_paths": ("--lora-paths", (), None),
    "enable_hierarchical_cache": ("--enable-hierarchical-cache", (False,), None),
    "enable_lmcache": ("--enable-lmcache", (False,), None),
    "enable_hisparse": ("--enable-hisparse", (False,), None),
    "enable_mixed_chunk": ("--enable-mixed-chunk", (False,), None),
    "enable_dynamic_chunking": ("--enable-dynamic-chunking", (False,), None),
    "enable_two_batch_overlap": ("--enable-two-batch-overlap", (False,), None),
    "enable_pdmux": ("--enable-pdmux", (False,), None),
    "enable_streaming_session": ("--enable-streaming-session", (False,), None),
    "enable_dp_attention": ("--enable-dp-attention", (False,), None),
    "pp_size": ("--pipeline-parallel-size", (1,), None),
    "dp_size": ("--data-parallel-size", (1,), None),
    "attn_cp_size": ("--attention-context-parallel-size", (1,), None),
    "tokenizer_worker_num": ("--tokenizer-worker-num", (1,), None),
    "enable_dynamic_batch_tokenizer": ("--enable-dynamic-batch-tokenizer", (False,), None),
    "grpc_mode": ("--grpc-mode", (False,), None),
    "encoder_only": ("--encoder-only", (False,), None),
    "language_only": ("--language-only", (False,), None),
}

# A decode server takes prompts apart as its prefill server does; the rest of it is SGLang's own.
REQUIRED_OF_DECODE = (
    *("enable_multimodal", "tokenizer_worker_num"),
    *("enable_dynamic_batch_tokenizer", "grpc_mode"),
)

CPU_PRESETS: Mapping[str, Any] = {
    "device": "cpu",
    "dtype": "float32",
    "attention_backend": "torch_native",
    "sampling_backend": "pytorch",
    "grammar_backend": "none",
    "cuda_graph_backend_decode": "disabled",
    "cuda_graph_backend_prefill": "disabled",
    "sleep_on_idle": True,
    "max_total_tokens": 65_536,
    "max_running_requests": 8,
    "max_mamba_cache_size": 128,
    # Sizes are bounded above; a small fraction fails when others take memory while weights load.
    "mem_fraction_static": 0.5,
    "skip_server_warmup": True,
    "disaggregation_transfer_backend": "mooncake_tcp",
    "enable_multimodal": False,
}


def _required(role: str) -> Mapping[str, tuple[str, tuple[Any, ...], Any]]:
    if role != "decode":
        return REQUIRED
    return {field: REQUIRED[field] for field in REQUIRED_OF_DECODE}


def presets(role: str) -> dict[str, Any]:
    """What flags that the user left alone become with ``--pic-enable``."""
    values = {field: value for field, (_, _, value) in _required(role).items() if value is not None}
    return values | {"disable_radix_cache": True} if role == "decode" else values


def refuse_conflicts(
    arguments: argparse.Namespace, defaults: Mapping[str, Any], role: str = "both"
) -> None:
    """Raise for the first of SGLang's flags that cannot go with ``--pic-enable``.

    Raises:
        SettingsError: names both flags and what works.
    """
    for field, (flag, allowed, _) in _required(role).items():
        value = getattr(arguments, field, None)
        if value is None or value in allowed or value == defaults.get(field):
            continue
        works = f"use {flag} {allowed[0]}" if allowed else f"leave {flag} out"
        raise SettingsError(f"{flag} {value} cannot be combined with --pic-enable; {works}")


def refuse_keys_that_nobody_asks_for(arguments: argparse.Namespace) -> None:
    """Raise when a key is set where SGLang 0.5.14 would leave every route open to everybody.

    Raises:
        SettingsError: names both flags.
    """
    n_workers = getattr(arguments, "tokenizer_worker_num", 1)
    for field, flag in (("admin_api_key", "--admin-api-key"), ("api_key", "--api-key")):
        if getattr(arguments, field, None) and n_workers > 1:
            raise SettingsError(
                f"{flag} cannot be combined with --tokenizer-worker-num {n_workers}, with which "
                "SGLang 0.5.14 asks nobody for a key; use --tokenizer-worker-num 1"
            )


def family_of(architectures: list[str]) -> families.Family:
    """The model's kind of linear attention.

    Raises:
        SettingsError: this plugin cannot compose it; names the architecture and those that work.
    """
    family = families.of(architectures)
    if family is None:
        known = sorted(name for family in families.ALL for name in family.architectures)
        raise SettingsError(
            f"--pic-enable needs a hybrid model with linear attention; --model-path holds "
            f"{', '.join(architectures) or 'no architecture'}, supported are {', '.join(known)}"
        )
    return family


def refuse_prefix_cache(server_args: Any, architectures: list[str]) -> None:
    """Raise when a model of ours would be served with a prefix cache that is wrong for it.

    Raises:
        SettingsError: says what to add.
    """
    if families.RING & set(architectures) and not server_args.disable_radix_cache:
        raise SettingsError(
            f"{architectures[0]} needs --disable-radix-cache or --pic-enable: SGLang 0.5.14's "
            "prefix cache gives wrong tokens for Lightning attention"
        )
