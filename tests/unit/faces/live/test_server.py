"""The server answers its user only, whatever it is sent, and ends with its block."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import closing, suppress

import pytest

from shine.faces.live import server as module
from shine.faces.live.server import LONGEST_BODY, Server


class Pages:
    """What a server shows: a page, two messages and then as many as are asked for, and an action that echoes."""

    def __init__(self):
        self.end = threading.Event()
        self.size = 10

    def page(self):
        return "<p>the page</p>"

    def messages(self):
        yield json.dumps({"text": "x" * self.size})
        yield ""
        self.end.wait(30)
        yield json.dumps({"text": "the end"})

    @property
    def actions(self):
        return {"echo": self.echo}

    @staticmethod
    def echo(values):
        if "wrong" in values:
            raise ValueError(f"{values['wrong']} is wrong")
        return {"heard": values}


@pytest.fixture
def pages():
    return Pages()


@pytest.fixture
def server(pages):
    server = Server(pages)
    yield server
    pages.end.set()
    server.close()


def sent(server, request: bytes, most: int = 1 << 20) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to a request; status 0 if there is none."""
    with socket.create_connection(server.server_address, timeout=20) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # it was refused before all of it was read
            pass
        answer = b""
        while len(answer) < most:
            try:
                got = connection.recv(1 << 16)
            except ConnectionResetError:
                break
            if not got:
                break
            answer += got
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().splitlines()
    return int(lines[0].split()[1]) if lines else 0, dict(line.split(": ", 1) for line in lines[1:]), body


def get(server, path="/", token=None, host=None, *more: str):
    token = server.token if token is None else token
    host = host or f"127.0.0.1:{server.server_address[1]}"
    return sent(server, "\r\n".join([f"GET {path}?token={token} HTTP/1.1", f"Host: {host}", *more, "", ""]).encode())


def post(server, path="/echo", body: bytes = b"{}", *more: str, host=None, length=None, token=None):
    host = host or f"127.0.0.1:{server.server_address[1]}"
    head = [f"POST {path} HTTP/1.1", f"Host: {host}", f"X-Shine-Token: {token or server.token}", *more]
    head += [f"Content-Length: {len(body) if length is None else length}"] if length != "" else []
    return sent(server, "\r\n".join([*head, "", ""]).encode() + body)


def test_the_user_gets_the_page_and_the_address_has_the_token(server):
    assert server.url == f"http://127.0.0.1:{server.server_address[1]}/?token={server.token}"
    status, headers, body = get(server)
    assert (status, body) == (200, b"<p>the page</p>")
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_it_listens_on_the_loopback_address_only(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.slow
@pytest.mark.parametrize("token", ["", "x", "%00", "é" * 43, "x" * 5000])
@pytest.mark.parametrize("path", ["/", "/events", "/echo", "/nothing"])
def test_without_the_token_a_request_gets_nothing(server, path, token):
    status, headers, body = get(server, path, token)
    assert (status, body) == (403, b"")
    assert headers["Content-Length"] == "0"
    assert "Python" not in headers["Server"]


def test_an_action_needs_the_token_in_a_header(server):
    path = f"/echo?token={server.token}"
    assert post(server, path, token="another")[0] == 403
    assert post(server, "/echo")[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1]:80", "[", "a@b", ""]
)
def test_a_foreign_name_for_this_machine_is_refused(server, host):
    """A page of another site whose name leads here has its own name in the request."""
    assert get(server, host=host or " ")[0] == 403
    assert post(server, host=host or " ")[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "http://["])
def test_a_request_from_a_page_of_another_site_is_refused(server, origin):
    assert post(server, "/echo", b"{}", f"Origin: {origin}")[0] == 403
    assert get(server, "/events", None, None, f"Origin: {origin}")[0] == 403


def test_an_action_gets_and_returns_objects(server):
    status, headers, body = post(server, "/echo", json.dumps({"a": [1, "é"]}).encode())
    assert (status, json.loads(body)) == (200, {"heard": {"a": [1, "é"]}})
    assert headers["Content-Type"] == "application/json"


