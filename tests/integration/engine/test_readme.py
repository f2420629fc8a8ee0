import json
import re
from pathlib import Path

README = (Path(__file__).parents[3] / "README.md").read_text()
CURL = re.compile(r"curl localhost:30000(/\S+) .*? -d '(\{.*?\})'\n", re.DOTALL)


def test_the_readmes_three_curls_answer_what_it_prints(engine):
    engine.flush()
    requests = CURL.findall(README)
    answers = [engine.post(path, json.loads(body)) for path, body in requests]
    assert [status for status, _ in answers] == [200, 200, 200]
    printed = re.search(r'^\{"cached_tokens".*\}$', README, re.MULTILINE)
    assert printed is not None
    wanted = json.loads(printed[0])
    meta = answers[-1][1]["meta_info"]
    assert {name: meta[name] for name in wanted} == wanted


def test_every_flag_that_the_readme_names_is_one_of_the_engines(engine):
    named = set(re.findall(r"--pic-[a-z-]+", README))
    known = engine.get("/pic/info")["settings"]
    assert {"--pic-enable", "--pic-mode"} <= named
    assert known["separator"] in README
