"""The lines that edits and commands write, as keyed hashes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from struct import unpack

# characters of a line with normalised white space; shorter lines are in every file
LEAST_CHARACTERS = 12
MOST_LINES = 5000  # of one edit: a longer one was generated
MOST_SHORT = 500  # short lines of one edit
MOST_LINE_CHARACTERS = 2000
FEW_BRACKETS = 8  # more are not looked at one by one
_HERE_DOCUMENT = re.compile(
    r"^([^\n]*)<<-?[ \t]*([\"']?)(\w+)\2([^\n]*)\n(.*?)^[ \t]*\3[ \t]*$", re.M | re.S
)
_MESSAGE = re.compile(r"\b(?:commit|tag|gh|glab)\b")  # its here-document is a message, not a file
_ID_CHARACTERS = 7  # of a commit: git shows so many or more
_MADE = re.compile(rf"^\[[^\]\n]*\s([0-9a-f]{{{_ID_CHARACTERS},64}})\] (.+)$", re.M)
_IS_PATCH = re.compile(r"^(?:\*\*\* Begin Patch|@@ -)", re.M)


def normalised(line: str) -> str:
    """Return a line without indentation and with single spaces, as `git blame -w` compares it."""
    return " ".join(line.split())


def added_lines(before: str, after: str) -> list[str]:
    """Return the normalised lines of `after` that `before` lacks, each once.

    Lines below LEAST_CHARACTERS are left out."""
    return _added(_stripped(before), _stripped(after, MOST_LINES))


def edit_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the `added_lines` of an edit, and the short normalised lines that it adds, each once.

    Short lines do not show who wrote them, unless the file is known."""
    gone = _stripped(before)
    new = dict.fromkeys([line for line in _stripped(after) if line not in gone])
    short = _short_in(new)
    gone_short = _short_in(gone) if short else {}
    first = new if after.count("\n") < MOST_LINES else _stripped(after, MOST_LINES)
    return _added(gone, first), [line for line in short if line not in gone_short][:MOST_SHORT]


def _stripped(text: str, most: int | None = None) -> dict[str, None]:
    """Return the first `most` lines of a text without white space around them, each once."""
    return dict.fromkeys(map(str.strip, text.split("\n")[:most] if most else text.split("\n")))


def _added(before: dict[str, None], after: dict[str, None]) -> list[str]:
    added = [
        line
        for line in after
        if LEAST_CHARACTERS <= len(line) <= MOST_LINE_CHARACTERS and line not in before
    ]
    text = "\n".join(added)
    if "  " not in text and "\t" not in text:  # of most edits
        return added
    gone = {normalised(line) if "  " in line or "\t" in line else line for line in before}
    spaced = dict.fromkeys(
        [normalised(line) if "  " in line or "\t" in line else line for line in added]
    )
    return [line for line in spaced if line not in gone and len(line) >= LEAST_CHARACTERS]


def _short_in(stripped: Iterable[str]) -> dict[str, None]:
    """Return the short normalised lines among stripped ones, each once."""
    # The only white space that is printable is a space. So of these, few long lines get short.
    if "".join(stripped).isprintable():
        stripped = [line for line in stripped if len(line) < LEAST_CHARACTERS or "  " in line]
    return dict.fromkeys([line for line in map(normalised, stripped) if is_short(line)])


def is_short(line: str) -> bool:
    """Check if a normalised line counts only in a known file; one of only brackets never counts."""
    return len(line) < LEAST_CHARACTERS and any(map(str.isalnum, line))


def here_documents(command: str) -> list[str]:
    """Return the texts of a command's here-documents; of a patch, its additions.

    Messages of commits are omitted."""
    if "<<" not in command:
        return []
    bodies = [
        match[5] for match in _HERE_DOCUMENT.finditer(command) if not _MESSAGE.search(match[1])
    ]
    return [_added_by(body) if _IS_PATCH.search(body) else body for body in bodies]


def made_commits(result: str) -> list[str]:
    """Return the texts to hash for the commits in a command's result: each id and subject.

    A result has `[main 1f2e3d4] Subject`."""
    if not _has_line_with_bracket(result) or "] " not in result:
        return []
    made = _MADE.findall(result)
    return [text for id, subject in made for text in (commit_id(id), commit_subject(subject))]


def _has_line_with_bracket(text: str) -> bool:
    """Check if a line begins with a bracket. A single character is found fast, if there are few."""
    at = text.find("[")
    for _ in range(FEW_BRACKETS):
        if at <= 0 or text[at - 1] == "\n":
            return at >= 0
        at = text.find("[", at + 1)
    return at >= 0 and text.find("\n[", at - 1) >= 0


def commit_id(id: str) -> str:
    """Return the text to hash for the id of a commit, perhaps shortened."""
    return f"commit\0{id[:_ID_CHARACTERS]}"


def commit_subject(subject: str) -> str:
    """Return the text to hash for the subject of a commit."""
    return f"subject\0{normalised(subject)}"


def line_in(name: str, line: str) -> str:
    """Return the text to hash for a line in a file of that name, if no call names the file."""
    return f"{name}\0{line}"


def _added_by(patch: str) -> str:
    lines = patch.split("\n")
    return "\n".join(
        line[1:] for line in lines if line.startswith("+") and not line.startswith("+++ ")
    )


def line_hashes(lines: Iterable[str], key: bytes) -> list[int]:
    """Return a keyed 64-bit hash of each normalised line, signed as SQLite's integers are."""
    copy = blake2b(key=key, digest_size=8).copy  # half the time of a new one
    digests = []
    for line in lines:
        hashed = copy()
        hashed.update(line.encode("utf-8", "surrogatepass"))
        digests.append(hashed.digest())
    return list(unpack(f"<{len(digests)}q", b"".join(digests)))
