import json
from pathlib import Path

import jinja2
import pytest
from tokenizers import Tokenizer

from ..support.oracle import full

PROMPT = "Head. The tower is in Paris, France. The mountain is in Japan. Which country?"


def test_the_script_writes_the_same_bits_again(tiny_model, tiny_folder, tmp_path):
    tiny_model.publish(tmp_path / "again")
    assert tiny_model.digest(tmp_path / "again") == tiny_model.digest(tiny_folder)


def test_the_script_replaces_a_model_and_prints_its_digest(
    tiny_model, tiny_folder, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "deep" / "model"
    out.mkdir(parents=True)
    (out / "stale").touch()
    monkeypatch.setattr("sys.argv", ["tiny_model.py", str(out)])
    tiny_model.main()
    assert capsys.readouterr().out == f"sha256:{tiny_model.digest(tiny_folder)}\n"
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert [path.name for path in out.parent.iterdir()] == ["model"]


def test_a_failed_write_leaves_the_old_model_and_no_litter(tiny_model, tmp_path, monkeypatch):
    out = tmp_path / "model"
    out.mkdir()
    (out / "old").touch()

    def fails(folder, _family):
        (folder / "config.json").touch()
        raise OSError("disk full")

    monkeypatch.setattr(tiny_model, "write", fails)
    with pytest.raises(OSError, match="disk full"):
        tiny_model.publish(out)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (out / "old").exists()


def test_others_may_read_the_files(tiny_folder):
    assert {path.stat().st_mode & 0o777 for path in tiny_folder.iterdir()} == {0o644}
    assert tiny_folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.usefixtures("tiny_model")
def test_a_weight_is_normal_with_the_size_asked_for():
    from tiny import noise  # noqa: PLC0415 - beside a script, found only now

    values = noise.normal("any name", (1000, 100), std=0.5)
    assert values.mean().abs() < 0.01
    assert (values.std() - 0.5).abs() < 0.01
    assert values.abs().max() < 2.0


def test_a_byte_is_a_token_and_its_own_id(tiny_folder):
    tokenizer = Tokenizer.from_file(str(tiny_folder / "tokenizer.json"))
    text = "".join(map(chr, range(128))) + "é…"
    assert tokenizer.encode(text).ids == list(text.encode())
    assert tokenizer.decode(list(text.encode())) == text
    assert tokenizer.encode("a<|im_start|>b<|im_end|><|endoftext|>").ids == [97, 257, 98, 258, 256]


@pytest.mark.parametrize("content", ["Hello", [{"text": "Hel"}, {"type": "text", "text": "lo"}]])
def test_the_chat_template_takes_text_and_lists_of_parts(tiny_folder, content):
    settings = json.loads((tiny_folder / "tokenizer_config.json").read_text())
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(
        settings["chat_template"]
    )
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": content}]
    shown = template.render(messages=messages, add_generation_prompt=True)
    assert shown == (
        "<|im_start|>system\nS<|im_end|>\n"
        "<|im_start|>user\nHello<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(
    ("old", "new"), [("Head", "head"), ("Paris", "Parit"), ("Japan", "Jaban"), ("Which", "which")]
)
def test_one_letter_anywhere_changes_the_answer(any_oracle, old, new):
    answer = full(any_oracle, list(PROMPT.encode()), 8)
    assert full(any_oracle, list(PROMPT.replace(old, new).encode()), 8) != answer


def test_answers_are_printable_and_varied(any_oracle):
    answer = full(any_oracle, list(PROMPT.encode()), 32)
    assert bytes(answer).decode("ascii").replace("\n", "").isprintable()
    assert len(set(answer)) > 12


def test_the_readme_shows_the_digest_that_every_machine_prints(tiny_model, tiny_folder):
    readme = Path(tiny_model.__file__).with_name("README.md").read_text()
    assert f"sha256:{tiny_model.digest(tiny_folder)}" in readme
