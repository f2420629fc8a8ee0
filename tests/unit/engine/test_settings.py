import argparse
from pathlib import Path

import pytest

import hypic_engine
from hypic_engine.errors import SettingsError
from hypic_engine.plugin import settings
from hypic_engine.plugin.settings import Mode, Settings


def parsed(*flags: str, environment=None) -> Settings:
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    return settings.from_arguments(parser.parse_args(flags), environment or {})


def test_nothing_said_means_off_and_the_seeds_defaults():
    assert parsed() == Settings()
    assert (parsed().mode, parsed().seam_width) == (Mode.TRANSITION_ROPE_RECOMPUTE, 8)


def test_every_flag_is_read():
    flags = ["--pic-enable", "--pic-mode", "transition", "--pic-separator-str", "|||"]
    flags += ["--pic-seam", "0.5", "--pic-segment-min-tokens", "9", "--pic-max-segments", "7"]
    flags += ["--pic-memory-gib", "3.5", "--pic-state-dtype", "float32", "--pic-store-plain", "off"]
    assert parsed(*flags) == Settings(
        enabled=True,
        mode=Mode.TRANSITION,
        separator="|||",
        seam_width=0.5,
        min_tokens=9,
        max_segments=7,
        memory_gib=3.5,
        state_dtype="float32",
        store_plain=False,
    )


def test_the_seam_comes_from_the_variable_unless_a_flag_says_otherwise():
    assert parsed(environment={"PIC_SEAM_SINK": "16"}).seam_width == 16
    assert parsed("--pic-seam", "4", environment={"PIC_SEAM_SINK": "16"}).seam_width == 4


def test_memory_may_be_a_fraction():
    assert parsed("--pic-memory-gib", "0.4x").memory_fraction == 0.4
    assert parsed("--pic-memory-gib", "0.4x").memory_gib is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--pic-separator-str", ""], "--pic-separator-str must not be empty"),
        (["--pic-separator-str", "  "], "--pic-separator-str must not be empty"),
        (["--pic-seam=-1"], "--pic-seam -1 must be between 0 and 4096"),
        (["--pic-seam", "nan"], "--pic-seam nan must be between 0 and 4096"),
        (["--pic-seam", "wide"], "--pic-seam 'wide' is not a number"),
        (["--pic-segment-min-tokens", "0"], "--pic-segment-min-tokens 0 must be 1 or more"),
        (["--pic-max-segments", "-2"], "--pic-max-segments -2 must be 1 or more"),
        (["--pic-memory-gib", "0"], "--pic-memory-gib 0 must be above 0"),
        (["--pic-memory-gib", "2x"], "--pic-memory-gib 2x must be above 0"),
    ],
)
def test_a_value_that_cannot_work_is_refused_by_name(flags, message):
    with pytest.raises(SettingsError) as error:
        parsed(*flags)
    assert str(error.value).startswith(message)


def test_a_bad_variable_is_named_too():
    with pytest.raises(SettingsError, match="PIC_SEAM_SINK"):
        parsed(environment={"PIC_SEAM_SINK": "many"})


def test_an_unknown_mode_is_refused_with_those_that_exist(capsys):
    with pytest.raises(SystemExit):
        parsed("--pic-mode", "fancy")
    said = capsys.readouterr().err
    assert "--pic-mode" in said
    assert "transition_rope_recompute" in said


def test_settings_travel_through_the_environment():
    sent = Settings(enabled=True, mode=Mode.ADDITION, memory_gib=1.5, control_path="/tmp/x")
    assert settings.from_environment({settings.VARIABLE: sent.to_json()}) == sent
    assert settings.from_environment({}) == Settings()


@pytest.mark.parametrize(
    ("mode", "composes", "moves", "recomputes"),
    [
        (Mode.ADDITION, False, False, False),
        (Mode.TRANSITION, True, False, False),
        (Mode.TRANSITION_ROPE, True, True, False),
        (Mode.TRANSITION_ROPE_RECOMPUTE, True, True, True),
    ],
)
def test_each_mode_adds_one_step(mode, composes, moves, recomputes):
    assert (mode.composes, mode.moves_keys, mode.recomputes_seams) == (composes, moves, recomputes)


def test_only_the_last_mode_has_seams():
    assert Settings(mode=Mode.TRANSITION_ROPE).seam.n_tokens(100) == 0
    assert Settings().seam.n_tokens(100) == 8


def test_only_these_modules_look_at_the_environment():
    package = Path(hypic_engine.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "os.environ" in path.read_text()
    }
    own = ("settings", "arguments", "entry", "engine", "cpu/__init__")
    plugin = {f"plugin/{name}.py" for name in own}
    assert found == {"drain.py", "ops/choice.py", *plugin}
