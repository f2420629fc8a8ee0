"""Flags and variables of the plugin, read once into a frozen value.

The main process writes it to one environment variable; every process it starts reads it there.
Does not know SGLang's own flags: `arguments` checks the two against each other.
"""

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from ..contract import segments
from ..core.layout import Seam
from ..errors import SettingsError

VARIABLE = "HYPIC_CONFIG"
SEAM_VARIABLE = "PIC_SEAM_SINK"
CHECK_VARIABLE = "HYPIC_CHECK_OWNERSHIP"


class Mode(StrEnum):
    """How cached segments become a prompt's state; each adds one step to the one before."""

    ADDITION = "addition"
    TRANSITION = "transition"
    TRANSITION_ROPE = "transition_rope"
    TRANSITION_ROPE_RECOMPUTE = "transition_rope_recompute"

    @property
    def composes(self) -> bool:
        """Whether states are composed with transition operators, not summed."""
        return self is not Mode.ADDITION

    @property
    def moves_keys(self) -> bool:
        """Whether keys are rotated to their true positions."""
        return self in (Mode.TRANSITION_ROPE, Mode.TRANSITION_ROPE_RECOMPUTE)

    @property
    def recomputes_seams(self) -> bool:
        """Whether the first tokens of each segment are recomputed in place."""
        return self is Mode.TRANSITION_ROPE_RECOMPUTE


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked of position-independent caching.

    Attributes:
        enabled: whether segments are cached at all.
        mode: see `Mode`.
        separator: string that cuts a prompt into segments.
        seam_width: 0 none, at most 1 a fraction of the segment, above 1 tokens.
        min_tokens: shorter segments are computed in place.
        max_segments: most segments a prompt may have.
        memory_gib: memory for operators; ``None`` takes ``memory_fraction`` of what is left.
        memory_fraction: share of what weights leave.
        state_dtype: dtype of stored operators; empty picks float32 on CPU, bfloat16 elsewhere.
        store_plain: whether prompts without separators become segments, on probation.
        role: ``prefill`` or ``decode`` where the two are apart, else ``both``.
        control_path: Unix socket on which the scheduler answers questions about its cache.
        check_ownership: whether to recount all pools after every change; for tests.
    """

    enabled: bool = False
    mode: Mode = Mode.TRANSITION_ROPE_RECOMPUTE
    separator: str = segments.DEFAULT_SEPARATOR
    seam_width: float = 8
    min_tokens: int = 6
    max_segments: int = segments.DEFAULT_MAX_SEGMENTS
    memory_gib: float | None = None
    memory_fraction: float = 0.25
    state_dtype: str = ""
    store_plain: bool = True
    role: str = "both"
    control_path: str = ""
    check_ownership: bool = False

    @property
    def caches(self) -> bool:
        """Whether this server holds segments; a decode server only takes prompts apart."""
        return self.enabled and self.role != "decode"

    @property
    def seam(self) -> Seam:
        """The seam that is in force in this mode."""
        return Seam(self.seam_width if self.mode.recomputes_seams else 0)

    def to_json(self) -> str:
        """For the environment variable."""
        return json.dumps(asdict(self))


DEFAULTS = Settings()


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """What the main process decided; disabled when it said nothing."""
    raw = environment.get(VARIABLE)
    if not raw:
        return Settings()
    fields = json.loads(raw)
    return Settings(**(fields | {"mode": Mode(fields["mode"])}))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the plugin's flags to SGLang's parser."""
    group = parser.add_argument_group("position-independent caching (hypic)")
    group.add_argument(
        "--pic-enable", action="store_true", help="cache segments and reuse them at any position"
    )
    group.add_argument(
        "--pic-mode",
        choices=[mode.value for mode in Mode],
        default=DEFAULTS.mode.value,
        help="how cached segments are composed (default: %(default)s)",
    )
    group.add_argument(
        "--pic-separator-str",
        default=DEFAULTS.separator,
        help="string that ends a segment; it never reaches the model (default: %(default)s)",
    )
    group.add_argument(
        "--pic-seam",
        default=None,
        help=f"seam: 0 none, up to 1 a fraction, above 1 tokens (default: {SEAM_VARIABLE} or 8)",
    )
    group.add_argument(
        "--pic-segment-min-tokens",
        type=int,
        default=DEFAULTS.min_tokens,
        help="shorter segments are computed in place (default: %(default)s)",
    )
    group.add_argument(
        "--pic-max-segments",
        type=int,
        default=DEFAULTS.max_segments,
        help="most segments a prompt may have (default: %(default)s)",
    )
    group.add_argument(
        "--pic-memory-gib",
        default=None,
        help="memory for operators in GiB, or a fraction as 0.25x (default: 0.25x of what is left)",
    )
    group.add_argument(
        "--pic-state-dtype",
        choices=["bfloat16", "float32"],
        default=None,
        help="dtype of stored operators (default: float32 on CPU, else bfloat16)",
    )
    group.add_argument(
        "--pic-store-plain",
        choices=["on", "off"],
        default="on",
        help="whether prompts without separators become segments (default: %(default)s)",
    )


def _number(flag: str, raw: str) -> float:
    try:
        return float(raw)
    except ValueError:
        raise SettingsError(f"{flag} {raw!r} is not a number") from None


def _memory(raw: str | None) -> tuple[float | None, float]:
    if raw is None:
        return None, DEFAULTS.memory_fraction
    value = _number("--pic-memory-gib", raw.removesuffix("x"))
    if value <= 0 or (raw.endswith("x") and value >= 1):
        raise SettingsError(
            f"--pic-memory-gib {raw} must be above 0 GiB, or a fraction between 0x and 1x"
        )
    return (None, value) if raw.endswith("x") else (value, DEFAULTS.memory_fraction)


def from_arguments(
    arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ
) -> Settings:
    """The settings on a command line.

    Raises:
        SettingsError: a value cannot work; the message names the flag and what is allowed.
    """
    raw_seam = arguments.pic_seam
    seam_flag = "--pic-seam"
    if raw_seam is None:
        raw_seam, seam_flag = environment.get(SEAM_VARIABLE, "8"), SEAM_VARIABLE
    seam_width = _number(seam_flag, str(raw_seam))
    if not 0 <= seam_width <= 4096:  # noqa: PLR2004 - also refuses NaN
        raise SettingsError(f"{seam_flag} {raw_seam} must be between 0 and 4096")
    if not arguments.pic_separator_str.strip():
        raise SettingsError("--pic-separator-str must not be empty or blank")
    for flag, value in (
        ("--pic-segment-min-tokens", arguments.pic_segment_min_tokens),
        ("--pic-max-segments", arguments.pic_max_segments),
    ):
        if value < 1:
            raise SettingsError(f"{flag} {value} must be 1 or more")
    memory_gib, memory_fraction = _memory(arguments.pic_memory_gib)
    return Settings(
        enabled=arguments.pic_enable,
        mode=Mode(arguments.pic_mode),
        separator=arguments.pic_separator_str,
        seam_width=seam_width,
        min_tokens=arguments.pic_segment_min_tokens,
        max_segments=arguments.pic_max_segments,
        memory_gib=memory_gib,
        memory_fraction=memory_fraction,
        state_dtype=arguments.pic_state_dtype or "",
        store_plain=arguments.pic_store_plain == "on",
        check_ownership=environment.get(CHECK_VARIABLE) == "1",
    )
