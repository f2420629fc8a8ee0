"""The cluster's iptables rules: makes the two of our own, finds and removes all of the cluster's.

kube-proxy and kubelet own the chains KUBE-*, the host port plugin CNI-*, this module HYPIC-*.
"""

import shlex
from collections.abc import Iterator

from ..cluster.core import names
from ..shell import attempt, run

TABLES = ("nat", "filter", "mangle", "raw")
OWN_PREFIXES = ("KUBE-", "HYPIC-")
HOST_PORT_CHAINS = ("CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-SETMARK", "CNI-HOSTPORT-MASQ")


def rules_to_restore() -> str:
    """Input of iptables-restore for our own two chains: let pods through, give them a way out."""
    pods = names.POD_CIDR
    return f"""*nat
:HYPIC-MASQUERADE - [0:0]
-A HYPIC-MASQUERADE -s {pods} ! -d {pods} -j MASQUERADE
COMMIT
*filter
:HYPIC-FORWARD - [0:0]
-A HYPIC-FORWARD -s {pods} -j ACCEPT
-A HYPIC-FORWARD -d {pods} -j ACCEPT
COMMIT
"""


def apply() -> None:
    """Put our own rules in place; again changes nothing."""
    run(["iptables-restore", "--noflush"], text_in=rules_to_restore())
    jumps = (("nat", "POSTROUTING", "HYPIC-MASQUERADE"), ("filter", "FORWARD", "HYPIC-FORWARD"))
    for table, chain, target in jumps:
        rule = [chain, "-j", target]
        if attempt(["iptables", "-w", "-t", table, "-C", *rule]).returncode != 0:
            run(["iptables", "-w", "-t", table, "-I", *rule])


def of_cluster(save: str) -> tuple[set[str], list[str]]:
    """Chains of the cluster in one table of iptables-save, and rules elsewhere that name them."""
    lines = save.splitlines()
    chains = {line[1:].split()[0] for line in lines if line.startswith(":")}
    rules = [line for line in lines if line.startswith("-A ")]
    ours = {chain for chain in chains if chain.startswith(OWN_PREFIXES)}
    mark = f'name: \\"{names.POD_NETWORK}\\"'
    pod_ports = {
        _target(rule) for rule in rules if rule.startswith("-A CNI-HOSTPORT-DNAT ") and mark in rule
    }
    ours |= pod_ports
    others = {chain for chain in chains if chain.startswith("CNI-DN-")} - pod_ports
    if not others:
        ours |= chains & set(HOST_PORT_CHAINS)
    outside = [rule for rule in rules if rule.split()[1] not in ours and _target(rule) in ours]
    return ours, outside


def _target(rule: str) -> str:
    words = shlex.split(rule)
    return words[words.index("-j") + 1] if "-j" in words else ""


def removals(save: str) -> Iterator[list[str]]:
    """Arguments of the iptables calls that take the cluster out of one table."""
    chains, outside = of_cluster(save)
    for rule in outside:
        yield ["-D", *shlex.split(rule)[1:]]
    for chain in sorted(chains):
        yield ["-F", chain]
    for chain in sorted(chains):
        yield ["-X", chain]


def remove() -> None:
    """Take every rule and chain of the cluster out of IPv4 and IPv6 tables."""
    for command in ("iptables", "ip6tables"):
        for table in TABLES:
            saved = attempt([f"{command}-save", "-t", table])
            if saved.returncode == 0:
                for words in removals(saved.stdout):
                    run([command, "-w", "-t", table, *words])
