"""Secrets out of text, before it is stored, injected or sent to a model: `redact`. What is one: rules.yaml.

A prompt waits for this, so a short text is first looked through with plain string methods (prefilter.py).
Only where that finds something, or the text is long, is the search itself loaded (scan.py), and with it `re`.
"""

import sys

from .prefilter import may_hold_secret

SHORT_CHARACTERS = 4096
SCAN = "session_memory.secrets.scan"


class Secret:
    """Where a secret stands: `text[start:end]`; and its `kind` in a few words, as in `[redacted: kind]`."""

    __slots__ = ("end", "kind", "start")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Secret({self.kind!r}, {self.start}, {self.end})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def redact(text: str) -> str:
    """`text` with `[redacted: kind]` in the place of every secret, all else as it was. Raises for no string.

    It looks again until it finds nothing: a secret shows itself when the one that was glued to it is gone.
    """
    while secrets := find_secrets(text):
        parts = []
        end = 0
        for secret in secrets:
            parts += [text[end : secret.start], f"[redacted: {secret.kind}]"]
            end = secret.end
        text = "".join(parts) + text[end:]
    return text


def find_secrets(text: str) -> list[Secret]:
    """The secrets in `text`, in order, none overlapping another. Raises for no string."""
    if len(text) <= SHORT_CHARACTERS and SCAN not in sys.modules and not may_hold_secret(text):
        return []
    from .scan import find

    return [Secret(kind, start, end) for kind, start, end in find(text)]
