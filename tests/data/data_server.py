"""A real HTTP server on this machine that can misbehave."""

import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Behaviour:
    """How the server answers: ``content`` by path, and what goes wrong."""

    content: dict[str, bytes]
    drop_after: int | None = None
    drops: int = 0
    ranges: bool = True
    redirects: dict[str, str] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    delay: float = 0.0
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    sent: int = 0
    address: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def serve(behaviour: Behaviour):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            asked = self.headers.get("Range")
            with behaviour.lock:
                behaviour.requests.append((self.path, asked))
                failure = behaviour.failures.pop(0) if behaviour.failures else None
                drop = behaviour.drops > 0
                behaviour.drops -= drop
            if self.path in behaviour.redirects:
                self.send_response(302)
                self.send_header("Location", behaviour.redirects[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if failure is not None or self.path not in behaviour.content:
                self.send_error(failure or 404)
                return
            whole = behaviour.content[self.path]
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and behaviour.ranges else 0
            if start and start >= len(whole):
                self.send_error(416)
                return
            body = whole[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut = body[: behaviour.drop_after] if drop else body
            for place in range(0, len(cut), 4096):
                self.wfile.write(cut[place : place + 4096])
                if behaviour.delay:
                    threading.Event().wait(behaviour.delay)
            with behaviour.lock:
                behaviour.sent += len(cut)
            if drop:
                self.wfile.flush()
                self.connection.close()
                self.close_connection = True

        def log_message(self, *_):
            pass

        def handle(self):
            with suppress(ConnectionError, ValueError):
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    behaviour.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield behaviour
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
