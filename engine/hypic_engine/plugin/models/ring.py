"""Ring-linear-2.0 (mini and flash) under the names of its checkpoints.

SGLang 0.5.14 has the layers (Bailing 2.5, with its grouped-query branch) but registers neither
name. ``SGLANG_EXTERNAL_MODEL_PACKAGE`` makes it find them here.
"""

from typing import Any

from sglang.srt.models import bailing_moe_linear as stock

from .. import cpu

if cpu.wanted():
    cpu.complete_bailing()


class _Ring(stock.BailingMoELinearForCausalLM):  # type: ignore[misc]
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # The layer's communicator adds up the ranks' parts; the stock projection did it before.
        for module in self.modules():
            if isinstance(module, stock.BailingMoEAttention):
                module.dense.reduce_results = False


class BailingMoeLinearForCausalLM(_Ring):
    """First name of the architecture."""


class BailingMoeLinearV2ForCausalLM(_Ring):
    """The name in Ring-linear-2.0's ``config.json``."""


EntryClass = [BailingMoeLinearForCausalLM, BailingMoeLinearV2ForCausalLM]
