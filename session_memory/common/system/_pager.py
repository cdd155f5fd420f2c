"""Long output on a terminal: lines broken between words, and a pager for more than a screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from ._wrapping import width_of, without_styles, words_wrapped
from .plain_output import plain_text

# quit on one screen, colours, keep the screen; start no program
_QUIET_LESS = {"LESS": "FRX", "LESSSECURE": "1"}
_NOT_SHOWN = (1, 126, 127)  # of a pager that rejects an option, or cannot be started


def broken_at_words(text: str, width: int) -> str:
    """Return `text` with long lines broken between words, keeping their indentation.

    Fenced code stays as it is."""
    shown, is_code = [], False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith("```")
        is_code ^= is_fence
        if is_code or is_fence or width_of(line) <= width:
            shown.append(line)
            continue
        unstyled = without_styles(line)
        indent = unstyled[: len(unstyled) - len(unstyled.lstrip())][: width // 2]
        shown += words_wrapped(line, width, indent)
    return "\n".join(shown)


def _rows(text: str, columns: int) -> int:
    """Return how many rows of a terminal the lines of a text take."""
    return sum(1 + (width_of(line) - 1) // columns if line else 1 for line in text.splitlines())


def show_in_pager(text: str, columns: int, environ: Mapping[str, str]) -> bool:
    """Show a text in `$PAGER`, else in less; return whether it was shown.

    It is not shown if there is no pager, the text fits on the screen, or nobody is at the keyboard.
    """
    import shlex
    import shutil
    import signal
    import subprocess

    try:
        words = shlex.split(environ.get("PAGER", "less"))
    except ValueError:  # an open quote
        return False
    if not words or words == ["cat"] or environ.get("TERM") == "dumb" or not shutil.which(words[0]):
        return False
    if (
        sys.stdin is None
        or not sys.stdin.isatty()
        or _rows(text, columns) < shutil.get_terminal_size().lines
    ):
        return False
    text = plain_text(text)
    if os.path.basename(words[0]) == "less":
        words.insert(1, "-R")  # the person's $LESS may lack it
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's
    try:
        done = subprocess.run(
            words, input=text.encode(), env={**os.environ, **_QUIET_LESS, **environ}, check=False
        )
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return done.returncode not in _NOT_SHOWN
