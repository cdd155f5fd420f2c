"""The server of agentsview (from PyPI), over the transcripts of a home."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

WAIT_SECONDS = 120
SETTLED_SECONDS = 4.0


class Server(NamedTuple):
    """A server under test: its address, and the headers of each request."""

    port: int
    headers: dict[str, str]

    def ask(self, path: str) -> float:
        """Return the seconds to the first byte of an answer. Raises OSError if there is none."""
        return self.answer(path)[0]

    def answer(self, path: str) -> tuple[float, bytes]:
        """Return the seconds to the first byte of an answer, and the whole answer.

        Raises OSError if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        began = time.perf_counter()
        connection.request("GET", path, headers=self.headers)
        answer = connection.getresponse()
        seconds = time.perf_counter() - began
        body = answer.read()
        connection.close()
        if answer.status not in (200, 404) or not body:
            raise OSError(f"{path}: {answer.status}")
        return seconds, body


@contextmanager
def its_server(program: str, home: Path, data: Path) -> Iterator[Server]:
    """Start agentsview's server over the transcripts below `home`, and wait until it has read them.

    It keeps its own data in `data`."""
    port = _free_port()
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "AGENTSVIEW_DATA_DIR": str(data)}
    command = [program, "serve", "--no-browser", "--no-update-check", "--port", str(port)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    server = Server(port, {})
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        known, size = -1, 0
        while time.monotonic() < deadline and (known != size or not (size and _answers(server))):
            known = size  # as long as it takes something in
            time.sleep(SETTLED_SECONDS)
            size = sum(file.stat().st_size for file in data.glob("sessions.db*"))
        yield server
    finally:
        process.terminate()
        process.wait()


def _answers(server: Server) -> bool:
    try:
        return server.ask("/api/v1/sessions?limit=1") > 0
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
