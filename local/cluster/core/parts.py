"""The parts of the cluster: command, files, addresses and health of each; starts nothing."""

from dataclasses import dataclass
from pathlib import Path

from . import names
from .names import LOOPBACK, NODE_IP, Listen


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders and programs that commands mention."""

    state: Path
    pki: Path
    config: Path
    containerd_socket: Path
    programs: dict[str, Path]


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the cluster.

    ``stage`` orders starts: a part starts when all of the earlier stages are healthy. ``files`` are
    what its command reads; when one of them changes, the part has to be started again.
    """

    name: str
    stage: int
    argv: tuple[str, ...]
    health: str  # an http(s) or unix URL
    listens: tuple[Listen, ...] = ()
    files: tuple[Path, ...] = ()


def etcd(layout: Layout) -> Part:
    """The store. No fsync: a development cluster need not survive a power cut."""
    pki = layout.pki
    argv = (
        str(layout.programs["etcd"]),
        "--name=local",
        f"--data-dir={layout.state}/etcd",
        f"--listen-client-urls={names.ETCD_URL}",
        f"--advertise-client-urls={names.ETCD_URL}",
        f"--listen-peer-urls={names.ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={names.ETCD_PEER_URL}",
        f"--initial-cluster=local={names.ETCD_PEER_URL}",
        *(
            f"--{peer}{flag}"
            for peer in ("", "peer-")
            for flag in (
                f"cert-file={pki}/etcd.crt",
                f"key-file={pki}/etcd.key",
                f"trusted-ca-file={pki}/etcd-ca.crt",
                "client-cert-auth",
            )
        ),
        "--auto-compaction-retention=10m",
        "--snapshot-count=10000",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )
    listens = (Listen(LOOPBACK, 2379), Listen(LOOPBACK, 2380))
    return Part("etcd", 1, argv, f"{names.ETCD_URL}/health", listens, (pki / "etcd.crt",))


def containerd(layout: Layout) -> Part:
    """The container runtime, apart from any other on the machine."""
    config = layout.config / "containerd.toml"
    argv = ("/usr/bin/containerd", "--config", str(config), "--log-level", "warn")
    health = f"unix://{layout.containerd_socket}"
    return Part("containerd", 1, argv, health, files=(config,))


def apiserver(layout: Layout) -> Part:
    """The API, on the node's address only, with RBAC and NodeRestriction."""
    pki = layout.pki
    argv = (
        str(layout.programs["kube-apiserver"]),
        f"--etcd-servers={names.ETCD_URL}",
        f"--etcd-cafile={pki}/etcd-ca.crt",
        f"--etcd-certfile={pki}/etcd.crt",
        f"--etcd-keyfile={pki}/etcd.key",
        f"--bind-address={NODE_IP}",
        f"--advertise-address={NODE_IP}",
        f"--secure-port={names.API_PORT}",
        f"--cert-dir={pki}",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--service-account-key-file={pki}/service-accounts.pub",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
        f"--service-account-issuer=https://kubernetes.default.svc.{names.DOMAIN}",
        f"--service-cluster-ip-range={names.SERVICE_CIDR}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/apiserver-kubelet.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet.key",
        "--kubelet-preferred-address-types=InternalIP",
        "--profiling=false",
    )
    listens = (Listen(NODE_IP, names.API_PORT),)
    return Part("apiserver", 2, argv, f"{names.API_URL}/readyz", listens, (pki / "apiserver.crt",))


def controllers(layout: Layout) -> Part:
    """The controllers of Deployments, StatefulSets, garbage and the like."""
    config = layout.config / "controllers.kubeconfig"
    argv = (
        str(layout.programs["kube-controller-manager"]),
        f"--kubeconfig={config}",
        f"--root-ca-file={layout.pki}/ca.crt",
        f"--service-account-private-key-file={layout.pki}/service-accounts.key",
        "--use-service-account-credentials",
        f"--cluster-cidr={names.POD_CIDR}",
        "--allocate-node-cidrs=false",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--cert-dir={layout.pki}",
        "--profiling=false",
    )
    health = f"https://{LOOPBACK}:10257/healthz"
    return Part("controllers", 3, argv, health, (Listen(LOOPBACK, 10257),), (config,))


def scheduler(layout: Layout) -> Part:
    """The scheduler."""
    config = layout.config / "scheduler.kubeconfig"
    argv = (
        str(layout.programs["kube-scheduler"]),
        f"--kubeconfig={config}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--cert-dir={layout.pki}",
        "--profiling=false",
    )
    health = f"https://{LOOPBACK}:10259/healthz"
    return Part("scheduler", 3, argv, health, (Listen(LOOPBACK, 10259),), (config,))


def kubelet(layout: Layout) -> Part:
    """The node."""
    config = layout.config / "kubelet.json"
    kubeconfig = layout.config / "node.kubeconfig"
    argv = (
        str(layout.programs["kubelet"]),
        f"--config={config}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={names.NODE_NAME}",
        f"--node-ip={NODE_IP}",
        f"--root-dir={layout.state}/kubelet",
        f"--cert-dir={layout.pki}",
    )
    listens = (Listen(NODE_IP, 10250), Listen(LOOPBACK, 10248))
    health = f"http://{LOOPBACK}:10248/healthz"
    return Part("kubelet", 3, argv, health, listens, (config, kubeconfig))


def proxy(layout: Layout) -> Part:
    """Services, through iptables."""
    config = layout.config / "proxy.json"
    argv = (str(layout.programs["kube-proxy"]), f"--config={config}")
    listens = (Listen(LOOPBACK, 10249), Listen(LOOPBACK, 10256))
    return Part("proxy", 3, argv, f"http://{LOOPBACK}:10249/healthz", listens, (config,))


def coredns(layout: Layout) -> Part:
    """Names of Services and pods, on the node's address: nothing to schedule, nothing to pull."""
    config = layout.config / "Corefile"
    kubeconfig = layout.config / "dns.kubeconfig"
    argv = (str(layout.programs["coredns"]), "-conf", str(config))
    listens = (Listen(NODE_IP, 53), Listen(NODE_IP, 53, "udp"), Listen(LOOPBACK, 10253))
    health = f"http://{LOOPBACK}:10253/health"
    return Part("dns", 3, argv, health, listens, (config, kubeconfig))


def all_parts(layout: Layout) -> tuple[Part, ...]:
    """Every part, in the order in which they start."""
    makers = (etcd, containerd, apiserver, controllers, scheduler, kubelet, proxy, coredns)
    return tuple(make(layout) for make in makers)
