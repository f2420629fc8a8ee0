"""Requests and command lines that cannot work are refused in one sentence; the server stays."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from ...support.engine_server import command, environment, free_port

SEPARATOR = "<<PIC_SEP>>"
SAMPLING = {"temperature": 0, "max_new_tokens": 4}
LAUNCHER = ("-m", "sglang.launch_server")
IDS = [11] * 64


def by_ids(ids, **pic):
    custom = {"custom_params": {"pic": pic}} if pic else {}
    return {"input_ids": ids, "sampling_params": SAMPLING | custom}


def by_text(text, **sampling):
    return {"text": text, "sampling_params": SAMPLING | sampling}


BAD = [
    (by_ids([11, -1, 12]), "input_ids"),
    (by_ids([11, 512, 12]), "input_ids"),
    (by_ids([11, 999_999_999]), "input_ids"),
    (by_ids([11, 1 << 65]), "input_ids"),
    (by_ids([11, 1.5]), ""),
    (by_ids([]), ""),
    (by_ids([[11], [12, [13]]]), ""),
    (by_ids(IDS, segment_ends=[65]), "custom_params.pic.segment_ends"),
    (by_ids(IDS, segment_ends=[20, 10]), "custom_params.pic.segment_ends"),
    (by_ids(IDS, segment_ends=[-1]), "custom_params.pic.segment_ends"),
    (by_ids(IDS, segment_ends="ten"), "custom_params.pic.segment_ends"),
    (by_ids(IDS, segmentends=[3]), "custom_params.pic"),
    (by_ids(IDS, recompute="some"), "custom_params.pic.recompute"),
    (by_ids(IDS, enabled="yes"), "custom_params.pic.enabled"),
    (by_text("a", custom_params=[1]), "custom_params"),
    (by_text("a", custom_params={"pic": 1}), "custom_params.pic"),
    (by_text("a", logit_bias={"999999999": 5}), "logit_bias"),
    (by_text("a", stop_token_ids=[999_999_999], min_new_tokens=2), "stop_token_ids"),
    ({"input_embeds": [[0.1] * 128] * 3, "sampling_params": SAMPLING}, "input_embeds"),
    (by_text(""), ""),
    (by_text(SEPARATOR), "prompt"),
    (by_text(SEPARATOR * 3), "prompt"),
    (by_text(f"one more note{SEPARATOR}" * 600 + "End?"), "segments"),
    (
        by_text(f"ab{SEPARATOR}cd", custom_params={"pic": {"segment_ends": [1]}}),
        "custom_params.pic.segment_ends",
    ),
]


@pytest.mark.parametrize(("body", "named"), BAD, ids=[f"{n}" for n in range(len(BAD))])
def test_a_bad_request_is_a_400_that_names_the_field_and_the_next_is_served(engine, body, named):
    status, answer = engine.post("/generate", body, timeout_s=30)
    assert status == 400, answer
    assert named in json.dumps(answer)
    assert engine.generate("Hello there", n_tokens=2)["output_ids"]


def test_superfluous_separators_change_nothing(engine):
    document = "Ferry 12 leaves Orsund at ten past six. " * 5
    tidy = engine.generate(SEPARATOR.join(["Note.", document, "Which ferry?"]))
    untidy = f"{SEPARATOR}Note.{SEPARATOR}{SEPARATOR}{document}{SEPARATOR}Which ferry?{SEPARATOR}"
    asked = engine.generate(untidy)
    assert asked["output_ids"] == tidy["output_ids"]
    assert asked["meta_info"]["prompt_tokens"] == tidy["meta_info"]["prompt_tokens"]


@pytest.fixture(scope="module")
def dense(tmp_path_factory) -> Path:
    """The configuration of a model without linear attention."""
    folder = tmp_path_factory.mktemp("dense")
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 512}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 512}
    names = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(names | sizes | heads))
    return folder


@pytest.fixture(scope="module")
def unknown_version(tmp_path_factory) -> Path:
    """A folder in which SGLang claims to be of another version."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "sglang-0.6.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.6.0\n")
    return folder


def refused(model: Path, *flags: str, first_on_path: Path | None = None) -> str:
    """What a server says that does not start."""
    variables = environment()
    if first_on_path is not None:
        variables["PYTHONPATH"] = f"{first_on_path}{os.pathsep}{os.environ['PYTHONPATH']}"
    ended = subprocess.run(
        command(model, free_port(), *flags, launcher=LAUNCHER),
        env=variables,
        cwd=model.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr, ended.stderr
    return next(line for line in ended.stderr.splitlines() if "error: " in line)


def test_an_unknown_mode_is_refused_with_those_that_exist(tiny):
    message = refused(tiny, "--pic-enable", "--pic-mode", "best")
    assert "--pic-mode" in message
    assert "transition_rope_recompute" in message


def test_a_flag_that_conflicts_is_refused_with_both_names(tiny):
    message = refused(tiny, "--pic-enable", "--page-size", "16")
    assert message == (
        "error: --page-size 16 cannot be combined with --pic-enable; use --page-size 1"
    )


def test_a_model_without_linear_attention_is_refused_with_its_architecture(dense):
    message = refused(dense, "--pic-enable")
    assert "--model-path holds LlamaForCausalLM" in message
    assert "Qwen3_5ForConditionalGeneration" in message


def test_an_unknown_sglang_is_refused_with_the_version_that_works(tiny, unknown_version):
    message = refused(tiny, "--pic-enable", first_on_path=unknown_version)
    assert "SGLang 0.6.0" in message
    assert "0.5.14" in message
