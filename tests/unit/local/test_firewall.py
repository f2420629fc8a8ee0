from local.machine import firewall

SAVED = r"""*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:HYPIC-MASQUERADE - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-DN-0123 - [0:0]
:DOCKER - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A PREROUTING -j DOCKER
-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SERVICES
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"hypic\" id: \"7\"" -j CNI-DN-0123
-A CNI-DN-0123 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.0.2:80
COMMIT
"""
OTHERS = r"""*nat
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-DN-9999 - [0:0]
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"podman\" id: \"7\"" -j CNI-DN-9999
"""


def test_all_chains_of_the_cluster_are_found_and_no_other() -> None:
    chains, _ = firewall.of_cluster(SAVED)
    assert chains == {"KUBE-SERVICES", "HYPIC-MASQUERADE", "CNI-HOSTPORT-DNAT", "CNI-DN-0123"}


def test_rules_elsewhere_go_before_the_chains_that_they_name() -> None:
    removals = list(firewall.removals(SAVED))
    comment = "kubernetes service portals"
    rule = ["-D", "PREROUTING", "-m", "comment", "--comment", comment, "-j", "KUBE-SERVICES"]
    assert removals[0] == rule
    verbs = [words[0] for words in removals]
    assert verbs == sorted(verbs, key=["-D", "-F", "-X"].index)
    assert not [words for words in removals if "DOCKER" in words]


def test_host_ports_of_another_network_stay() -> None:
    assert firewall.of_cluster(OTHERS) == (set(), [])
