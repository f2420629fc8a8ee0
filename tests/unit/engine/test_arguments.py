import argparse
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from hypic_engine.plugin import settings
from hypic_engine.plugin.arguments import Arguments
from hypic_engine.plugin.compatibility import REQUIRED


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
    lora_paths: list[str] | None = None
    enable_multimodal: bool | None = None
    cuda_graph_backend_prefill: str | None = None
    attention_backend: str | None = None
    prefill_attention_backend: str | None = None
    decode_attention_backend: str | None = None
    linear_attn_backend: str = "triton"
    linear_attn_prefill_backend: str | None = None
    linear_attn_decode_backend: str | None = None
    kv_cache_dtype: str = "auto"
    enable_int8_mamba_checkpoint: bool = False
    dllm_algorithm: str | None = None
    enable_hierarchical_cache: bool = False
    enable_lmcache: bool = False
    enable_hisparse: bool = False
    enable_mixed_chunk: bool = False
    enable_dynamic_chunking: bool = False
    enable_two_batch_overlap: bool = False
    enable_pdmux: bool = False
    enable_streaming_session: bool = False
    enable_dp_attention: bool = False
    pp_size: int = 1
    dp_size: int = 1
    attn_cp_size: int = 1
    enable_dynamic_batch_tokenizer: bool = False
    grpc_mode: bool = False
    tokenizer_worker_num: int = 1
    api_key: str | None = None
    admin_api_key: str | None = None
    encoder_only: bool = False
    language_only: bool = False
    disaggregation_mode: str = "null"
    disaggregation_transfer_backend: str = "mooncake"
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
    assert (args.page_size, args.chunked_prefill_size, args.disable_radix_cache) == (1, -1, False)
    assert args.radix_cache_backend == "hypic"


def test_prefix_caching_stays_as_the_user_wants_it(monkeypatch):
    assert not read(monkeypatch, "--pic-enable").disable_radix_cache
    assert read(monkeypatch, "--pic-enable", disable_radix_cache=True).disable_radix_cache


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


REFUSED = [
    ("page_size", 16, "--page-size"),
    ("chunked_prefill_size", 4096, "--chunked-prefill-size"),
    ("radix_cache_backend", "other", "--radix-cache-backend"),
    ("enable_multimodal", True, "--enable-multimodal"),
    ("cuda_graph_backend_prefill", "full", "--cuda-graph-backend-prefill"),
    ("attention_backend", "fa3", "--attention-backend"),
    ("prefill_attention_backend", "fa3", "--prefill-attention-backend"),
    ("decode_attention_backend", "fa3", "--decode-attention-backend"),
    ("linear_attn_backend", "cutedsl", "--linear-attn-backend"),
    ("linear_attn_prefill_backend", "cutedsl", "--linear-attn-prefill-backend"),
    ("linear_attn_decode_backend", "cutedsl", "--linear-attn-decode-backend"),
    ("kv_cache_dtype", "fp8_e4m3", "--kv-cache-dtype"),
    ("enable_int8_mamba_checkpoint", True, "--enable-int8-mamba-checkpoint"),
    ("speculative_algorithm", "EAGLE", "--speculative-algorithm"),
    ("dllm_algorithm", "x", "--dllm-algorithm"),
    ("enable_lora", True, "--enable-lora"),
    ("lora_paths", ["a"], "--lora-paths"),
    ("enable_hierarchical_cache", True, "--enable-hierarchical-cache"),
    ("enable_lmcache", True, "--enable-lmcache"),
    ("enable_hisparse", True, "--enable-hisparse"),
    ("enable_mixed_chunk", True, "--enable-mixed-chunk"),
    ("enable_dynamic_chunking", True, "--enable-dynamic-chunking"),
    ("enable_two_batch_overlap", True, "--enable-two-batch-overlap"),
    ("enable_pdmux", True, "--enable-pdmux"),
    ("enable_streaming_session", True, "--enable-streaming-session"),
    ("enable_dp_attention", True, "--enable-dp-attention"),
    ("pp_size", 2, "--pipeline-parallel-size"),
    ("dp_size", 2, "--data-parallel-size"),
    ("attn_cp_size", 2, "--attention-context-parallel-size"),
    ("tokenizer_worker_num", 2, "--tokenizer-worker-num"),
    ("enable_dynamic_batch_tokenizer", True, "--enable-dynamic-batch-tokenizer"),
    ("grpc_mode", True, "--grpc-mode"),
    ("encoder_only", True, "--encoder-only"),
    ("language_only", True, "--language-only"),
]
README = (Path(__file__).parents[3] / "engine" / "README.md").read_text()


