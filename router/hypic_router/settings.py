"""Flags and environment to one frozen `Settings`; the only reader of either."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypic_engine.contract.segments import DEFAULT_MAX_SEGMENTS, DEFAULT_SEPARATOR

from .core.prompt import Names
from .core.score import POLICIES

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much and how long.

    Attributes:
        body_bytes: longest request body.
        bodies_bytes: all request bodies that are in memory.
        header_bytes: of a request's line and headers together.
        head_s: for the head of a connection's first request to arrive.
        body_s: for a request body to arrive.
        connect_s: for a connection to an engine.
        first_byte_s: for the first event of a stream.
        answer_s: for an answer that is not streamed.
        idle_s: between two pieces of an answer.
        attempts: engines tried for one request.
    """

    body_bytes: int = 16 << 20
    bodies_bytes: int = 256 << 20
    header_bytes: int = 32 << 10
    head_s: float = 10.0
    body_s: float = 60.0
    connect_s: float = 2.0
    first_byte_s: float = 600.0
    answer_s: float = 1_800.0
    idle_s: float = 60.0
    attempts: int = 3


@dataclass(frozen=True, slots=True)
class Probing:
    """How engines are asked whether they are ready.

    Attributes:
        every_s: pause between two probes.
        timeout_s: longest wait for one.
        failures: probes without an answer after which an engine counts as late.
        lost_after: probes without an answer after which waiting requests go elsewhere.
    """

    every_s: float = 0.5
    timeout_s: float = 1.0
    failures: int = 2
    lost_after: int = 4


@dataclass(frozen=True, slots=True)
class KubeApi:
    """Where the API server is and how to speak to it.

    Attributes:
        url: without a trailing slash.
        token_path: file with the bearer token, read again at each request; empty for none.
        ca_path: file with the authority's certificate; empty for the system's.
    """

    url: str
    token_path: str = f"{SERVICE_ACCOUNT}/token"
    ca_path: str = f"{SERVICE_ACCOUNT}/ca.crt"


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be chosen from outside; the flags' help says what each is."""

    names: Names
    host: str = "0.0.0.0"  # noqa: S104 - a server in a pod listens on every address of the pod
    port: int = 8080
    metrics_port: int = 9090
    policy: str = "segment"
    engines: tuple[str, ...] = ()
    namespace: str = ""
    cluster: str = ""
    engine_port: int = 30_000
    kube_api: KubeApi | None = None
    cors_origins: tuple[str, ...] = ()
    unlisted_s: float = 3.0
    shutdown_s: float = 60.0
    log_level: str = "info"
    limits: Limits = Limits()
    probing: Probing = Probing()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hypic-router",
        description="Sends each request to the engine that already holds its segments.",
        allow_abbrev=False,
    )
    add, default, limits = parser.add_argument, Settings(Names("", "", 0)), Limits()
    add("--host", default=default.host, help="address to listen on")
    add("--port", type=int, default=default.port, help="port of the front")
    add("--metrics-port", type=int, default=default.metrics_port, help="port of /metrics, /fleet")
    add("--model", required=True, help="served model name; part of every digest")
    add("--separator", default=DEFAULT_SEPARATOR, help="text that cuts segments")
    add("--max-segments", type=int, default=DEFAULT_MAX_SEGMENTS, help="most segments a prompt")
    add("--policy", choices=sorted(POLICIES), default=default.policy, help="how to choose")
    add("--engines", default="", help="engines as http://host:port,...; instead of --cluster")
    add("--cluster", default="", help="HypicCluster whose pods are the engines")
    add("--namespace", default="", help="its namespace")
    add("--engine-port", type=int, default=default.engine_port, help="port of engines in pods")
    add("--kube-api", default="", help="API server as http(s)://host:port; default: in-cluster")
    add("--kube-token-file", default=None, help="bearer token for --kube-api")
    add("--kube-ca-file", default=None, help="authority of --kube-api")
    add("--cors-origin", action="append", default=[], help="allow this origin; '*' for any")
    add("--max-body-mib", type=float, default=limits.body_bytes / (1 << 20), help="of a request")
    add("--max-bodies-mib", type=float, default=limits.bodies_bytes / (1 << 20), help="of all")
    add("--max-header-kib", type=float, default=limits.header_bytes / (1 << 10))
    add("--body-timeout-s", type=float, default=limits.body_s, help="for a request body to arrive")
    add("--connect-timeout-s", type=float, default=limits.connect_s, help="to reach an engine")
    add("--first-byte-timeout-s", type=float, default=limits.first_byte_s, help="of a stream")
    add("--answer-timeout-s", type=float, default=limits.answer_s, help="when not streamed")
    add("--idle-timeout-s", type=float, default=limits.idle_s, help="between pieces of an answer")
    add("--unlisted-s", type=float, default=default.unlisted_s)
    add("--shutdown-s", type=float, default=default.shutdown_s, help="for running requests to end")
    add("--log-level", choices=("debug", "info", "warning", "error"), default=default.log_level)
    return parser


def _kube_api(
    parser: argparse.ArgumentParser, args: argparse.Namespace, environ: Mapping[str, str]
) -> KubeApi:
    if args.kube_api:
        return KubeApi(
            args.kube_api.rstrip("/"), args.kube_token_file or "", args.kube_ca_file or ""
        )
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host:
        parser.error("--cluster works in a pod; elsewhere give --kube-api, or --engines instead")
    bracketed = f"[{host}]" if ":" in host else host
    return KubeApi(f"https://{bracketed}:{port or 443}")


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if bool(args.engines) == bool(args.cluster):
        parser.error("give either --engines or --cluster")
    if args.cluster and not args.namespace:
        parser.error("--cluster needs --namespace")
    if not args.separator:
        parser.error("--separator must not be empty")
    if args.max_segments < 1:
        parser.error("--max-segments must be 1 or more")
    if args.max_bodies_mib < args.max_body_mib:
        parser.error("--max-bodies-mib must not be less than --max-body-mib")
    for url in filter(None, args.engines.split(",")):
        if not url.startswith(("http://", "https://")):
            parser.error(f"--engines: {url!r} must begin with http:// or https://")
    for name, value in vars(args).items():
        if name.endswith(("_s", "_mib", "_kib")) and value < 0:
            parser.error(f"--{name.replace('_', '-')} must not be negative")


def parse(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings; a wrong flag ends the process with a message that names it."""
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    return Settings(
        names=Names(args.model, args.separator, args.max_segments),
        host=args.host,
        port=args.port,
        metrics_port=args.metrics_port,
        policy=args.policy,
        engines=tuple(url.rstrip("/") for url in args.engines.split(",") if url),
        namespace=args.namespace,
        cluster=args.cluster,
        engine_port=args.engine_port,
        kube_api=_kube_api(parser, args, environ) if args.cluster else None,
        cors_origins=tuple(args.cors_origin),
        unlisted_s=args.unlisted_s,
        shutdown_s=args.shutdown_s,
        log_level=args.log_level,
        limits=Limits(
            body_bytes=int(args.max_body_mib * (1 << 20)),
            bodies_bytes=int(args.max_bodies_mib * (1 << 20)),
            header_bytes=int(args.max_header_kib * (1 << 10)),
            body_s=args.body_timeout_s,
            connect_s=args.connect_timeout_s,
            first_byte_s=args.first_byte_timeout_s,
            answer_s=args.answer_timeout_s,
            idle_s=args.idle_timeout_s,
        ),
    )
