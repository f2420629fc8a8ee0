"""``hypic_engine.Engine``: SGLang's offline engine with the plugin's flags as keyword arguments.

Importing this loads SGLang and its plugins. Adds no method: everything but the start is SGLang's.
"""

import argparse
import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from sglang.srt.plugins import load_plugins

load_plugins()  # before the rest of SGLang: on a CPU the plugin supplies what it lacks

from sglang.srt.entrypoints.engine import Engine as Host  # noqa: E402
from sglang.srt.server_args import ServerArgs  # noqa: E402

from ..errors import SettingsError  # noqa: E402
from . import settings  # noqa: E402
from .arguments import Keywords  # noqa: E402

PREFIX = "pic_"


class Engine(Host):  # type: ignore[misc]
    """``sglang.Engine`` that takes ``pic_enable=True``, ``pic_mode=...`` and so on.

    Every flag ``--pic-x-y`` is the keyword ``pic_x_y``; all other keywords are SGLang's. As with
    ``sglang.Engine``, start it under ``if __name__ == "__main__":``. Engines of one process share
    the settings of its tokenizer; others are refused.

    Raises:
        SettingsError: a value cannot work, or two cannot go together; the message names the flags.
    """

    def __init__(self, **kwargs: Any) -> None:
        ours = {name: value for name, value in kwargs.items() if name.startswith(PREFIX)}
        hosts = {name: value for name, value in kwargs.items() if name not in ours}
        server_args = ServerArgs.from_cli_args(_arguments(ours, hosts))
        super().__init__(server_args=server_args)

    def shutdown(self) -> None:
        """Stop; what this process starts afterwards is not told of these settings."""
        super().shutdown()
        os.environ.pop(settings.VARIABLE, None)


def _arguments(ours: Mapping[str, Any], hosts: Mapping[str, Any]) -> Keywords:
    """What the command line would have said."""
    arguments = Keywords(log_level="error")
    for field in dataclasses.fields(ServerArgs):
        if field.default is not dataclasses.MISSING and field.name != "log_level":
            setattr(arguments, field.name, field.default)
        elif field.default_factory is not dataclasses.MISSING:
            setattr(arguments, field.name, field.default_factory())
    vars(arguments).update(hosts)
    parser = argparse.ArgumentParser(exit_on_error=False, add_help=False, allow_abbrev=False)
    settings.add_arguments(parser)
    try:
        _, unknown = parser.parse_known_args(_command_line(ours), arguments)
    except argparse.ArgumentError as error:
        raise SettingsError(str(error)) from None
    if unknown:
        raise SettingsError(f"{unknown[0]} is no flag of this plugin")
    return arguments


def _command_line(ours: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in ours.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not False and value is not None:
            words.append(f"{flag}={value}")
    return words
