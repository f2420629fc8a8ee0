"""Brings the cluster up, or back up: observe, plan, take each step, wait for the node."""

import json
import time
from contextlib import suppress
from itertools import groupby

from .. import lock, packages, preflight, toolchain
from ..errors import FailedError
from ..images import load, pause
from ..machine import firewall, host, mounts, process, strays
from ..progress import say, step
from ..settings import Settings
from ..shell import wait_until
from . import health, kube, node, pods, ready
from .core import names, plan
from .core.parts import Part, all_parts

START_DEADLINE_S = 60.0
NODE_DEADLINE_S = 60.0
END_GRACE_S = 10.0
PATIENCE_S = 3.0
PATIENCE_AFTER_CHANGE_S = 15.0
NODE_STAGE = 3
LOG_LINES = 8


def up(settings: Settings) -> None:
    """Make the cluster run on this machine; harmless when it does."""
    _refuse_early(settings)
    packages.ensure(packages.NODE)
    programs = toolchain.programs(settings, toolchain.CLUSTER_PROGRAMS)
    with lock.exclusive(settings):
        started = time.time()
        _bring_up(settings, all_parts(node.layout(settings, programs)))
        say(f"node Ready, {time.time() - started:.1f} s after the tools were there")


def _refuse_early(settings: Settings) -> None:
    preflight.require_root()
    preflight.require_debian()
    preflight.require_kernel()
    preflight.require_short_path(settings.cache)
    if not all(toolchain.is_there(settings, name) for name in toolchain.CLUSTER_PROGRAMS):
        toolchain.find_go()
    preflight.require_disk(settings.cache, toolchain.still_to_make(settings))
    found = [node.observe(settings, part) for part in node.known_parts(settings)]
    dead = [one.part for one in found if not one.observed.alive]
    preflight.require_ports(listen for part in dead for listen in part.listens)
    if (warning := preflight.untested(host.CGROUPS)) is not None:
        say(warning)


def _bring_up(settings: Settings, parts: tuple[Part, ...]) -> None:
    node.write_configuration(settings)
    _prepare_machine(settings)
    _clear_a_dead_runtime(settings, parts)
    started: list[process.Record] = []
    for stage, members in groupby(parts, key=lambda part: part.stage):
        if stage == NODE_STAGE:
            _before_the_node(settings)
        # A part is judged once those it depends on are well, and given time to notice.
        patience_s = PATIENCE_AFTER_CHANGE_S if started else PATIENCE_S
        found = {part: _observe(settings, part, patience_s) for part in members}
        observed = {part.name: one.observed for part, one in found.items()}
        started += _take(settings, plan.repair(found, observed))
    kubelet = [record.started_at_s for record in started if record.name == "kubelet"]
    _wait_for_node(settings, since_s=max(kubelet, default=0.0))


def _observe(settings: Settings, part: Part, patience_s: float) -> node.Found:
    found = node.observe(settings, part)
    if not found.observed.alive or found.observed.healthy:
        return found
    with suppress(FailedError):
        wait_until(
            lambda: health.answers(part.health, pki=settings.pki),
            what=f"{part.name} answers",
            deadline_s=patience_s,
        )
    return node.observe(settings, part)


def _take(settings: Settings, steps: tuple[plan.Step, ...]) -> list[process.Record]:
    """Start or restart what the plan says, all at once, then wait for each."""
    changed = [one for one in steps if one.action is not plan.Action.KEEP]
    records = []
    for one in changed:
        old = process.read(settings.run, one.part.name)
        if old is not None:
            process.end(old, grace_s=END_GRACE_S)
        records.append(_start(settings, one.part))
    for one in changed:
        with step(f"{one.action} {one.part.name} ({one.reason})"):
            _wait_for_part(settings, one.part)
    return records


def _prepare_machine(settings: Settings) -> None:
    _write_down_what_was_found(settings)
    unplugged = not host.has_device(names.POD_BRIDGE)
    host.make_bridges()
    if unplugged and node.shims(settings):
        with step("end pods whose network is gone; the kubelet makes them anew"):
            pods.end_all(settings)
    host.write_kernel_settings(host.WANTED_SETTINGS)
    host.make_cgroup(settings.cgroup)
    firewall.apply()


def _write_down_what_was_found(settings: Settings) -> None:
    """Once a boot and network namespace: what ``down`` has to put back, and where."""
    found = json.loads(settings.found.read_text()) if settings.found.exists() else {}
    if found.get("network") != host.network():
        found = {
            "network": host.network(),
            "kernel": host.read_kernel_settings(),
            "folders": found.get("folders", strays.absent()),
        }
        settings.found.write_text(json.dumps(found) + "\n")


def _clear_a_dead_runtime(settings: Settings, parts: tuple[Part, ...]) -> None:
    """Forget what a runtime that died with all its pods left in memory file systems."""
    found = {part.name: node.observe(settings, part).observed for part in parts}
    if plan.is_cold(found, shims=len(node.shims(settings))):
        for folder in ("containerd/state", "leases"):
            mounts.remove_tree(settings.state / folder)
        mounts.unmount_all(settings.state)


def _before_the_node(settings: Settings) -> None:
    """What the third stage needs of the first two: the pause image and DNS's rights."""
    if not load.is_loaded(settings, pause.NAME):
        with step("load the pause image"):
            load.load_archive(settings, pause.archive(settings))
    kube.apply(settings, *ready.dns_rights())


def _start(settings: Settings, part: Part) -> process.Record:
    return process.start(
        part.name,
        part.argv,
        folder=settings.run,
        log=settings.logs / f"{part.name}.log",
        env=settings.environment,
        inputs=node.inputs(part),
    )


def _wait_for_part(settings: Settings, part: Part) -> None:
    def well_or_dead() -> bool:
        record = process.read(settings.run, part.name)
        if record is None or not process.is_alive(record):
            raise FailedError(f"{part.name} ended at once.\n{_log_end(settings, part.name)}")
        return health.answers(part.health, pki=settings.pki)

    try:
        wait_until(well_or_dead, what=f"{part.name} answers", deadline_s=START_DEADLINE_S)
    except FailedError as error:
        hint = f"{error}\nIf its data were damaged: `python3 -m local down`, then `up`."
        raise FailedError(hint) from None


def _log_end(settings: Settings, name: str) -> str:
    path = settings.logs / f"{name}.log"
    lines = path.read_text(errors="replace").splitlines()[-LOG_LINES:]
    return "\n".join([f"The end of {path}:", *lines])


def _wait_for_node(settings: Settings, *, since_s: float) -> None:
    with step("wait until the node is Ready"):
        wait_until(
            lambda: ready.node_is_ready(settings, since_s=since_s),
            what="node Ready",
            deadline_s=NODE_DEADLINE_S,
        )
