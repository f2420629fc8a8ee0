"""What can be chosen from outside, as frozen values; `flags` reads them."""

from dataclasses import dataclass

from .core.prompt import Names

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
        transfer_s: for a stream's first event once its prefill engine is done.
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
    transfer_s: float = 15.0
    idle_s: float = 60.0
    attempts: int = 3


@dataclass(frozen=True, slots=True)
class Admitting:
    """How many requests are let through, and how long others wait.

    Attributes:
        requests_per_engine: at engines at once, times the engines that can be asked.
        queue_s: longest wait for room.
        most_queued: requests that may wait for room.
        hold_s: longest wait for engines that sleep; 0 where they never do.
        most_held: requests that may wait for those.
    """

    requests_per_engine: int = 256
    queue_s: float = 30.0
    most_queued: int = 512
    hold_s: float = 0.0
    most_held: int = 256


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
    prefill: tuple[str, ...] = ()
    decode: tuple[str, ...] = ()
    namespace: str = ""
    cluster: str = ""
    engine_port: int = 30_000
    kube_api: KubeApi | None = None
    cors_origins: tuple[str, ...] = ()
    api_keys: str = ""
    api_key_digests: tuple[str, ...] = ()
    otlp_collector: str = ""
    unlisted_s: float = 3.0
    shutdown_s: float = 60.0
    log_level: str = "info"
    limits: Limits = Limits()
    admitting: Admitting = Admitting()
    probing: Probing = Probing()
