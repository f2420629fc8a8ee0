from collections import Counter
from pathlib import Path

from local.cluster.core import names
from local.cluster.core.parts import Layout, all_parts

PROGRAMS = (
    "etcd",
    "coredns",
    "kubelet",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
)
PARTS = all_parts(
    Layout(
        state=Path("/c"),
        pki=Path("/c/pki"),
        config=Path("/c/config"),
        containerd_socket=Path("/c/containerd.sock"),
        programs={name: Path("/bin", name) for name in PROGRAMS},
    )
)


def test_nothing_listens_beyond_loopback_and_the_nodes_bridge() -> None:
    allowed = {names.LOOPBACK, names.NODE_IP}
    assert {listen.ip for part in PARTS for listen in part.listens} == allowed
    assert not [word for part in PARTS for word in part.argv if "0.0.0.0" in word]


def test_no_two_parts_want_the_same_port() -> None:
    counted = Counter(listen for part in PARTS for listen in part.listens)
    assert max(counted.values()) == 1


def test_parts_are_listed_in_the_order_of_their_stages() -> None:
    stages = [part.stage for part in PARTS]
    assert stages == sorted(stages)


def test_the_store_wants_a_certificate_of_every_client() -> None:
    (etcd,) = (part for part in PARTS if part.name == "etcd")
    assert {"--client-cert-auth", "--peer-client-cert-auth"} <= set(etcd.argv)


def test_the_api_authorises_nodes_and_roles() -> None:
    (api,) = (part for part in PARTS if part.name == "apiserver")
    assert "--authorization-mode=Node,RBAC" in api.argv
    assert "--enable-admission-plugins=NodeRestriction" in api.argv
