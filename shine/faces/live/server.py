"""The server of the page: on the loopback address only, and only for those who have the token.

Other programs of the machine, other users of it and pages of other sites can reach the port. So every request needs the
token, which only the user was told; its comparison takes the same time for all guesses. The name that the browser has
for the server must be one of this machine, so that no foreign site can point its own name here (DNS rebinding), and a
request that changes something must come from the page itself.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qs, urlsplit

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
"""Host names of the server. The port may be another: a tunnel or an editor passes requests on."""

LONGEST_BODY = 1 << 16
"""Most bytes of a request's body: a formula has some hundred."""

MOST_CONNECTIONS = 32
"""Most connections at a time that have shown the token; each has a thread."""

MOST_STRANGERS = 8
"""Most connections at a time that have not shown the token yet: another one ends the oldest."""

PATIENCE = 10.0
"""Seconds in which a request must show the token; and for each read or write after that."""

ENDING = 3.0
"""Seconds that open pages may take to read the last they are sent."""


class Content(Protocol):
    """Contents of the server."""

    def page(self) -> str:
        """The page, as HTML."""

    def messages(self) -> Iterator[str]:
        """The messages of a page that is open, until the search has ended; an empty one shows that both sides live."""

    @property
    def actions(self) -> Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]:
        """Requests of a page, by path; they get and return JSON objects, and raise a `ValueError` for bad ones."""


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Serves one page from threads of its own, until `close`."""

    daemon_threads = True
    block_on_close = False
    # Another program must not be able to take the port over.
    allow_reuse_address = False

    def __init__(self, content: Content) -> None:
        self.content, self.token = content, secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._strangers: dict[socket.socket, float] = {}  # the oldest first, with the time of its end
        self._streams: set[socket.socket] = set()
        super().__init__((ADDRESS, 0), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), name="shine-live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{ADDRESS}:{self.server_address[1]}/?token={self.token}"

    def allows(self, token: str | None) -> bool:
        """Whether a token is the right one."""
        return hmac.compare_digest((token or "").encode(errors="replace"), self.token.encode())

    def close(self) -> None:
        """End all connections and threads; pages that are open may read the last message first."""
        self.shutdown()
        self.server_close()
        with self._lock:
            left = list(self._open.items())
        deadline = time.monotonic() + ENDING
        for connection, thread in left:
            if connection in self._streams:
                thread.join(max(deadline - time.monotonic(), 0.0))
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in [*(thread for _, thread in left), self._thread]:
            thread.join(1.0)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is a thread for another connection, perhaps that of an old stranger."""
        with self._lock:
            while len(self._strangers) >= MOST_STRANGERS:
                self._send_away(next(iter(self._strangers)))
            return len(self._open) < MOST_CONNECTIONS + MOST_STRANGERS

    def service_actions(self) -> None:
        """End the connections that took too long to show the token, whatever they send."""
        now = time.monotonic()
        with self._lock:
            for connection in [each for each, end in self._strangers.items() if end < now]:
                self._send_away(connection)

    def _send_away(self, connection: socket.socket) -> None:
        del self._strangers[connection]
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def admit(self, request: Any) -> None:
        """A connection has shown the token."""
        with self._lock:
            self._strangers.pop(request, None)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread that `close` knows of."""
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), name="shine-live-page", daemon=True
        )
        with self._lock:
            self._open[request] = thread
            self._strangers[request] = time.monotonic() + PATIENCE
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        """The connection has ended."""
        super().shutdown_request(request)
        with self._lock:
            self._open.pop(request, None)
            self._strangers.pop(request, None)
            self._streams.discard(request)

    def streams(self, request: Any) -> None:
        """A connection is that of an open page."""
        with self._lock:
            self._streams.add(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no error."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    timeout = PATIENCE
    # What a stranger may know of the server: nothing.
    server_version, sys_version = "Shine", ""

    def do_GET(self) -> None:
        """The page, or the messages of an open page."""
        if not self._is_allowed():
            return
        path = _split(self.path).path
        if path == "/":
            self._send(HTTPStatus.OK, self.server.content.page(), "text/html; charset=utf-8")
        elif path == "/events":
            self._stream()
        else:
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED if self._action(path) else HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Something that the page asks for."""
        if not self._is_allowed(changes=True):
            return
        path = _split(self.path).path
        action = self._action(path)
        if action is None:
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED if path in ("/", "/events") else HTTPStatus.NOT_FOUND)
            return
        values = self._body()
        if values is None:
            return
        try:
            answer = action(values)
        except ValueError as error:
            self._send(HTTPStatus.BAD_REQUEST, json.dumps({"error": str(error)}), "application/json")
            return
        self._send(HTTPStatus.OK, json.dumps(answer), "application/json")

    def _action(self, path: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]] | None:
        return self.server.content.actions.get(path.removeprefix("/"))

    def _is_allowed(self, changes: bool = False) -> bool:
        """Whether the request has the token and comes from the page; refuses others without a word."""
        host = self.headers.get_all("Host") or []
        origin = self.headers.get("Origin")
        given = parse_qs(_split(self.path).query).get("token", [""])[0]
        if changes:
            # A form or an image of another site cannot send this header.
            given = self.headers.get("X-Shine-Token", "")
        named = len(host) == 1 and _split(f"//{host[0]}").hostname in NAMES
        ours = origin is None or _split(origin).netloc == "".join(host)
        if named and ours and self.server.allows(given):
            self.server.admit(self.request)
            return True
        self.send_error(HTTPStatus.FORBIDDEN)
        return False

    def _body(self) -> Mapping[str, Any] | None:
        """The JSON object that was sent; if there is none, the request is refused."""
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            length = -1
        if length < 0:
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
            return None
        if length > LONGEST_BODY:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return None
        try:
            values = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            self.send_error(HTTPStatus.BAD_REQUEST)
            return None
        return values

    def _stream(self) -> None:
        """Send messages as long as the page is open and the search goes on."""
        self.server.streams(self.request)
        self.send_response(HTTPStatus.OK)
        self._head({"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        for message in self.server.content.messages():
            # A message is one line, because JSON has none within it.
            self.wfile.write(f"data: {message}\n\n".encode() if message else b":\n\n")
            self.wfile.flush()

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        self._head({"Content-Type": kind, "Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, headers: Mapping[str, str]) -> None:
        """The headers of an answer: nobody keeps it, and nobody learns the address, which has the token."""
        for name, value in {
            **headers, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Connection": "close",
            "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request, with nothing but a number."""
        self.close_connection = True
        self.send_response(code)
        self._head({"Content-Length": "0"})

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: their addresses have the token."""


def _split(url: str) -> SplitResult:
    """The parts of an address; all empty if it is damaged."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")
