"""Composes the router from its settings and runs it until it is told to stop."""

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import sys
from collections.abc import AsyncIterator

import uvloop

from . import flags, logs
from .app import Front
from .asking.relay import Tools
from .back import Back
from .core.workers import Address
from .discovery import static
from .discovery.pods import Pods
from .fleet import FleetStore
from .guard import Guard
from .guard.admission import Admission
from .guard.keys import Keys
from .guard.running import Running
from .metrics import Metrics
from .parsing import Parser
from .proxy import Proxy
from .settings import Settings
from .tracing import Tracing
from .watch.supervisor import Supervisor
from .wire.bodies import Bodies
from .wire.server import CUT_S, listen
from .wire.upstream import Upstream

# Objects between two collections of garbage.
GARBAGE = 20_000

log = logging.getLogger(__name__)


def _discovered(chosen: Settings) -> AsyncIterator[tuple[Address, ...]]:
    if chosen.kube_api is None:
        return static.addresses(chosen.engines, chosen.prefill, chosen.decode)
    pods = Pods(
        chosen.kube_api,
        namespace=chosen.namespace,
        cluster=chosen.cluster,
        port=chosen.engine_port,
    )
    return pods.addresses()


def _guard(chosen: Settings, store: FleetStore) -> Guard:
    admission = Admission(store, chosen.admitting)
    store.on_change = admission.wake
    if not chosen.api_keys:
        return Guard(None, admission)
    keys = Keys(chosen.api_keys, more=chosen.api_key_digests)
    keys.look()
    return Guard(keys, admission)


async def serve(
    chosen: Settings, stop: asyncio.Event, started: asyncio.Future[tuple[int, int]] | None = None
) -> None:
    """Serves until ``stop`` is set, then lets running requests end.

    Args:
        chosen: the settings.
        stop: set from outside.
        started: gets the two ports once they listen.
    """
    store = FleetStore(most_requests=chosen.admitting.requests_per_engine)
    metrics, running = Metrics(), Running()
    bodies = Bodies(chosen.limits)
    upstream = Upstream(connect_s=chosen.limits.connect_s)
    tools = Tools(store, upstream, metrics, chosen.limits)
    proxy = Proxy(tools, policy=chosen.policy)
    parser = Parser()
    guard = _guard(chosen, store)
    tracing = Tracing(chosen.otlp_collector)
    front = Front(chosen, tools, proxy, running, bodies, parser, guard, tracing)
    back = Back(chosen, tools, running, bodies, guard.admission)
    supervisor = Supervisor(store, metrics, chosen.probing)
    watching = asyncio.create_task(supervisor.run(_discovered(chosen)))
    reading = asyncio.create_task(guard.keys.follow()) if guard.keys is not None else None
    listening = [
        await listen(handle, host=chosen.host, port=port, limits=chosen.limits)
        for handle, port in ((front.serve, chosen.port), (back.serve, chosen.metrics_port))
    ]
    ports = (listening[0].port, listening[1].port)
    log.info("Serving", extra={"port": ports[0], "metrics_port": ports[1]})
    if started is not None:
        started.set_result(ports)
    try:
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((stopped, watching), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        await _leave(chosen, running, store, guard.admission)
    finally:
        for task in filter(None, (watching, reading)):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for one in listening:
            await one.close()
        upstream.close()
        parser.close()
        await asyncio.to_thread(tracing.close)


async def _leave(
    chosen: Settings, running: Running, store: FleetStore, admission: Admission
) -> None:
    """Stops being ready, serves on until that is known everywhere, then waits for the rest."""
    running.leaving = True
    log.info("Leaving", extra={"running": running.count})
    await asyncio.sleep(chosen.unlisted_s)
    if running.count:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(running.idle.wait(), chosen.shutdown_s)
    store.abandon()
    admission.abandon()
    if running.count:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(running.idle.wait(), CUT_S)
    log.info("Left", extra={"running": running.count})


async def _until_signalled(chosen: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(chosen, stop)


def _take_files() -> None:
    """Lets this process open as many files as it may: a stream needs two, its client's and ours."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """The command ``hypic-router``."""
    chosen = flags.parse(sys.argv[1:])
    logs.start(chosen.log_level)
    _take_files()
    # Collections of garbage need not look at what was imported, and few requests leave any.
    gc.freeze()
    gc.set_threshold(GARBAGE, 20, 50)
    uvloop.run(_until_signalled(chosen))


if __name__ == "__main__":
    main()
