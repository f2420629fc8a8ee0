"""Addresses, ports and names of the cluster, each written once; reads nothing."""

from dataclasses import dataclass

NODE_NAME = "local"
NODE_BRIDGE = "hypic0"
NODE_IP = "10.98.0.1"
POD_BRIDGE = "hypicbr0"
POD_CIDR = "10.244.0.0/24"
POD_NETWORK = "hypic"
SERVICE_CIDR = "10.96.0.0/16"
API_SERVICE_IP = "10.96.0.1"
DOMAIN = "cluster.local"
LOOPBACK = "127.0.0.1"
API_PORT = 6443
API_URL = f"https://{NODE_IP}:{API_PORT}"
ETCD_URL = f"https://{LOOPBACK}:2379"
ETCD_PEER_URL = f"https://{LOOPBACK}:2380"
PAUSE_IMAGE = "localhost/hypic/busybox:1"


@dataclass(frozen=True, slots=True)
class Listen:
    """A TCP or UDP address that a part needs for itself."""

    ip: str
    port: int
    protocol: str = "tcp"
