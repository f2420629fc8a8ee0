"""What an engine says while it starts is what the operator reads."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hypic_engine.plugin import loading as engine
from hypic_engine.plugin.front import early
from hypic_operator import download
from hypic_operator.core import loading
from hypic_operator.core.loading import Progress

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("percent", [0, 41, 100])
def test_the_weights_that_are_read(tmp_path: Path, percent: int) -> None:
    engine.tell(tmp_path, percent)
    said = early.state(tmp_path)
    assert loading.progress(said, at=NOW) == Progress("weights", percent, NOW)


def test_nothing_before_the_first(tmp_path: Path) -> None:
    assert loading.progress(early.state(tmp_path), at=NOW) is None


def test_the_share_that_is_downloaded(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(bytes(41))
    said = download.state(tmp_path, 100)
    assert loading.progress(said, at=NOW) == Progress("download", 41, NOW)
    assert loading.progress(download.state(tmp_path, 0), at=NOW) is None
