from collections.abc import Mapping

import pytest

from hypic_operator import settings
from hypic_operator.errors import SettingsError

ROUTER = ("--router-image", "r:1")


def _settings(*arguments: str, **environment: str) -> settings.Settings:
    return settings.settings(arguments, environment)


def test_little_is_asked_for() -> None:
    found = _settings(*ROUTER)
    assert found.policy.router_image == "r:1"
    assert found.policy.engine_image == ""
    assert not found.policy.allow_host_path
    assert found.namespaces == ()
    assert (found.metrics_port, found.health_port) == (9090, 8080)


def test_flags_win_over_variables() -> None:
    found = _settings("--engine-image", "e:flag", HYPIC_ENGINE_IMAGE="e", HYPIC_ROUTER_IMAGE="r")
    assert found.policy.engine_image == "e:flag"
    assert found.policy.router_image == "r"


def test_namespaces_come_from_flags_or_a_list() -> None:
    flags = ("--namespace", "a", "--namespace", "b", "--namespace", "a")
    assert _settings(*ROUTER, *flags).namespaces == ("a", "b")
    assert _settings(*ROUTER, HYPIC_NAMESPACES="a, b,").namespaces == ("a", "b")


@pytest.mark.parametrize(("text", "allowed"), [("true", True), ("0", False), ("", False)])
def test_a_switch_is_read_from_its_variable(text: str, *, allowed: bool) -> None:
    found = _settings(*ROUTER, HYPIC_ALLOW_HOST_PATH=text)
    assert found.policy.allow_host_path is allowed


def test_a_switch_is_set_by_its_flag() -> None:
    assert _settings(*ROUTER, "--allow-host-path").policy.allow_host_path


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "--router-image or HYPIC_ROUTER_IMAGE"),
        ({"HYPIC_ROUTER_IMAGE": "r", "HYPIC_METRICS_PORT": "x"}, "--metrics-port"),
        ({"HYPIC_ROUTER_IMAGE": "r", "HYPIC_RESYNC_S": "0"}, "at least 1"),
        ({"HYPIC_ROUTER_IMAGE": "r", "HYPIC_ALLOW_HOST_PATH": "perhaps"}, "true or false"),
        ({"HYPIC_ROUTER_IMAGE": "r", "HYPIC_IMAGE_PULL_POLICY": "Often"}, "IfNotPresent"),
        ({"HYPIC_ROUTER_IMAGE": "r", "HYPIC_LOG_LEVEL": "loud"}, "--log-level"),
        ({"HYPIC_ROUTER_IMAGE": "r", "HYPIC_LOG_FORMAT": "xml"}, "--log-format"),
        ({"HYPIC_ROUTER_IMAGE": "r", "HYPIC_LEASE": "operator"}, "NAMESPACE/NAME"),
        ({"HYPIC_ROUTER_IMAGE": "r", "HYPIC_KEY_SECRET": "a/"}, "--key-secret"),
    ],
)
def test_a_value_that_cannot_work_is_named(environment: Mapping[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        settings.settings((), environment)
