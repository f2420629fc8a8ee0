import argparse
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from hypic_engine.plugin import settings
from hypic_engine.plugin.arguments import Arguments


@dataclass
class HostArgs:
    """Those of SGLang's fields that a test needs."""

    page_size: int | None = None
    chunked_prefill_size: int | None = None
    disable_radix_cache: bool = False
    radix_cache_backend: str | None = None
    device: str | None = None
    max_total_tokens: int | None = None
    speculative_algorithm: str | None = None
    enable_lora: bool | None = None
    architecture: str = "Qwen3_5ForConditionalGeneration"

    def get_model_config(self):
        return SimpleNamespace(hf_config=SimpleNamespace(architectures=[self.architecture]))


def build(cls, arguments):
    names = cls.__dataclass_fields__
    return cls(**{name: getattr(arguments, name) for name in names})


def read(monkeypatch, *flags, on_cpu=False, problem=None, told=None, **host):
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    parser = argparse.ArgumentParser()
    hook = Arguments(
        on_cpu=on_cpu,
        host_problem=problem,
        on_read=(told.append if told is not None else lambda _: None),
    )
    hook.add(None, parser)
    arguments = parser.parse_args(flags)
    for name, value in (vars(HostArgs()) | host).items():
        setattr(arguments, name, value)
    return hook.read(build, HostArgs, arguments)


def test_what_segments_need_is_preset(monkeypatch):
    args = read(monkeypatch, "--pic-enable")
    assert (args.page_size, args.chunked_prefill_size, args.disable_radix_cache) == (1, -1, True)
    assert args.radix_cache_backend == "hypic"


def test_with_segments_off_nothing_is_preset(monkeypatch):
    args = read(monkeypatch)
    assert (args.page_size, args.radix_cache_backend) == (None, None)


def test_a_small_machine_gets_its_presets_unless_the_user_chose(monkeypatch):
    assert read(monkeypatch, on_cpu=True).device == "cpu"
    assert read(monkeypatch, on_cpu=True, max_total_tokens=99).max_total_tokens == 99


def test_the_rest_of_the_process_is_told(monkeypatch):
    told = []
    read(monkeypatch, "--pic-enable", told=told)
    assert told[0].enabled
    assert told[0].control_path.endswith("control.sock")


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ({"chunked_prefill_size": 4096}, "--chunked-prefill-size 4096"),
        ({"page_size": 16}, "--page-size 16"),
        ({"radix_cache_backend": "other"}, "--radix-cache-backend other"),
        ({"speculative_algorithm": "EAGLE"}, "--speculative-algorithm EAGLE"),
        ({"enable_lora": True}, "--enable-lora True"),
    ],
)
def test_a_flag_that_cannot_go_with_segments_is_refused_with_both_names(
    monkeypatch, capsys, host, message
):
    with pytest.raises(SystemExit) as exit_:
        read(monkeypatch, "--pic-enable", **host)
    said = capsys.readouterr().err
    assert exit_.value.code == 2
    assert message in said
    assert "--pic-enable" in said
    assert said.count("\n") == 1


def test_a_model_without_linear_attention_is_refused(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        read(monkeypatch, "--pic-enable", architecture="LlamaForCausalLM")
    said = capsys.readouterr().err
    assert "LlamaForCausalLM" in said
    assert "Qwen3NextForCausalLM" in said


@pytest.mark.parametrize("architecture", ["Qwen3NextForCausalLM", "BailingMoeLinearV2ForCausalLM"])
def test_a_model_of_a_known_family_is_accepted(monkeypatch, architecture):
    assert read(monkeypatch, "--pic-enable", architecture=architecture).disable_radix_cache


def test_ring_is_not_served_with_the_prefix_cache_that_is_wrong_for_it(monkeypatch, capsys):
    ring = "BailingMoeLinearV2ForCausalLM"
    with pytest.raises(SystemExit):
        read(monkeypatch, architecture=ring)
    assert "--disable-radix-cache" in capsys.readouterr().err
    read(monkeypatch, architecture=ring, disable_radix_cache=True)


def test_a_model_of_sglangs_own_is_left_to_it_when_segments_are_off(monkeypatch):
    read(monkeypatch, architecture="LlamaForCausalLM")
    read(monkeypatch, architecture="BailingMoeV2_5ForCausalLM")


def test_an_unknown_sglang_is_refused_only_when_segments_are_wanted(monkeypatch, capsys):
    read(monkeypatch, problem="SGLang 9.9 is not known")
    with pytest.raises(SystemExit):
        read(monkeypatch, "--pic-enable", problem="SGLang 9.9 is not known")
    assert "SGLang 9.9" in capsys.readouterr().err
