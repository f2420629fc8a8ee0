"""Flags and environment -> frozen Settings; the only reader of the environment.

Connects to nothing.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .core.refusals import Policy
from .errors import SettingsError

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"", "0", "false", "no", "off"}
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator was started with.

    Attributes:
        namespaces: where it works; empty for the whole cluster.
        policy: what HypicClusters get and may have.
        lease: namespace/name of the Lease that the one who acts must hold; empty for none.
        key_secret: namespace/name of the Secret with what its keys are made of; empty for none.
        metrics_port: of Prometheus metrics; 0 for none.
        health_port: of /healthz; 0 for none.
        probe_period_s: how often a token is asked for at rest.
        scale_period_s: how often the load of engines is read that it scales.
        resync_s: how often everything is looked at without a cause.
        log_level: least level that is logged.
        log_format: text or json.
        kubeconfig: file that says how to reach the API server; empty inside a cluster.
    """

    policy: Policy
    namespaces: tuple[str, ...] = ()
    lease: str = ""
    key_secret: str = ""
    metrics_port: int = 9_090
    health_port: int = 8_080
    probe_period_s: float = 60.0
    scale_period_s: float = 15.0
    resync_s: float = 300.0
    log_level: str = "info"
    log_format: str = "text"
    kubeconfig: str = ""


def parser() -> argparse.ArgumentParser:
    """The command line; each flag has a variable ``HYPIC_...`` that it overrides."""
    flags = argparse.ArgumentParser(
        "hypic-operator", description="Make the cluster match its HypicCluster resources."
    )
    add = flags.add_argument
    add("--namespace", action="append", help="work only there; may be repeated")
    add("--engine-image", help="image of engines whose spec names none")
    add("--router-image", help="image of routers; required")
    add("--image-pull-policy", help="where the spec does not say (IfNotPresent)")
    add("--allow-host-path", action="store_true", default=None, help="let folders of nodes be used")
    add("--lease", help="NAMESPACE/NAME of the Lease that the one of several operators holds")
    add("--key-secret", help="NAMESPACE/NAME of a Secret, to keep what its keys are made of")
    add("--metrics-port", help="of Prometheus metrics; 0 for none (9090)")
    add("--health-port", help="of GET /healthz; 0 for none (8080)")
    add("--probe-period-s", help="how often a token is asked for at rest (60)")
    add("--scale-period-s", help="how often the load of engines is read that it scales (15)")
    add("--resync-s", help="how often everything is looked at without a cause (300)")
    add("--log-level", help="debug, info, warning or error (info)")
    add("--log-format", help="text or json (text)")
    return flags


def settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """The settings in flags, then variables, then defaults.

    Raises:
        SettingsError: a value cannot work; the message names flag and variable.
    """
    given = vars(parser().parse_args(arguments))

    def value(name: str, default: str) -> str:
        flag = given[name]
        found = flag if flag is not None else environment.get(f"HYPIC_{name.upper()}") or default
        return str(found)

    def choice(name: str, default: str, allowed: Sequence[str]) -> str:
        return _one_of(name, value(name, default), allowed)

    listed = environment.get("HYPIC_NAMESPACES", "").split(",")
    namespaces = given["namespace"] or [item.strip() for item in listed if item.strip()]
    policy = Policy(
        router_image=value("router_image", ""),
        engine_image=value("engine_image", ""),
        pull_policy=choice("image_pull_policy", "IfNotPresent", _PULL_POLICIES),
        allow_host_path=_switch("allow_host_path", value("allow_host_path", "false")),
        operator_namespace=value("lease", "").partition("/")[0],
    )
    if not policy.router_image:
        raise SettingsError("--router-image or HYPIC_ROUTER_IMAGE: give the image of routers")
    return Settings(
        policy,
        tuple(dict.fromkeys(namespaces)),
        lease=_place("lease", value("lease", "")),
        key_secret=_place("key_secret", value("key_secret", "")),
        metrics_port=int(_number("metrics_port", value("metrics_port", "9090"), least=0)),
        health_port=int(_number("health_port", value("health_port", "8080"), least=0)),
        probe_period_s=_number("probe_period_s", value("probe_period_s", "60"), least=1),
        scale_period_s=_number("scale_period_s", value("scale_period_s", "15"), least=1),
        resync_s=_number("resync_s", value("resync_s", "300"), least=1),
        log_level=choice("log_level", "info", ("debug", "info", "warning", "error")),
        log_format=choice("log_format", "text", ("text", "json")),
        kubeconfig=environment.get("KUBECONFIG", ""),
    )


def from_process(arguments: Sequence[str]) -> Settings:
    """The settings of this process."""
    return settings(arguments, os.environ)


def _named(name: str) -> str:
    return f"--{name.replace('_', '-')} or HYPIC_{name.upper()}"


def _place(name: str, text: str) -> str:
    if not text or [bool(part) for part in text.split("/")] == [True, True]:
        return text
    raise SettingsError(f"{_named(name)}: NAMESPACE/NAME, not {text!r}")


def _switch(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise SettingsError(f"{_named(name)}: true or false, not {text!r}")


def _one_of(name: str, text: str, allowed: Sequence[str]) -> str:
    if text in allowed:
        return text
    raise SettingsError(f"{_named(name)}: one of {', '.join(allowed)}, not {text!r}")


def _number(name: str, text: str, *, least: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number >= least:
        return number
    raise SettingsError(f"{_named(name)}: a number of at least {least:g}, not {text!r}")
