"""Flags and environment to one frozen `Settings`; the only reader of either."""

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence

from hypic_engine.contract.segments import DEFAULT_MAX_SEGMENTS, DEFAULT_SEPARATOR

from .core.prompt import Names
from .core.score import POLICIES
from .settings import Admitting, KubeApi, Limits, Settings


def command_line() -> argparse.ArgumentParser:
    """The flags there are."""
    parser = argparse.ArgumentParser(
        prog="hypic-router",
        description="Sends each request to the engine that already holds its segments.",
        allow_abbrev=False,
    )
    add, default = parser.add_argument, Settings(Names("", "", 0))
    add("--host", default=default.host, help="address to listen on")
    add("--port", type=int, default=default.port, help="port of the front")
    add("--metrics-port", type=int, default=default.metrics_port, help="port of /metrics, /fleet")
    add("--model", required=True, help="served model name; part of every digest")
    add("--separator", default=DEFAULT_SEPARATOR, help="text that cuts segments")
    add("--max-segments", type=int, default=DEFAULT_MAX_SEGMENTS, help="most of one prompt")
    add("--policy", choices=sorted(POLICIES), default=default.policy, help="how to choose")
    add("--engines", default="", help="engines as http://host:port,...; instead of --cluster")
    add("--prefill", default="", help="prefill engines as URL#bootstrap-port,...; with --decode")
    add("--decode", default="", help="decode engines as URL,...; with --prefill")
    add("--cluster", default="", help="HypicCluster whose pods are the engines")
    add("--namespace", default="", help="its namespace")
    add("--engine-port", type=int, default=default.engine_port, help="port of engines in pods")
    add("--kube-api", default="", help="API server as http(s)://host:port; default: in-cluster")
    add("--kube-token-file", default=None, help="bearer token for --kube-api")
    add("--kube-ca-file", default=None, help="authority of --kube-api")
    add("--cors-origin", action="append", default=[], help="allow this origin; '*' for any")
    add("--api-keys", default="", help="file or mounted Secret with keys; without it none is asked")
    add("--api-key-digest", action="append", default=[], help="SHA-256 in hex of one more key")
    add("--otlp-collector", default="", help="send spans to http://host:4318")
    _add_limits(add)
    add(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default=default.log_level,
        help="debug shows each choice",
    )
    return parser


def _add_limits(add: Callable[..., object]) -> None:
    def limit(flag: str, most: float, words: str) -> None:
        add(flag, type=type(most), default=most, help=f"{words} (default: %(default)g)")

    default, limits, admitting = Settings(Names("", "", 0)), Limits(), Admitting()
    limit("--max-body-mib", limits.body_bytes / (1 << 20), "of a request's body")
    limit("--max-bodies-mib", limits.bodies_bytes / (1 << 20), "of all bodies under way")
    limit("--max-header-kib", limits.header_bytes / (1 << 10), "of a request's line and headers")
    limit("--body-timeout-s", limits.body_s, "for a request body to arrive")
    limit("--connect-timeout-s", limits.connect_s, "to reach an engine")
    limit("--first-byte-timeout-s", limits.first_byte_s, "to the first event of a stream")
    limit("--answer-timeout-s", limits.answer_s, "for an answer that is not streamed")
    limit("--transfer-timeout-s", limits.transfer_s, "from prefill's end to decode's first event")
    limit("--idle-timeout-s", limits.idle_s, "between two pieces of an answer")
    limit("--max-requests-per-engine", admitting.requests_per_engine, "at once, of this router")
    limit("--max-queued", admitting.most_queued, "requests that wait for room")
    limit("--queue-timeout-s", admitting.queue_s, "longest wait for room")
    limit("--hold-s", admitting.hold_s, "longest wait for sleeping engines; 0: none")
    limit("--max-held", admitting.most_held, "requests that wait for sleeping engines")
    limit("--unlisted-s", default.unlisted_s, "at SIGTERM: how long new requests still come")
    limit("--shutdown-s", default.shutdown_s, "then: for running requests to end")


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


def _urls(given: str) -> tuple[str, ...]:
    return tuple(url.rstrip("/") for url in given.split(",") if url)


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    fixed = bool(args.engines or args.prefill or args.decode)
    if fixed == bool(args.cluster):
        parser.error("give either --engines, or --prefill and --decode, or --cluster")
    if bool(args.prefill) != bool(args.decode):
        parser.error("--prefill and --decode need each other")
    if args.cluster and not args.namespace:
        parser.error("--cluster needs --namespace")
    if not args.separator:
        parser.error("--separator must not be empty")
    for flag in ("engines", "prefill", "decode"):
        for url in _urls(getattr(args, flag)):
            if not url.startswith(("http://", "https://")):
                parser.error(f"--{flag}: {url!r} must begin with http:// or https://")
    _check_numbers(parser, args)
    _check_keys(parser, args)


def _check_keys(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.api_key_digest and not args.api_keys:
        parser.error("--api-key-digest needs --api-keys")
    for digest in args.api_key_digest:
        if not re.fullmatch("[0-9a-f]{64}", digest):
            parser.error(f"--api-key-digest: {digest!r} must be 64 hexadecimal digits")


def _check_numbers(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    for name in ("max_segments", "max_requests_per_engine"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be 1 or more")
    if args.max_bodies_mib < args.max_body_mib:
        parser.error("--max-bodies-mib must not be less than --max-body-mib")
    for name, value in vars(args).items():
        if name.endswith(("_s", "_mib", "_kib", "_queued", "_held")) and value < 0:
            parser.error(f"--{name.replace('_', '-')} must not be negative")


def parse(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings; a wrong flag ends the process with a message that names it."""
    parser = command_line()
    args = parser.parse_args(argv)
    _check(parser, args)
    return Settings(
        names=Names(args.model, args.separator, args.max_segments),
        host=args.host,
        port=args.port,
        metrics_port=args.metrics_port,
        policy=args.policy,
        engines=_urls(args.engines),
        prefill=_urls(args.prefill),
        decode=_urls(args.decode),
        namespace=args.namespace,
        cluster=args.cluster,
        engine_port=args.engine_port,
        kube_api=_kube_api(parser, args, environ) if args.cluster else None,
        cors_origins=tuple(args.cors_origin),
        api_keys=args.api_keys,
        api_key_digests=tuple(args.api_key_digest),
        otlp_collector=args.otlp_collector.rstrip("/"),
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
            transfer_s=args.transfer_timeout_s,
            idle_s=args.idle_timeout_s,
        ),
        admitting=Admitting(
            requests_per_engine=args.max_requests_per_engine,
            queue_s=args.queue_timeout_s,
            most_queued=args.max_queued,
            hold_s=args.hold_s,
            most_held=args.max_held,
        ),
    )
