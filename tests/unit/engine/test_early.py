"""What a starting engine says before SGLang's own server is there."""

import http.client
import json
import socket
import time
from types import SimpleNamespace

import pytest

from hypic_engine.plugin import loading
from hypic_engine.plugin.front.early import Early

from ...support.apiserver import free_ports


def arguments(port=1, host="127.0.0.1", **changed):
    return SimpleNamespace(
        **{"host": host, "port": port, "node_rank": 0, "ssl_certfile": None} | changed
    )


@pytest.fixture
def early(tmp_path):
    made = Early(tmp_path)
    yield made
    made.close()


def asked(port, method="GET", path="/pic/ready", host="127.0.0.1", body=None):
    """Status, headers and body of what is said."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def test_it_says_how_far_the_loading_is(early, tmp_path):
    port = free_ports(1)[0]
    early.open(arguments(port))
    status, headers, raw = asked(port)
    assert (status, headers["Retry-After"]) == (503, "5")
    assert json.loads(raw) == {"ready": False, "reason": "the engine is starting"}
    loading.tell(tmp_path, 41)
    assert json.loads(asked(port)[2]) == {
        "ready": False,
        "reason": "41 % of the weights are read",
        "loading": {"stage": "weights", "percent": 41},
    }
    loading.tell(tmp_path, 100)
    assert "all weights are read" in json.loads(asked(port)[2])["reason"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
def test_whoever_asks_for_something_else_is_told_to_come_back(early, method):
    port = free_ports(1)[0]
    early.open(arguments(port))
    status, _, raw = asked(port, method, "/v1/chat/completions", body="{}")
    assert status == 503
    assert (raw == b"") == (method == "HEAD")


def test_what_is_no_request_neither_ends_nor_holds_it(early):
    port = free_ports(1)[0]
    early.open(arguments(port))
    with socket.create_connection(("127.0.0.1", port)) as silent:
        with socket.create_connection(("127.0.0.1", port)) as garbage:
            garbage.sendall(b"\0\xff\r\n\r\n")
            assert b"400" in garbage.recv(1024)
        assert asked(port)[0] == 503
        silent.close()


def test_the_address_is_free_as_soon_as_it_is_closed(early):
    port = free_ports(1)[0]
    early.open(arguments(port))
    with socket.create_connection(("127.0.0.1", port)):
        early.close()
        with socket.create_server(("127.0.0.1", port)):
            pass
    early.close()


@pytest.mark.parametrize(
    ("workers", "http2", "leaves"), [(1, False, False), (2, False, True), (1, True, True)]
)
def test_several_servers_bind_it_before_their_application_starts(early, workers, http2, leaves):
    port = free_ports(1)[0]
    early.open(arguments(port))
    early.leave(arguments(tokenizer_worker_num=workers, enable_http2=http2))
    if leaves:
        with pytest.raises(ConnectionRefusedError):
            asked(port)
    else:
        assert asked(port)[0] == 503


def test_a_client_that_drips_holds_up_nobody(early):
    port = free_ports(1)[0]
    early.open(arguments(port))
    with socket.create_connection(("127.0.0.1", port)) as drips:
        drips.sendall(b"GE")
        before_s = time.monotonic()
        assert asked(port)[0] == 503
        early.close()
        assert time.monotonic() - before_s < 0.9


def test_an_address_of_the_sixth_version(early):
    port = free_ports(1)[0]
    early.open(arguments(port, host="::1"))
    assert asked(port, host="::1")[0] == 503


def test_an_address_that_somebody_has_is_left_alone(early, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        early.open(arguments(taken.getsockname()[1]))
    assert "how far the loading is" in caplog.text


@pytest.mark.parametrize("changed", [{"node_rank": 1}, {"ssl_certfile": "cert.pem"}])
def test_where_sglang_answers_by_itself_or_with_tls_it_does_not(early, changed):
    port = free_ports(1)[0]
    early.open(arguments(port, **changed))
    with pytest.raises(ConnectionRefusedError):
        asked(port)


def test_weights_are_counted_once_they_are_taken(tmp_path):
    files = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for file in files:
        file.write_bytes(bytes(100))
    weights = loading.Weights(tmp_path / "own")
    assert loading.told(tmp_path / "own") is None
    weights.learn((str(tmp_path), [str(file) for file in files], True))
    assert loading.told(tmp_path / "own") == 0
    tensors = [("x", SimpleNamespace(nbytes=50)), ("y", SimpleNamespace(nbytes=146))]
    taken = weights.count(lambda: iter(tensors))
    seen = [(item, loading.told(tmp_path / "own")) for item in taken]
    assert seen == [(tensors[0], 0), (tensors[1], 25)]
    assert loading.told(tmp_path / "own") == 100


def test_files_that_are_not_there_are_missed_when_they_are_asked_for(tmp_path):
    def missing():
        raise RuntimeError("Cannot find any model weights")

    with pytest.raises(RuntimeError, match="Cannot find"):
        loading.Weights(tmp_path).count(missing)


def test_a_folder_that_cannot_be_written_keeps_no_model_from_being_loaded(tmp_path):
    (tmp_path / "file").touch()
    weights = loading.Weights(tmp_path / "file" / "own")
    weights.learn((str(tmp_path), [str(tmp_path / "no such file")], True))
    tensors = [("x", SimpleNamespace(nbytes=1))]
    assert list(weights.count(lambda: iter(tensors))) == tensors
    assert loading.told(tmp_path / "file" / "own") is None


def test_a_part_that_is_looked_for_later_is_counted_too(tmp_path):
    weights = loading.Weights(tmp_path / "own")
    for size, after in ((300, 100), (100, 75)):
        (tmp_path / f"{size}").write_bytes(bytes(size))
        weights.learn((str(tmp_path), [str(tmp_path / f"{size}")], True))
        if size == 300:
            list(weights.count(lambda: iter([("x", SimpleNamespace(nbytes=900))])))
        assert loading.told(tmp_path / "own") == after
