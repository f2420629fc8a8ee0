"""The configuration of Ring-linear-2.0, which SGLang 0.5.14 knows only as Bailing 2.5's.

The same linear layers; full attention is grouped-query, not latent. Registers itself with
transformers and with SGLang, in every process that reads a model's configuration.
"""

from typing import Any

from sglang.srt.configs.bailing_hybrid import BailingHybridConfig
from sglang.srt.utils.hf_transformers import common
from transformers import AutoConfig


class RingLinearConfig(BailingHybridConfig):  # type: ignore[misc]
    """``config.json`` of Ring-mini-linear-2.0 and Ring-flash-linear-2.0."""

    model_type = "bailing_moe_linear"

    def __init__(self, **fields: Any) -> None:  # transformers makes another where there is none
        super().__init__(**fields)
        self.full_attention_type = "gqa"


def register() -> None:
    """Let a ``config.json`` of this type be read as ours, also where it names remote code."""
    AutoConfig.register(RingLinearConfig.model_type, RingLinearConfig, exist_ok=True)
    common._CONFIG_REGISTRY[RingLinearConfig.model_type] = RingLinearConfig  # noqa: SLF001
