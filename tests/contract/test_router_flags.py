"""The command that the operator renders is one that the router understands."""

import pytest

from hypic_router import settings
from hypic_router.core.prompt import Names
from hypic_router.core.score import POLICIES

# As rendered for a HypicCluster.
COMMAND = [
    "--port",
    "8080",
    "--metrics-port",
    "9090",
    "--namespace",
    "demo-ns",
    "--cluster",
    "demo",
    "--model",
    "tiny-qwen3.5",
    "--separator",
    "<<PIC_SEP>>",
    "--max-segments",
    "512",
    "--policy",
    "segment",
]
IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_the_operators_command_is_understood():
    chosen = settings.parse(COMMAND, IN_A_POD)
    assert (chosen.port, chosen.metrics_port) == (8080, 9090)
    assert (chosen.namespace, chosen.cluster) == ("demo-ns", "demo")
    assert chosen.names == Names("tiny-qwen3.5", "<<PIC_SEP>>", 512)
    assert chosen.kube_api is not None
    assert chosen.kube_api.url == "https://10.0.0.1:443"
    assert chosen.engine_port == 30_000


@pytest.mark.parametrize("policy", ["segment", "least_load", "round_robin"])
def test_every_policy_of_a_hypic_cluster_exists(policy):
    assert settings.parse([*COMMAND[:-1], policy], IN_A_POD).policy == policy
    assert policy in POLICIES


def test_a_list_of_engines_needs_no_cluster():
    chosen = settings.parse(["--model", "m", "--engines", "http://a:1/,http://b:2"], {})
    assert chosen.engines == ("http://a:1", "http://b:2")
    assert chosen.kube_api is None


def test_an_ipv6_api_server_is_written_with_brackets():
    chosen = settings.parse(COMMAND, {"KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert chosen.kube_api is not None
    assert chosen.kube_api.url == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--model", "m"], "either --engines or --cluster"),
        (["--model", "m", "--engines", "http://a", "--cluster", "c"], "either --engines or"),
        (["--model", "m", "--cluster", "c"], "--cluster needs --namespace"),
        (["--model", "m", "--cluster", "c", "--namespace", "n"], "--kube-api"),
        (["--engines", "http://a"], "--model"),
        (["--model", "m", "--engines", "a:1"], "must begin with http"),
        (["--model", "m", "--engines", "http://a", "--policy", "best"], "--policy"),
        (["--model", "m", "--engines", "http://a", "--separator", ""], "--separator must not"),
        (["--model", "m", "--engines", "http://a", "--max-segments", "0"], "--max-segments"),
        (["--model", "m", "--engines", "http://a", "--idle-timeout-s", "-1"], "--idle-timeout-s"),
    ],
)
def test_a_wrong_flag_ends_the_process_with_its_name(flags, words, capsys):
    with pytest.raises(SystemExit) as ended:
        settings.parse(flags, {})
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
