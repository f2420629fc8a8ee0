"""What the operator renders for routers is what a router understands, listens on and answers."""

from dataclasses import replace
from typing import get_args

import pytest

from hypic_operator.core import names, serving
from hypic_operator.core.api.front import Policy
from hypic_operator.core.desired import router
from hypic_router import flags
from hypic_router.core.pods import CLUSTER_LABEL, REVISION_LABEL, ROLE_LABEL
from hypic_router.core.prompt import Names
from hypic_router.core.score import POLICIES
from hypic_router.core.workers import Role
from hypic_router.guard.keys import Keys
from hypic_router.wire import server

from ..support import resources
from ..support.routers import routing
from ..support.wire import ask

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def rendered(policy=resources.POLICY, **spec):
    """The router's pod as the operator renders it."""
    cluster = resources.cluster(namespace="demo-ns", **spec)
    return router.deployment(cluster, policy)["spec"]["template"]["spec"]


def command(**spec):
    """The router's arguments as the kubelet hands them on."""
    (container,) = rendered(**spec)["containers"]
    return [argument.replace("$$", "$") for argument in container["args"]]


def understood(**spec):
    return flags.parse(command(**spec), IN_A_POD)


def test_the_operators_command_is_understood():
    chosen = understood(
        pic={"separator": "--$(SEP)", "maxSegments": 64}, drain={"timeoutSeconds": 7}
    )
    assert (chosen.namespace, chosen.cluster) == ("demo-ns", "demo")
    assert chosen.names == Names("tiny", "--$(SEP)", 64)
    assert chosen.shutdown_s == 7
    assert chosen.kube_api is not None
    assert chosen.kube_api.url == "https://10.0.0.1:443"


def test_the_operators_own_key_opens_its_routers():
    policy = replace(resources.POLICY, secret="s")
    router_spec = {"apiKeysSecretRef": {"name": "clients"}}
    pod = rendered(policy, router=router_spec)
    (container,), (*_, volume) = pod["containers"], pod["volumes"]
    chosen = flags.parse(container["args"], IN_A_POD)
    assert volume == {"name": "api-keys", "secret": {"secretName": "clients"}}
    assert container["volumeMounts"][-1]["mountPath"] == chosen.api_keys
    keys = Keys(chosen.api_keys, more=chosen.api_key_digests)
    assert keys.admit(f"Bearer {serving.front_key('s', 'uid-1')}")
    assert not keys.admit(f"Bearer {serving.front_key('s', 'uid-2')}")


@pytest.mark.parametrize("digests", [["a" * 64], ["xyz", "--api-keys", "keys"]])
def test_a_digest_that_cannot_be_or_stands_alone_is_refused(digests, capsys):
    given = ["--model", "m", "--engines", "http://e:1", "--api-key-digest", *digests]
    with pytest.raises(SystemExit):
        flags.parse(given, {})
    assert "--api-key-digest" in capsys.readouterr().err


def test_the_operators_routers_look_where_its_engines_are():
    chosen = understood()
    assert chosen.engine_port == names.ENGINE_PORT
    assert (CLUSTER_LABEL, ROLE_LABEL) == (names.LABEL_CLUSTER, names.LABEL_ROLE)
    assert names.LABEL_REVISION == REVISION_LABEL
    assert names.ROLE_BOTH == Role.BOTH


def test_a_router_listens_where_its_pod_and_service_say():
    chosen = understood()
    (container,) = rendered()["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": chosen.port, "metrics": chosen.metrics_port}
    (front,) = router.service(resources.cluster())["spec"]["ports"]
    assert ports[front["targetPort"]] == chosen.port


async def test_every_probe_of_a_routers_pod_is_a_route_of_the_router():
    (container,) = rendered()["containers"]
    probes = {kind: probe["httpGet"] for kind, probe in container.items() if "Probe" in kind}
    assert {"readinessProbe", "livenessProbe"} <= set(probes)
    async with routing([], ready=0) as running:
        urls = {"http": running.url, "metrics": running.metrics_url}
        for kind, probe in probes.items():
            reply = await ask(urls[probe["port"]], probe["path"], method="GET")
            assert reply.status in {200, 503}, (kind, probe, reply.body)


def test_a_router_that_leaves_is_not_killed_before_it_has_waited_for_its_requests():
    pod, chosen = rendered(drain={"timeoutSeconds": 600}), understood(drain={"timeoutSeconds": 600})
    noticed_s = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    leaving_s = noticed_s + chosen.unlisted_s + chosen.shutdown_s + server.CUT_S
    assert pod["terminationGracePeriodSeconds"] > leaving_s


def test_a_routers_memory_holds_what_it_says_it_needs_for_bodies():
    (container,) = rendered()["containers"]
    gib = int(container["resources"]["limits"]["memory"].removesuffix("Gi"))
    assert gib << 30 > 3 * understood().limits.bodies_bytes


@pytest.mark.parametrize("policy", get_args(Policy))
def test_every_policy_of_a_hypic_cluster_exists(policy):
    assert understood(router={"policy": policy}).policy == policy
    assert policy in POLICIES


def test_a_list_of_engines_needs_no_cluster():
    chosen = flags.parse(["--model", "m", "--engines", "http://a:1/,http://b:2"], {})
    assert chosen.engines == ("http://a:1", "http://b:2")
    assert chosen.kube_api is None


def test_an_ipv6_api_server_is_written_with_brackets():
    chosen = flags.parse(command(), {"KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert chosen.kube_api is not None
    assert chosen.kube_api.url == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--model", "m"], "either --engines, or"),
        (["--model", "m", "--engines", "http://a", "--cluster", "c"], "either --engines, or"),
        (["--model", "m", "--prefill", "http://a"], "--prefill and --decode need each other"),
        (["--model", "m", "--cluster", "c"], "--cluster needs --namespace"),
        (["--model", "m", "--cluster", "c", "--namespace", "n"], "--kube-api"),
        (["--engines", "http://a"], "--model"),
        (["--model", "m", "--engines", "a:1"], "must begin with http"),
        (["--model", "m", "--engines", "http://a", "--policy", "best"], "--policy"),
        (["--model", "m", "--engines", "http://a", "--separator", ""], "--separator must not"),
        (["--model", "m", "--engines", "http://a", "--max-segments", "0"], "--max-segments"),
        (["--model", "m", "--engines", "http://a", "--max-bodies-mib", "8"], "--max-bodies-mib"),
        (["--model", "m", "--engines", "http://a", "--idle-timeout-s", "-1"], "--idle-timeout-s"),
        (["--model", "m", "--engines", "http://a", "--max-held", "-1"], "--max-held"),
    ],
)
def test_a_wrong_flag_ends_the_process_with_its_name(wrong, words, capsys):
    with pytest.raises(SystemExit) as ended:
        flags.parse(wrong, {})
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
