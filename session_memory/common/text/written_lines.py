"""The lines that edits and commands write, as keyed hashes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

# characters of a line with normalised white space; shorter lines are in every file
LEAST_CHARACTERS = 12
MOST_LINES = 5000  # of one edit: a longer one was generated
MOST_SHORT = 500  # short lines of one edit
MOST_LINE_CHARACTERS = 2000
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
    gone = set(map(str.strip, before.split("\n"))) if before else set()
    new = dict.fromkeys(map(str.strip, after.split("\n")[:MOST_LINES]))
    added = [
        line
        for line in new
        if LEAST_CHARACTERS <= len(line) <= MOST_LINE_CHARACTERS and line not in gone
    ]
    text = "\n".join(added)
    if "  " not in text and "\t" not in text:  # of most edits
        return added
    gone.update([normalised(line) for line in gone if "  " in line or "\t" in line])
    spaced = dict.fromkeys(
        [normalised(line) if "  " in line or "\t" in line else line for line in added]
    )
    return [line for line in spaced if line not in gone and len(line) >= LEAST_CHARACTERS]


def short_lines(before: str, after: str) -> list[str]:
    """Return the short normalised lines of `after` that `before` lacks, each once.

    They are too short to show who wrote them, unless the file is known."""
    gone = set(map(normalised, before.split("\n")))
    return [
        line
        for line in dict.fromkeys(map(normalised, after.split("\n")))
        if is_short(line) and line not in gone
    ][:MOST_SHORT]


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
    made = _MADE.findall(result) if "] " in result else []
    return [text for id, subject in made for text in (commit_id(id), commit_subject(subject))]


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
    hashes = []
    keyed = blake2b(key=key, digest_size=8)
    for line in lines:
        hashed = keyed.copy()  # half the time of a new one
        hashed.update(line.encode("utf-8", "surrogatepass"))
        hashes.append(int.from_bytes(hashed.digest(), "little", signed=True))
    return hashes
