"""Hooks on SGLang's argument parser: our flags, and what they need of its own.

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
from . import boot, compatibility, settings


def _defaults(server_args: type) -> dict[str, Any]:
    fields = dataclasses.fields(server_args)
    return {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}


def preset(
    arguments: argparse.Namespace, defaults: Mapping[str, Any], values: Mapping[str, Any]
) -> None:
    """Set fields that the user left at their defaults."""
    for field, value in values.items():
        if getattr(arguments, field, None) == defaults.get(field):
            setattr(arguments, field, value)


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
            preset(arguments, defaults, compatibility.CPU_PRESETS)
        if wanted.enabled:
            compatibility.refuse_conflicts(arguments, defaults, wanted.role)
            preset(arguments, defaults, compatibility.presets(wanted.role))
        compatibility.refuse_keys_that_nobody_asks_for(arguments)
        server_args = original(cls, arguments)
        if not self._host_problem:
            architectures = list(server_args.get_model_config().hf_config.architectures or [])
            if not wanted.enabled:
                compatibility.refuse_prefix_cache(server_args, architectures)
            elif not compatibility.family_of(architectures).prefix_cache_is_exact:
                arguments.disable_radix_cache = True
                server_args = original(cls, arguments)
        folder = Path(tempfile.mkdtemp(prefix="pic-engine-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        wanted = dataclasses.replace(wanted, control_path=str(folder / "control.sock"))
        self._on_read(wanted)
        os.environ[settings.VARIABLE] = wanted.to_json()
        server_args.hypic_boot = boot.Token()
        return server_args
