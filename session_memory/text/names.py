"""Names of sessions, groups and files that this program creates: unsafe ones are rejected, never rewritten. Pure."""

from __future__ import annotations

_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


def is_name(text: object) -> bool:
    """Check that `text` may name a session, group or file: `[A-Za-z0-9._-]{1,64}`, not starting with a dot."""
    if not isinstance(text, str) or not 0 < len(text) <= 64 or text[0] == "." or not text.isascii():
        return False
    return text.replace("-", "").isalnum() or not text.strip(_CHARACTERS)


def is_id(text: str) -> bool:
    """Return whether a text has the form of the ids that nearly all runtimes give to sessions."""
    return len(text) == 36 and [at for at, character in enumerate(text) if character == "-"] == [8, 13, 18, 23]
