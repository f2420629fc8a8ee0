"""The examples end right, and say so by their exit status."""

import re

import pytest

from .test_offline import ROOT, run

LINE = re.compile(r"^(\w+) +(\d+) +(\d+) +(\d+) +(\d) of 8$", re.MULTILINE)
LAYER = re.compile(r"^layer +\d+: (\S+)$", re.MULTILINE)


@pytest.mark.parametrize("how", [(), ("--online",)], ids=["offline", "online"])
def test_segments_are_found_in_another_order_where_prefixes_are_not(how, tiny):
    ways = ["prefix_cache", "pic_transition_rope_recompute"]
    script = ROOT / "examples" / "six_ways.py"
    ended = run(script, tiny, "--ways", ",".join(ways), *how)
    assert ended.returncode == 0, ended.stderr[-4000:]
    lines = LINE.findall(ended.stdout)
    assert [way for way, *_ in lines] == ways
    prefixes, segments = (int(found) for _, _, _, found, _ in lines)
    assert prefixes <= 256 < 4 * 248 <= segments


def test_a_difference_between_layers_is_found_and_named(tiny):
    ended = run(ROOT / "examples" / "layer_divergence.py", tiny)
    assert ended.returncode == 0, ended.stderr[-4000:]
    layers = [
        float(said) for said in re.findall(r"^layer +\d+: (\S+)$", ended.stdout, re.MULTILINE)
    ]
    assert len(layers) == 8
    # Documents that did not see each other: the first layers differ by rounding, later ones more.
    assert layers[0] < 1e-3 < max(layers)
    assert re.search(r"^layer \d is the first that differs$", ended.stdout, re.MULTILINE)
