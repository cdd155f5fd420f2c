"""The streams of a command: all text arrives as plain characters on lines, with no style but ours.

`exit_code` replaces stdout and stderr by a `PlainOutput`, so argparse, tracebacks and warnings pass
through it too.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO, TextIO

_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}
STYLES = tuple(_CODES)
# Until it is printed, a style is a private character, drawn by chance, so no text from elsewhere
# can contain it.
_FIRST_MARK = 0x100000 + int.from_bytes(os.urandom(2), "big") % 0xFF00
END_MARK = chr(_FIRST_MARK)
_MARKS = {style: chr(_FIRST_MARK + number) for number, style in enumerate(_CODES, 1)}
SEQUENCES = {
    END_MARK: "\x1b[0m",
    **{mark: f"\x1b[{_CODES[style]}m" for style, mark in _MARKS.items()},
}
_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # begin a line in some programs


def painted(style: str, text: str) -> str:
    """Return `text` marked to be printed in one of STYLES by a `PlainOutput`."""
    return f"{_MARKS[style]}{text}{END_MARK}"


def plain_text(text: str) -> str:
    """Return `text` with only plain characters, line feeds and our styles, for a terminal."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text  # nearly every text
    if any(mark in text for mark in SEQUENCES):
        import re

        parts = re.split(f"([{''.join(SEQUENCES)}])", text)
        return "".join([SEQUENCES.get(part) or _plain(part) for part in parts])
    return _plain(text)


def _plain(text: str) -> str:
    text = text.replace("\r\n", "\n")
    for character in _BREAKS:
        text = text.replace(character, " ")
    try:
        from ..text.sanitize import plain
    except (ImportError, OSError):  # the program is not complete, and its error is being reported
        return "".join([c for c in text if c == "\n" or c.isprintable()])
    return plain(text)


class PlainOutput:
    """A text stream to a terminal, a pipe or a file; everything written passes `plain_text`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(plain_text(text))
        return len(text)

    def writelines(self, texts: list[str]) -> None:
        self.write("".join(texts))

    def verbatim(self, content: bytes) -> None:
        """Write UTF-8 as it is, unless a terminal would get it."""
        if self.isatty() or not hasattr(self._stream, "buffer"):
            self.write(content.decode("utf-8", "replace"))
            return
        self._stream.flush()
        self._stream.buffer.write(content)

    def status(self, text: str) -> None:
        """Replace the line that the cursor is in; '' removes it."""
        self._stream.write("\r" + _plain(text).replace("\n", " ") + "\x1b[K")
        self._stream.flush()

    def screen(self, text: str) -> None:
        """Show a text instead of everything on the screen, from its first line."""
        lines = plain_text(text).replace("\n", "\x1b[K\n")
        self._stream.write(f"\x1b[H{lines}\x1b[J")
        self._stream.flush()

    def alternate(self, is_on: bool) -> None:
        """Switch to the terminal's other screen, without a cursor, or back again."""
        self._stream.write("\x1b[?1049h\x1b[?25l" if is_on else "\x1b[?25h\x1b[?1049l")
        self._stream.flush()

    def bell(self) -> None:
        """Ring the terminal's bell."""
        self._stream.write("\a")
        self._stream.flush()

    def of_protocol(self) -> BinaryIO:
        """Return the underlying stream of bytes, for a program at the other end of a pipe."""
        return self._stream.buffer

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def flush(self) -> None:
        self._stream.flush()

    @property
    def encoding(self) -> str:
        return self._stream.encoding or "utf-8"

    @property
    def errors(self) -> str | None:
        return self._stream.errors

    @property
    def closed(self) -> bool:
        return self._stream.closed


def plain_output(stream: TextIO | PlainOutput) -> PlainOutput:
    """Return the stream as a PlainOutput."""
    return stream if isinstance(stream, PlainOutput) else PlainOutput(stream)


def _standard_output() -> PlainOutput:
    """Return stdout as a PlainOutput."""
    return plain_output(sys.stdout)
