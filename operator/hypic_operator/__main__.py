"""Compose: settings -> client -> registry -> kopf.

Holds no logic of its own.
"""

import asyncio
import logging
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import aiohttp
import kopf
import prometheus_client

from . import cluster, connection, handlers, health, leader, scope, secret
from . import settings as configuration
from .errors import ClusterError, OperatorError, UnavailableError
from .metrics import Metrics
from .pods.asking import Asking
from .pods.calling import Caller
from .pods.prober import HttpProber, Prober
from .reconcile import Reconciler
from .settings import Settings
from .wakeups import Wakeups

logger = logging.getLogger(__name__)

PAUSE_S = 2.0


async def run(
    settings: Settings,
    metrics: Metrics,
    *,
    prober: Prober | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Work until told to stop, or until SIGTERM or SIGINT in a main thread.

    Args:
        settings: what the operator was started with.
        metrics: what it counts.
        prober: who asks for tokens; left out, HTTP through the router's Service.
        stop: set to end.
    """
    reached_by = await connection.configuration(settings.kubeconfig)
    async with (
        health.answering(settings.health_port),
        aiohttp.ClientSession() as session,
        connection.Connection(reached_by) as link,
    ):
        api = cluster.Cluster(link, metrics)
        stop = stop or asyncio.Event()
        settings = await _with_secret(settings, link, stop)
        wakeups = Wakeups(waited=metrics.wait_seconds.observe)
        asking = Asking(
            Caller(session),
            prober or HttpProber(session, secret=settings.policy.secret),
            wakeups.wake,
            metrics,
            probe_period_s=settings.probe_period_s,
        )
        acts = scope.of(link, settings.namespaces, settings.lease)
        wakeups.start(Reconciler(api, asking, acts, settings, metrics).reconcile)
        if settings.metrics_port:
            prometheus_client.start_http_server(settings.metrics_port, registry=metrics.registry)

        async def close() -> None:
            await wakeups.close()
            await asking.close()
            await acts.close()

        stopped = False
        _heed_signals(stop)
        candidate = _candidate(settings, link)
        async with leader.leading(candidate, stop, wakeups.end) as leads:
            while leads and not stopped and await _kind_is_served(api, stop):
                acts.start()
                registry = handlers.registry(wakeups.wake, close, reached_by)
                stopped = await _watch(settings, registry, api, stop)


async def _with_secret(
    settings: Settings, link: connection.Connection, stop: asyncio.Event
) -> Settings:
    """The settings with what keys are made of, as soon as the API server tells it."""
    _heed_signals(stop)
    while settings.key_secret and not stop.is_set():
        try:
            found = await secret.kept(link, settings.key_secret)
        except UnavailableError as error:
            logger.warning("Secret %s: %s", settings.key_secret, error)
            await _pause(stop)
        else:
            return replace(settings, policy=replace(settings.policy, secret=found))
    return settings


def _candidate(settings: Settings, link: connection.Connection) -> leader.Leader | None:
    if not settings.lease:
        return None
    namespace, name = settings.lease.split("/")
    identity = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
    return leader.Leader(link, namespace, name, identity)


async def _watch(
    settings: Settings,
    registry: kopf.OperatorRegistry,
    api: cluster.Cluster,
    stop: asyncio.Event,
) -> bool:
    """Watch until told to stop; False when the API server's answer ended it, for another start."""
    try:
        await kopf.operator(
            registry=registry,
            settings=handlers.settings(),
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            stop_flag=stop,
        )
    except Exception as error:
        answered = getattr(error, "status", None) is not None
        if not answered and await _served(api):
            raise
        logger.warning("Stopped watching, and start again: %s", error)
        await _pause(stop)
        return False
    return True


async def _kind_is_served(api: cluster.Cluster, stop: asyncio.Event) -> bool:
    """Wait for the CustomResourceDefinition: kopf looks for it once, when it starts.

    Returns:
        False when told to stop meanwhile.
    """
    _heed_signals(stop)
    told = False
    while not stop.is_set():
        if await _served(api):
            return True
        if not told:
            logger.warning(
                "The API server does not serve HypicCluster and HypicRole; waiting for it"
            )
        told = True
        await _pause(stop)
    return False


async def _pause(stop: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), PAUSE_S)


def _heed_signals(stop: asyncio.Event) -> None:
    """Have signals stop the waiting; kopf puts handlers of its own in their place."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _served(api: cluster.Cluster) -> bool:
    try:
        return await api.serves_our_kinds()
    except ClusterError as error:
        logger.warning("%s", error)
        return False


def _log(settings: Settings) -> None:
    as_json = settings.log_format == "json"
    kopf.configure(log_format=kopf.LogFormat.JSON if as_json else kopf.LogFormat.FULL)
    logging.getLogger().setLevel(settings.log_level.upper())
    # A line for each event that kopf hands on says nothing that ours do not say better.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``hypic-operator``."""
    try:
        settings = configuration.from_process(sys.argv[1:] if arguments is None else arguments)
        _log(settings)
        asyncio.run(run(settings, Metrics(prometheus_client.CollectorRegistry())))
    except OperatorError as error:
        sys.stderr.write(f"hypic-operator: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
