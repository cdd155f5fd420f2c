"""The status line that the extension shows in the real Pi."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from clients.pi import MODEL, Pi, Rpc
from clients.terminal import Terminal


def wanted(pi: Pi, value: str = "true") -> None:
    (pi.home / ".session-memory").mkdir(exist_ok=True)
    (pi.home / ".session-memory" / "config.yaml").write_text(f"statusline: {value}\n")


def next_line(rpc: Rpc) -> str | None:
    """The next status line that pi is given, without ages; None if it is taken away."""
    while True:
        request = rpc.wait("extension_ui_request")
        if request["method"] == "setStatus" and request["statusKey"] == "session-memory":
            text = request.get("statusText")
            return text and re.sub(r"\((just now|\d+[mh])\)", "(…)", text)


@pytest.fixture
def terminal(pi: Pi) -> Iterator[Terminal]:
    wanted(pi)
    pi.run("how do I deploy this?")
    found = Terminal(
        [*pi.command, "--model", MODEL], pi.project, {**pi.environment, "TERM": "xterm-256color"}
    )
    yield found
    found.close()


def test_it_is_in_the_footer_of_the_terminal(pi: Pi, terminal: Terminal) -> None:
    terminal.wait(lambda: "fake-1" in terminal.text(), "the footer")
    assert "other active" not in terminal.text()
    before = len(pi.model.requests)
    terminal.enter("what is left to do?")

    def is_sent() -> bool:
        """Presses Return again: until its startup is over, pi takes no prompt."""
        time.sleep(0.5)
        if len(pi.model.requests) == before:
            terminal.press("\r")
        return len(pi.model.requests) > before

    terminal.wait(is_sent, "the request")
    terminal.wait(lambda: "1 other active (just now)" in terminal.text(), "the status line")


def test_it_names_the_file_of_an_edit_and_goes_when_it_is_switched_off(pi: Pi) -> None:
    wanted(pi)
    (pi.project / "app.txt").write_text("1\n")
    with pi.rpc() as rpc:
        rpc.prompt('TOOL read {"path": "app.txt"}')
        pi.run(
            'TOOL edit {"path": "app.txt", "edits": [{"oldText": "1", "newText": "2"}]}',
            "--name",
            "deploying",
        )
        rpc.prompt("go on")
        lines = []
        while not lines or "app.txt" not in str(lines[-1]):
            lines.append(next_line(rpc))
        assert lines[-1] == '1 other active (…) · app.txt edited by "deploying" (…)'
        wanted(pi, "false")
        rpc.prompt("go on")
        while next_line(rpc) is not None:
            pass


@pytest.mark.parametrize("answer", ["", '{"statusLine": true}'])
def test_nothing_runs_for_it_unless_a_session_s_start_says_that_it_is_wanted(
    pi: Pi, answer: str
) -> None:
    ran = pi.root / "ran"
    extension = pi.copy_extension(
        pi_session_start=f"print({answer!r})", status_line=f"open({str(ran)!r}, 'w')"
    )
    with pi.rpc("--no-extensions", "-e", str(extension)) as rpc:
        rpc.prompt("what is left to do?")
        if answer:
            assert next_line(rpc) is None
    assert ran.exists() is bool(answer)
