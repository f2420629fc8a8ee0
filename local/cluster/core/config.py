"""Renders every configuration file of the parts as text; writes nothing.

Kubernetes reads YAML, and JSON is YAML: nothing here needs a YAML library.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import names

UNUSED_PLUGINS = [
    f"io.containerd.snapshotter.v1.{n}" for n in ("aufs", "btrfs", "devmapper", "zfs")
]


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found out about the machine, because kernels and sandboxes differ."""

    may_raise_priority: bool  # CAP_SYS_RESOURCE: runc may lower a process's oom_score_adj
    bridge_filtered: bool  # packets between pods on the bridge pass iptables
    nameservers: tuple[str, ...]  # of the machine, for names outside the cluster


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"


def kubeconfig(*, user: str, ca: bytes, certificate: bytes, key: bytes) -> str:
    """A kubeconfig that carries its keys, so that it may be copied elsewhere on the machine."""

    def text(raw: bytes) -> str:
        return base64.b64encode(raw).decode()

    cluster = {"server": names.API_URL, "certificate-authority-data": text(ca)}
    login = {"client-certificate-data": text(certificate), "client-key-data": text(key)}
    return _json(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "hypic-local", "cluster": cluster}],
            "users": [{"name": user, "user": login}],
            "contexts": [
                {"name": "hypic-local", "context": {"cluster": "hypic-local", "user": user}}
            ],
            "current-context": "hypic-local",
        }
    )


def containerd(*, home: Path, socket: Path, cni: Path, facts: Facts) -> str:
    """Configuration of containerd: root, state and socket of its own."""
    restrict = str(not facts.may_raise_priority).lower()
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{home}/root"
state = "{home}/state"
disabled_plugins = {json.dumps(UNUSED_PLUGINS)}
[grpc]
  address = "{socket}"
[{cri}]
  sandbox_image = "{names.PAUSE_IMAGE}"
  restrict_oom_score_adj = {restrict}
  netns_mounts_under_state_dir = true
  stream_server_address = "{names.LOOPBACK}"
  [{cri}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
  [{cri}.containerd]
    snapshotter = "overlayfs"
  [{cri}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [{cri}.containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def cni(*, leases: Path) -> str:
    """The pod network: a bridge, addresses from a file, host ports."""
    ipam = {
        "type": "host-local",
        "dataDir": str(leases),
        "ranges": [[{"subnet": names.POD_CIDR}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": names.POD_BRIDGE,
        "isGateway": True,
        "ipMasq": False,  # one rule of our own does it for all pods
        "hairpinMode": True,
        "ipam": ipam,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return _json({"cniVersion": "1.0.0", "name": names.POD_NETWORK, "plugins": [bridge, ports]})


def kubelet(*, pki: Path, socket: Path, home: Path, cgroup: str) -> str:
    """The kubelet's configuration: no image collection, little kept in reserve."""
    return _json(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": names.NODE_IP,
            "healthzBindAddress": names.LOOPBACK,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{pki}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{pki}/node.crt",
            "tlsPrivateKeyFile": f"{pki}/node.key",
            "containerRuntimeEndpoint": f"unix://{socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroup}",
            "failSwapOn": False,
            "clusterDNS": [names.NODE_IP],
            "clusterDomain": names.DOMAIN,
            "podLogsDir": f"{home}/pod-logs",
            "volumePluginDir": f"{home}/volume-plugins",
            "serializeImagePulls": False,
            "evictionHard": {
                "nodefs.available": "2%",
                "imagefs.available": "2%",
                "memory.available": "100Mi",
            },
            # Images are loaded by hand here; a collected one could not be pulled again.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "imageMinimumGCAge": "24h",
            "localStorageCapacityIsolation": False,
            "maxPods": 100,
        }
    )


def proxy(*, kubeconfig_file: Path, facts: Facts) -> str:
    """kube-proxy's configuration: iptables, the machine's conntrack limits left as they are."""
    return _json(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig_file)},
            "clusterCIDR": names.POD_CIDR,
            "mode": "iptables",
            "hostnameOverride": names.NODE_NAME,
            "healthzBindAddress": f"{names.LOOPBACK}:10256",
            "metricsBindAddress": f"{names.LOOPBACK}:10249",
            "nodePortAddresses": [f"{names.NODE_IP}/32"],
            "iptables": {"masqueradeAll": not facts.bridge_filtered},
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        }
    )


def corefile(*, kubeconfig_file: Path, facts: Facts) -> str:
    """CoreDNS's configuration: the cluster's names, and the machine's servers for all others."""
    servers = " ".join(ip for ip in facts.nameservers if ip != names.NODE_IP)
    others = f".:53 {{\n bind {names.NODE_IP}\n errors\n forward . {servers}\n cache 30\n}}\n"
    return f"""{names.DOMAIN}:53 in-addr.arpa:53 {{
 bind {names.NODE_IP}
 errors
 health {names.LOOPBACK}:10253
 kubernetes {names.DOMAIN} in-addr.arpa {{
  kubeconfig {kubeconfig_file}
  pods disabled
  ttl 5
 }}
 cache 5
}}
{others if servers else ""}"""
