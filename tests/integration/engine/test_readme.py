import argparse
import json
import re
import shlex
from pathlib import Path

import pytest

from hypic_engine.plugin import settings

from ...support.engine_server import Engine

README = (Path(__file__).parents[3] / "README.md").read_text()
CURL = re.compile(r"curl localhost:30000(/\S+) .*? -d '(\{.*?\})'\n", re.DOTALL)
LAUNCH = re.compile(r"^    python -m sglang.launch_server (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def as_printed(tiny, tmp_path_factory):
    """A server with exactly the README's flags, and nothing in its environment for a CPU."""
    launch = LAUNCH.search(README)
    assert launch is not None
    words = shlex.split(launch[1])
    assert words[:4] == ["--model-path", "/tmp/tiny-qwen3.5", "--port", "30000"]
    log = tmp_path_factory.mktemp("readme") / "log"
    with Engine(tiny, log, flags=tuple(words[4:]), bare=True, start_timeout_s=300) as running:
        yield running


def test_the_readmes_three_curls_answer_what_it_prints(as_printed):
    requests = CURL.findall(README)
    answers = [as_printed.post(path, json.loads(body)) for path, body in requests]
    assert [status for status, _ in answers] == [200, 200, 200]
    printed = re.search(r'^\{"cached_tokens".*\}$', README, re.MULTILINE)
    assert printed is not None
    wanted = json.loads(printed[0])
    meta = answers[-1][1]["meta_info"]
    for times in ("fill_ms", "assemble_ms"):
        assert wanted["pic"].pop(times) > 0
        assert meta["pic"].pop(times) > 0
    assert {name: meta[name] for name in wanted} == wanted


def test_the_server_says_why_it_started_twice(as_printed):
    assert "no accelerator found" in as_printed.log.read_text()


def test_every_flag_that_the_readme_names_is_one_of_the_engines():
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    named = set(re.findall(r"--pic-[a-z-]+", README))
    assert "--pic-enable" in named
    assert named <= set(parser._option_string_actions)
