from pathlib import Path

import pytest

from local import preflight
from local.cluster.core.names import Listen
from local.errors import RefusedError

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when uid timeout inode\n"


def row(address: str, state: str, inode: int) -> str:
    return f"   0: {address} 00000000:0000 {state} 0:0 0:0 0 0 0 {inode} 1\n"


def tables(**rows: str) -> dict[str, str]:
    return {name: HEAD + rows.get(name, "") for name in ("tcp", "tcp6", "udp", "udp6")}


def test_a_listener_on_the_same_address_is_in_the_way() -> None:
    listed = tables(tcp=row("0100007F:094B", "0A", 77))
    assert preflight.in_the_way(Listen("127.0.0.1", 2379), listed) == 77


def test_a_listener_on_every_address_is_in_the_way() -> None:
    assert preflight.in_the_way(
        Listen("10.98.0.1", 53, "udp"), tables(udp=row("00000000:0035", "07", 5))
    )
    assert preflight.in_the_way(
        Listen("10.98.0.1", 6443), tables(tcp6=row(f"{'0' * 32}:192B", "0A", 6))
    )


def test_another_address_and_a_mere_connection_are_not() -> None:
    listed = tables(
        tcp=row("0200007F:094B", "0A", 1) + row("0100007F:094B", "01", 2),
        udp=row("3500007F:0035", "07", 3),
    )
    assert preflight.in_the_way(Listen("127.0.0.1", 2379), listed) is None
    assert preflight.in_the_way(Listen("10.98.0.1", 53, "udp"), listed) is None


def test_a_small_disk_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(preflight.NEEDS_GB, "images", 10**6)
    with pytest.raises(RefusedError, match=r"images need about 1000000 GB, .* GB free"):
        preflight.require_disk(Path("/nonexistent/cache"), ["images"])


def test_what_is_there_already_needs_no_room() -> None:
    preflight.require_disk(Path("/nonexistent/cache"), [])


def test_a_path_too_long_for_a_socket_is_refused() -> None:
    with pytest.raises(RefusedError, match="HYPIC_CACHE"):
        preflight.require_short_path(Path("/" + "long" * 20))


def test_control_groups_of_version_2_are_said_to_be_untested(tmp_path: Path) -> None:
    assert preflight.untested(tmp_path) is None
    (tmp_path / "cgroup.controllers").touch()
    assert "version 2" in str(preflight.untested(tmp_path))


def test_no_system_is_recommended_that_lacks_our_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RefusedError, match="use Debian 12, install them by hand"):
        preflight.require_debian()
