import subprocess
import sys
from pathlib import Path

from local import cli
from local.settings import REPOSITORY


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "local", *words],
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_refusal_is_one_message_without_a_traceback(tmp_path: Path) -> None:
    done = run("kubeconfig", HYPIC_CACHE=str(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "local: no cluster yet: run `python3 -m local up` first\n"


def test_an_unknown_tool_lists_the_known_ones(tmp_path: Path) -> None:
    done = run("tool", "kubetcl", HYPIC_CACHE=str(tmp_path))
    assert done.returncode == 1
    assert "kubectl" in done.stderr


def test_the_tag_is_the_only_word_on_standard_output() -> None:
    done = run("tag")
    assert done.returncode == 0
    assert done.stdout.startswith("0.1.0-")
    assert done.stdout.count("\n") == 1


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    done = run("up", HYPIC_CACHE=str(tmp_path), KUBECONFIG=str(tmp_path / "absent"))
    assert done.returncode == 1
    assert str(tmp_path / "absent") in done.stderr
    assert "unset" in done.stderr


def test_another_cluster_is_never_ended_from_here(tmp_path: Path) -> None:
    done = run("down", HYPIC_CACHE=str(tmp_path), KUBECONFIG=str(tmp_path / "kind"))
    assert done.returncode == 1
    assert "was not made here" in done.stderr


def test_the_demo_leaves_another_cluster_alone_and_says_how_to_install_there(
    tmp_path: Path,
) -> None:
    kubeconfig = tmp_path / "team"
    kubeconfig.touch()
    done = run("demo", HYPIC_CACHE=str(tmp_path / "cache"), KUBECONFIG=str(kubeconfig))
    assert done.returncode == 1
    assert done.stderr == ""  # nothing was begun
    assert done.stdout.startswith("demo: failed: ")
    assert str(kubeconfig) in done.stdout
    assert "docs/install.md" in done.stdout
    assert not (tmp_path / "cache").exists()


def test_a_demo_that_fails_ends_with_what_failed_and_what_to_do(tmp_path: Path) -> None:
    done = run("demo", HYPIC_CACHE=str(tmp_path / ("long" * 20)))
    assert done.returncode == 1
    assert done.stdout.startswith("demo: failed: ")
    assert "HYPIC_CACHE" in done.stdout or "sudo" in done.stdout


def test_it_runs_on_a_python_without_packages() -> None:
    bare = [sys.executable, "-S", "-m", "local", "tag"]
    done = subprocess.run(bare, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_command_has_a_help_text() -> None:
    shown = cli.parser().format_help()
    words = "up down status load images tag kubeconfig tool engine-python model publish demo"
    assert [word for word in words.split() if f"\n    {word} " not in shown] == []
