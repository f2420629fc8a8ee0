"""What a HypicCluster says reaches the engine, and what the schema lets pass the engine takes."""

import argparse
from typing import Any

import pytest

from hypic_engine import drain
from hypic_engine.plugin import settings
from hypic_operator.core.api import RoleName
from hypic_operator.core.desired import container
from hypic_operator.core.refusals import OWNED_FLAGS

from ..support import resources


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(exit_on_error=False)
    settings.add_arguments(parser)
    return parser


def _read(**pic: Any) -> settings.Settings:
    cluster = resources.cluster(pic=pic)
    arguments, _ = _parser().parse_known_args(container.arguments(cluster, "prefill"))
    return settings.from_arguments(arguments, {})


def test_the_defaults_of_both_are_the_same() -> None:
    bare = settings.from_arguments(_parser().parse_args(["--pic-enable"]), {})
    assert _read() == bare


@pytest.mark.parametrize(
    "mode", ["addition", "transition", "transition_rope", "transition_rope_recompute"]
)
def test_every_field_arrives(mode: str) -> None:
    found = _read(
        mode=mode, separator="--$(S)$ $$", seam="0.25", minSegmentTokens=9, maxSegments=17
    )
    assert found.enabled
    assert found.mode == mode
    expanded = found.separator.replace("$$", "$")  # as the kubelet hands it on
    assert expanded == "--$(S)$ $$"
    assert found.seam_width == 0.25
    assert (found.min_tokens, found.max_segments) == (9, 17)


@pytest.mark.parametrize("seam", [0, "0", "1.0", ".5", 8, "4096"])
def test_what_the_schema_lets_pass_the_engine_takes(seam: int | str) -> None:
    assert _read(seam=seam).seam_width == float(seam)


def test_a_pod_that_anybody_ends_drains_by_the_engines_own_command() -> None:
    cluster = resources.cluster(drain={"timeoutSeconds": 7})
    made = container.container(cluster, "prefill", resources.POLICY, "e")
    command = made["lifecycle"]["preStop"]["exec"]["command"]
    assert command[:3] == ["python3", "-m", drain.__name__]
    assert drain.main([*command[3:], "--url", "http://127.0.0.1:9"]) == 0  # nobody is there


def test_without_time_to_drain_nothing_is_waited_for() -> None:
    cluster = resources.cluster(drain={"timeoutSeconds": 0})
    assert "lifecycle" not in container.container(cluster, "prefill", resources.POLICY, "e")


def _flags(role: RoleName, **spec: Any) -> set[str]:
    arguments = container.arguments(resources.cluster(**spec), role)
    return {item.split("=")[0] for item in arguments if item.startswith("--")}


def test_the_flags_that_only_the_operator_sets_are_the_ones_it_sets() -> None:
    apart: dict[str, Any] = {"pic": {"memory": "10%"}, "decode": {}}
    aliases = {"--model", "--tensor-parallel-size"}
    assert _flags("prefill", **apart) == set(OWNED_FLAGS) - aliases
    assert _flags("decode", **apart) < set(OWNED_FLAGS)


@pytest.mark.parametrize(
    ("memory", "gib", "fraction"),
    [("16Gi", 16.0, 0.25), ("1536Mi", 1.5, 0.25), ("12.5%", None, 0.125)],
)
def test_the_memory_arrives(memory: str, gib: float | None, fraction: float) -> None:
    found = _read(memory=memory)
    assert (found.memory_gib, found.memory_fraction) == (gib, fraction)


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_roles_that_are_apart_say_so_to_sglang(role: RoleName) -> None:
    arguments = container.arguments(resources.cluster(decode={}), role)
    assert arguments[arguments.index("--disaggregation-mode") + 1] == role
    if role == "prefill":
        assert arguments[arguments.index("--disaggregation-bootstrap-port") + 1] == "8998"
    else:
        assert "--disaggregation-bootstrap-port" not in arguments


def test_one_role_alone_says_nothing_of_roles() -> None:
    assert not any("disaggregation" in flag for flag in _flags("prefill"))
