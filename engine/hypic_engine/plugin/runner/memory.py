"""Hooks on SGLang's memory: a share of what weights leave goes to operators of segments.

Allocates the pool and makes the cache; owns no slot of either.
"""

import uuid
from collections.abc import Callable
from typing import Any

import torch

from ...core.ledger import Ledger
from ...errors import SettingsError
from ..models import families
from ..settings import Settings
from . import pool


def _dtype(settings: Settings, device: str) -> torch.dtype:
    name = settings.state_dtype or ("float32" if device == "cpu" else "bfloat16")
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


class Memory:
    """The operator pool of one scheduler rank."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._gib = settings.memory_gib or 0.0
        self._operators: pool.OperatorPool | None = None
        self.ledger = Ledger(uuid.uuid4().hex)

    @property
    def pool(self) -> pool.OperatorPool:
        """The pool, once SGLang has made its own."""
        if self._operators is None:
            raise RuntimeError("the operator pool is made after SGLang's memory pools")
        return self._operators

    def share(self, original: Callable[..., Any], runner: Any, total_rest_memory: float) -> Any:
        """Around ``handle_max_mamba_cache``: take our share first, in GiB.

        Raises:
            SettingsError: the share leaves nothing for keys and values.
        """
        if self._settings.memory_gib is None:
            self._gib = total_rest_memory * self._settings.memory_fraction
        if self._gib >= total_rest_memory:
            raise SettingsError(
                f"--pic-memory-gib {self._gib:g} leaves nothing of the {total_rest_memory:.2f} GiB "
                "that weights leave for keys and values"
            )
        return original(runner, total_rest_memory - self._gib)

    def allocate(self, result: object, runner: Any, *args: object, **kwargs: object) -> None:
        """After ``init_memory_pool``: make the operator pool.

        Raises:
            SettingsError: not one segment fits.
        """
        family = families.of(runner.model_config.hf_config.architectures)
        assert family is not None  # `arguments` refused every other model
        shape = pool.shape_of(
            runner.req_to_token_pool.mamba_pool, stores_transitions=family.stores_transitions
        )
        dtype = _dtype(self._settings, runner.device)
        n_slots = pool.n_slots(
            shape, dtype=dtype, memory_gib=self._gib, n_kv_tokens=runner.max_total_num_tokens
        )
        if n_slots < 1:
            raise SettingsError(
                f"--pic-memory-gib {self._gib:g} holds no segment; one needs "
                f"{shape.n_bytes(dtype) / pool.GIB:.3f} GiB"
            )
        self._operators = pool.OperatorPool(
            shape, n_slots=n_slots, dtype=dtype, device=runner.device
        )
