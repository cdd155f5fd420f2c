"""A terminal of any size, for tests that look at the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
from collections.abc import Sequence
from pathlib import Path

from fork_server import Forked
from store_scene import WAIT_SECONDS, StoreUser

STYLES = re.compile("\x1b\\[[0-9]+m")


class OnTerminal:
    """What a command printed to a terminal of its own, and its exit code."""

    def __init__(self, text: str, code: int) -> None:
        self.styled = text
        self.text = STYLES.sub("", text)
        self.lines = self.text.split("\n")
        self.code = code


def on_terminal(
    person: StoreUser,
    *words: str,
    columns: int = 80,
    lines: int = 24,
    typed: Sequence[str] = (),
    answers: Sequence[tuple[bytes, bytes]] = (),
    cwd: Path | None = None,
    module: str = "cli",
    **environ: str,
) -> OnTerminal:
    """Run a command at a terminal, with the `typed` lines; its pager is `cat` unless named.

    `module` may be a script that runs it. Each of `answers` is typed once what it answers was
    printed, after the one before."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environ = {**person.environment, "TERM": "xterm", "PAGER": "cat", **environ}
    with open(slave, "r+b", buffering=0) as terminal:
        program = Forked(
            words,
            {name: value for name, value in environ.items() if value},
            cwd or person.home,
            module,
            [terminal, terminal, terminal],
        )
    for line in typed:
        os.write(master, f"{line}\n".encode())
    printed = printed_on(master, answers)
    return OnTerminal(printed, program.wait(WAIT_SECONDS))


def printed_on(master: int, answers: Sequence[tuple[bytes, bytes]] = ()) -> str:
    """Return what a program prints to its terminal until it ends, and close the terminal."""
    printed, waiting, answered = b"", list(answers), 0
    while select.select([master], [], [], 60)[0]:
        try:
            printed += os.read(master, 65536)
        except OSError:  # it has ended
            break
        while waiting and (at := printed.find(waiting[0][0], answered)) >= 0:
            asked, answer = waiting.pop(0)
            os.write(master, answer)
            answered = at + len(asked)
    os.close(master)
    return printed.decode().replace("\r\n", "\n")
