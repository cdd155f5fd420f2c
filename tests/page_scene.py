"""The setup for tests of the page: the real command in a separate process, and a visitor."""

from __future__ import annotations

import http.client
import random
import re
import signal
import time
from types import TracebackType

from fork_server import Started
from store_scene import StoreUser
from text_scene import PIECES

WAIT_SECONDS = 60
BREAKERS = [
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "</script>",
    "</textarea>",
    "</title>",
    "</pre></code>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "{{ 7*7 }}",
    "{% raw %}",
    "{#",
    "javascript:alert(1)",
    "\u202e",
    "\u2028",
    "\x00",
    "\x1b[31m",
    "&quot;&gt;",
    "<a href=//x.example>",
    "%2e%2e/",
    "../../etc/passwd",
    "?a=b#c",
    "<style>@import '//x'</style>",
    "<base href=//x>",
    "<meta http-equiv=refresh content=0>",
    "<iframe srcdoc=x>",
    "]]>",
]


def hostile(source: random.Random) -> str:
    return "".join(source.choice(PIECES + BREAKERS) for _ in range(source.randrange(1, 12)))


class Answer:
    """`text` is the body; `headers` has names in lower case."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.text = answer.read().decode()


class ServedPage:
    """`session-memory page`, running for `user`. `root` is the path below which it lies, `cookie`
    what a visitor has who came by the link."""

    def __init__(self, user: StoreUser, *words: str, **environ: str) -> None:
        self.process = Started(
            ["page", "--no-browser", *words], {**user.environment, **environ}, user.home
        )
        found = re.search(
            r"http://127\.0\.0\.1:(\d+)(/[^/]+)(/enter\?token=\S+)", self.process.stdout.readline()
        )
        assert found, self.process.stdout.read()
        self.port, self.root, self.entrance = int(found[1]), found[2], found[2] + found[3]
        self.link = found[0]
        self.host = f"127.0.0.1:{self.port}"
        self.cookie = ""

    def __enter__(self) -> ServedPage:
        self.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.end()

    def enter(self) -> Answer:
        """Comes by the link that the terminal shows."""
        answer = self.ask(self.entrance)
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def ask(self, path: str, *, method: str = "GET", body: str = "", **headers: str) -> Answer:
        """One request, for a whole path; a header whose value is '' is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        sent = {
            "Host": self.host,
            "Cookie": self.cookie,
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            if body:
                connection.putheader("Content-Length", str(len(body.encode())))
            connection.endheaders(body.encode() or None)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def view(self, path: str = "/", **headers: str) -> Answer:
        """What a visitor sees below the root."""
        return self.ask(self.root + path, **headers)

    def until(self, text: str, path: str = "/", seconds: float = WAIT_SECONDS) -> Answer:
        """The view as soon as it shows `text`."""
        deadline = time.monotonic() + seconds
        while True:
            answer = self.view(path)
            if text in answer.text:
                return answer
            assert time.monotonic() < deadline, f"{text!r} is not in {answer.text}"
            time.sleep(0.05)

    def end(self) -> float:
        """Presses Ctrl-C; returns how many seconds it took to end."""
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(WAIT_SECONDS)
        finally:
            self.process.stdout.close()
        return time.monotonic() - began