def test_what_an_action_refuses_is_told(server):
    status, _, body = post(server, "/echo", b'{"wrong": "this"}')
    assert (status, json.loads(body)) == (400, {"error": "this is wrong"})


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"text"', b"\xff\xfe", b"[" * 50000, b"NaN"])
def test_damaged_bodies_are_refused(server, body):
    assert post(server, "/echo", body)[0] == 400
    assert get(server)[0] == 200


@pytest.mark.parametrize(
    ("length", "status"), [("", 411), ("x", 411), (-5, 411), (LONGEST_BODY + 1, 413), (10**30, 413)]
)
def test_bodies_without_a_length_and_huge_ones_are_not_read(server, length, status):
    assert post(server, "/echo", b"{}", length=length)[0] == status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET /echo?token={0}", 405),
        ("GET /nothing?token={0}", 404),
        ("POST /", 405),
        ("POST /nothing", 404),
        ("PUT /echo", 501),
        ("DELETE /?token={0}", 501),
        ("OPTIONS /echo", 501),
        ("HEAD /?token={0}", 501),
    ],
)
def test_other_methods_and_paths_are_refused_without_a_word(server, request_, status):
    lines = [f"{request_.format(server.token)} HTTP/1.1", "Host: localhost", f"X-Shine-Token: {server.token}"]
    found, _, body = sent(server, "\r\n".join([*lines, "", ""]).encode())
    assert (found, body) == (status, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_", [b"", b"\r\n\r\n", b"\x16\x03\x01\x00" * 50, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 200_000,
                 b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
                 b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n"]
)  # fmt: skip
def test_damaged_requests_get_nothing_and_do_no_harm(server, request_):
    status, _, body = sent(server, request_)
    assert status != 200
    assert body == b""
    assert get(server)[0] == 200


def opened(server):
    """An open page: a connection that has sent its request for messages."""
    connection = socket.create_connection(server.server_address, timeout=20)
    connection.sendall(f"GET /events?token={server.token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def everything(connection) -> bytes:
    found = b""
    while got := connection.recv(1 << 16):
        found += got
    return found


@pytest.mark.slow
def test_a_page_that_reads_nothing_keeps_nobody_waiting(server, pages):
    pages.size = 1 << 26  # more than the system takes for a connection
    with closing(opened(server)) as slow:
        assert slow.recv(10)
        pages.size = 10
        assert get(server)[0] == 200
        read = b""
        with closing(opened(server)) as other:
            while b"xxxxxxxxxx" not in read:
                read += other.recv(1 << 16)


def test_there_are_not_more_connections_than_allowed(server, monkeypatch):
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(module, "MOST_STRANGERS", 1)
    with closing(opened(server)) as first:
        assert first.recv(10)
        with closing(opened(server)) as second:
            assert second.recv(10)
            assert get(server)[0] == 0


@pytest.mark.slow
def test_connections_without_the_token_do_not_keep_the_user_out(server):
    strangers = [socket.create_connection(server.server_address, timeout=20) for _ in range(40)]
    try:
        for each in strangers:
            with suppress(OSError):
                each.sendall(b"G")
        for _ in range(3):
            assert get(server)[0] == 200
        with server._lock:
            assert len(server._strangers) <= module.MOST_STRANGERS
    finally:
        for each in strangers:
            each.close()


def test_a_stranger_who_sends_slowly_is_sent_away(server, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    with closing(socket.create_connection(server.server_address, timeout=0.05)) as stranger:
        for _ in range(200):
            try:
                stranger.sendall(b"G")
                if stranger.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("the connection lasted 10 seconds")


def ours():
    return [thread for thread in threading.enumerate() if thread.name.startswith("shine-live")]


@pytest.mark.slow
def test_no_thread_and_no_connection_outlives_it(pages, monkeypatch):
    monkeypatch.setattr(module, "ENDING", 0.2)
    before = ours()
    server = Server(pages)
    # One that is silent, a page that reads, and one that does not.
    pages.size = 1 << 26
    with closing(socket.create_connection(server.server_address)), closing(opened(server)) as slow:
        assert slow.recv(10)
        pages.size = 10
        with closing(opened(server)) as page:
            assert page.recv(10)
            pages.end.set()
            server.close()
            assert everything(page).endswith(b'data: {"text": "the end"}\n\n')
    assert ours() == before
    with pytest.raises(OSError):
        socket.create_connection(server.server_address, timeout=5)
