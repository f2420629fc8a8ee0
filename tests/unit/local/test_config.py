import base64
import json
import tomllib
from pathlib import Path

from local.cluster.core import config, names
from local.cluster.core.config import Facts

FACTS = Facts(may_raise_priority=False, bridge_filtered=True, nameservers=("192.0.2.53",))
ABLE = Facts(may_raise_priority=True, bridge_filtered=False, nameservers=())


def containerd(facts: Facts) -> dict:
    text = config.containerd(
        home=Path("/c/containerd"), socket=Path("/c/s.sock"), cni=Path("/c/cni"), facts=facts
    )
    return tomllib.loads(text)


def test_containerd_shares_no_folder_and_no_socket_with_another() -> None:
    parsed = containerd(FACTS)
    assert parsed["root"] == "/c/containerd/root"
    assert parsed["state"] == "/c/containerd/state"
    assert parsed["grpc"]["address"] == "/c/s.sock"
    assert parsed["plugins"]["io.containerd.grpc.v1.cri"]["cni"]["conf_dir"] == "/c/cni"


def test_priorities_are_restricted_only_where_the_capability_lacks() -> None:
    key = "io.containerd.grpc.v1.cri"
    assert containerd(FACTS)["plugins"][key]["restrict_oom_score_adj"] is True
    assert containerd(ABLE)["plugins"][key]["restrict_oom_score_adj"] is False


def test_all_services_are_masqueraded_where_bridged_packets_pass_no_iptables() -> None:
    def masquerades(facts: Facts) -> bool:
        parsed = json.loads(config.proxy(kubeconfig_file=Path("/k"), facts=facts))
        return bool(parsed["iptables"]["masqueradeAll"])

    assert not masquerades(FACTS)
    assert masquerades(ABLE)


def test_the_kubelet_never_collects_images_and_listens_on_the_nodes_bridge() -> None:
    text = config.kubelet(pki=Path("/p"), socket=Path("/s"), home=Path("/h"), cgroup="hypic-1")
    parsed = json.loads(text)
    assert parsed["imageGCHighThresholdPercent"] == 100
    assert parsed["address"] == names.NODE_IP
    assert parsed["cgroupRoot"] == "/hypic-1"


def test_a_kubeconfig_carries_its_keys() -> None:
    text = config.kubeconfig(user="admin", ca=b"ca", certificate=b"crt", key=b"key")
    parsed = json.loads(text)
    assert base64.b64decode(parsed["users"][0]["user"]["client-key-data"]) == b"key"
    assert parsed["clusters"][0]["cluster"]["server"] == names.API_URL


def test_other_names_are_asked_of_the_machines_servers() -> None:
    assert "forward . 192.0.2.53" in config.corefile(kubeconfig_file=Path("/k"), facts=FACTS)


def test_without_servers_only_the_clusters_names_are_answered() -> None:
    assert "forward" not in config.corefile(kubeconfig_file=Path("/k"), facts=ABLE)
