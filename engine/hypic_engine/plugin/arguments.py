"""Our flags against SGLang's own: what is preset, and what cannot go together.

A value the user gave is never overridden: it is accepted or refused with both flags named.
"""

import argparse
import atexit
import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import HypicError, SettingsError
from . import boot, settings
from .models import families

BACKEND = "hypic"

# field -> (flag, values that work, value that is preset)
_REQUIRED: Mapping[str, tuple[str, tuple[Any, ...], Any]] = {
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
    "encoder_only": ("--encoder-only", (False,), None),
    "language_only": ("--language-only", (False,), None),
}

# A decode server takes prompts apart as its prefill server does; the rest of it is SGLang's own.
_REQUIRED_OF_DECODE = ("enable_multimodal",)

_CPU_PRESETS: Mapping[str, Any] = {
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


def _defaults(server_args: type) -> dict[str, Any]:
    fields = dataclasses.fields(server_args)
    return {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}


def _required(role: str) -> Mapping[str, tuple[str, tuple[Any, ...], Any]]:
    if role != "decode":
        return _REQUIRED
    return {field: _REQUIRED[field] for field in _REQUIRED_OF_DECODE}


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


def preset(
    arguments: argparse.Namespace, defaults: Mapping[str, Any], values: Mapping[str, Any]
) -> None:
    """Set fields that the user left at their defaults."""
    for field, value in values.items():
        if getattr(arguments, field, None) == defaults.get(field):
            setattr(arguments, field, value)


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


class Keywords(argparse.Namespace):
    """Arguments that a program gives, which wants an exception where a command line ends."""


class Arguments:
    """Hooks on SGLang's argument parser."""

    def __init__(
        self,
        *,
        on_cpu: bool,
        host_problem: str | None,
        on_read: Callable[[settings.Settings], None],
    ) -> None:
        self._on_cpu = on_cpu
        self._host_problem = host_problem
        self._on_read = on_read

    def add(self, result: object, parser: argparse.ArgumentParser) -> None:
        """After ``ServerArgs.add_cli_args``."""
        settings.add_arguments(parser)

    def read(self, original: Callable[..., Any], cls: type, arguments: argparse.Namespace) -> Any:
        """Around ``ServerArgs.from_cli_args``: check, preset, and tell the children."""
        try:
            return self._read(original, cls, arguments)
        except HypicError as error:
            if isinstance(arguments, Keywords):
                raise
            sys.stderr.write(f"error: {error}\n")
            raise SystemExit(2) from None

    def _read(self, original: Callable[..., Any], cls: type, arguments: argparse.Namespace) -> Any:
        mode = getattr(arguments, "disaggregation_mode", "null")
        role = "both" if mode == "null" else mode
        wanted = dataclasses.replace(settings.from_arguments(arguments), role=role)
        if wanted.enabled and self._host_problem:
            raise SettingsError(f"--pic-enable: {self._host_problem}")
        defaults = _defaults(cls)
        if self._on_cpu:
            preset(arguments, defaults, _CPU_PRESETS)
        if wanted.enabled:
            refuse_conflicts(arguments, defaults, wanted.role)
            presets = {f: v for f, (_, _, v) in _required(wanted.role).items() if v is not None}
            if wanted.role != "both":
                presets["disable_radix_cache"] = True
            preset(arguments, defaults, presets)
        server_args = original(cls, arguments)
        if not self._host_problem:
            architectures = list(server_args.get_model_config().hf_config.architectures or [])
            if not wanted.enabled:
                refuse_prefix_cache(server_args, architectures)
            elif not family_of(architectures).prefix_cache_is_exact:
                arguments.disable_radix_cache = True
                server_args = original(cls, arguments)
        folder = Path(tempfile.mkdtemp(prefix="pic-engine-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        wanted = dataclasses.replace(wanted, control_path=str(folder / "control.sock"))
        self._on_read(wanted)
        os.environ[settings.VARIABLE] = wanted.to_json()
        server_args.hypic_boot = boot.Token()
        return server_args