@pytest.mark.parametrize(("field", "value", "flag"), REFUSED, ids=[f for f, _, _ in REFUSED])
def test_a_flag_that_cannot_go_with_segments_is_refused_with_both_names(
    monkeypatch, capsys, field, value, flag
):
    with pytest.raises(SystemExit) as exit_:
        read(monkeypatch, "--pic-enable", **{field: value})
    said = capsys.readouterr().err
    assert exit_.value.code == 2
    assert f"{flag} {value}" in said
    assert "--pic-enable" in said
    assert said.count("\n") == 1


def test_every_flag_that_is_refused_has_a_test_and_stands_in_the_readme():
    assert {(field, flag) for field, (flag, _, _) in REQUIRED.items()} == {
        (field, flag) for field, _, flag in REFUSED
    }
    assert [flag for _, _, flag in REFUSED if f"`{flag}`" not in README] == []


def test_a_decode_server_only_takes_prompts_apart(monkeypatch, capsys):
    told = []
    decode = {"disaggregation_mode": "decode", "page_size": 16, "speculative_algorithm": "EAGLE"}
    args = read(monkeypatch, "--pic-enable", told=told, **decode)
    assert (told[0].role, told[0].caches) == ("decode", False)
    assert (args.radix_cache_backend, args.enable_multimodal) == (None, False)
    with pytest.raises(SystemExit):
        read(monkeypatch, "--pic-enable", disaggregation_mode="decode", enable_multimodal=True)
    assert "--enable-multimodal" in capsys.readouterr().err


def test_a_prefill_server_is_held_to_the_same_flags_as_one_alone(monkeypatch, capsys):
    told = []
    read(monkeypatch, "--pic-enable", told=told, disaggregation_mode="prefill")
    assert (told[0].role, told[0].caches) == ("prefill", True)
    with pytest.raises(SystemExit):
        read(monkeypatch, "--pic-enable", disaggregation_mode="prefill", page_size=16)
    assert "--page-size 16" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("field", "flag"), [("api_key", "--api-key"), ("admin_api_key", "--admin-api-key")]
)
def test_a_key_is_refused_where_nobody_would_be_asked_for_it(monkeypatch, capsys, field, flag):
    read(monkeypatch, **{field: "secret"})
    with pytest.raises(SystemExit):
        read(monkeypatch, **{field: "secret"}, tokenizer_worker_num=2)
    said = capsys.readouterr().err
    assert flag in said
    assert "--tokenizer-worker-num 2" in said
    assert "secret" not in said


def test_a_model_without_linear_attention_is_refused(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        read(monkeypatch, "--pic-enable", architecture="LlamaForCausalLM")
    said = capsys.readouterr().err
    assert "LlamaForCausalLM" in said
    assert "Qwen3NextForCausalLM" in said


@pytest.mark.parametrize(
    ("architecture", "keeps"),
    [("Qwen3NextForCausalLM", True), ("BailingMoeLinearV2ForCausalLM", False)],
)
def test_a_known_family_is_accepted_and_its_prefix_cache_kept_where_it_is_right(
    monkeypatch, architecture, keeps
):
    args = read(monkeypatch, "--pic-enable", architecture=architecture)
    assert args.radix_cache_backend == "hypic"
    assert args.disable_radix_cache is not keeps


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
