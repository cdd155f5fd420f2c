"""Lets a person choose one of several rows: with fzf if it is installed, else by a number."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

_FZF = ("--no-multi", "--layout=reverse", "--height=40%", "--header-lines=1", "--no-sort")
_ENDED = (0, 1, 130)  # a row was chosen, no row matches, Escape; any other code is an error
_NUMBERED = ("--delimiter=\t", "--with-nth=2..", "--preview=")


def chosen_with_fzf(lines: Sequence[str]) -> int | None:
    """Return the index of the chosen line, -1 if none was chosen; None if fzf cannot ask.

    The first line is a heading, and does not count."""
    program = shutil.which("fzf")
    if not program:
        return None
    rows = "\n".join([f"{number}\t{line}" for number, line in enumerate(lines, -1)])
    try:
        done = subprocess.run(
            [program, *_FZF, *_NUMBERED],
            input=rows.encode(),
            stdout=subprocess.PIPE,
            check=False,
        )
    except OSError:
        return None
    if done.returncode not in _ENDED:
        return None
    number = done.stdout.partition(b"\t")[0]
    return int(number) if not done.returncode and number.isdigit() else -1
