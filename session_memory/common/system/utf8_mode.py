"""Restarts a command in Python's UTF-8 mode under another locale, because file names are UTF-8.

With a Latin-1 or ASCII locale, Python can neither open a file `ä.py` nor pass it to git or SQLite.
"""

from __future__ import annotations

import os
import sys

_OPTION = "session_memory_encoding"  # `-X` passes the encoding of the terminal on


def ensure_utf8_mode() -> None:
    """Replace this process by one in UTF-8 mode, unless names are UTF-8 already.

    In the new process, use the terminal's encoding for its streams, and for words on the command
    line that are not UTF-8."""
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        options = ["-X", "utf8", "-X", f"{_OPTION}={encoding}"]
        os.execv(sys.executable, [sys.executable, *options, *sys.orig_argv[1:]])
    encoding = str(sys._xoptions.get(_OPTION, ""))
    if not encoding:
        return
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=encoding, errors=stream.errors)
    sys.argv[1:] = [_decoded(word, encoding) for word in sys.argv[1:]]


def _decoded(word: str, encoding: str) -> str:
    """Return a word of the command line; if it names an existing file, unchanged."""
    content = os.fsencode(word)
    try:
        content.decode()
    except UnicodeDecodeError:
        if not os.path.lexists(content):
            return content.decode(encoding, "surrogateescape")
    return word
