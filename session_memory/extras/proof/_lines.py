"""The kinds of `!` lines in an update, and the files that they name."""

import re
from typing import NamedTuple

from ...history.told import ToldText

FILE, CONFLICT, BRANCH, OTHER = "file", "conflict", "branch", "other"  # kinds of lines
KINDS = {
    FILE: "a file that another session edited",
    CONFLICT: "a change that would not merge",
    BRANCH: "a branch or worktree that git moved",
    OTHER: "something else",
}
_FILE = re.compile(r"! (.+?): (?:edited|removed or moved) .*, (?:after|before|and) you ")
# The last alternative is the form up to 0.4.
_CONFLICT = re.compile(
    r"! (.+?): (?:your (?:lines? [\d-]+|change|edit|deletion) (?:may )?conflicts? with "
    r"|.*; your branch lacks |.*(?:conflicts? with your|your branch begins before))"
)
_BRANCH = re.compile(
    r"! (?:HEAD is|branch is|.+, the branch you are on:|.+: .* while your edits? w)"
)


class ToldLine(NamedTuple):
    """A `!` line: its kind, and the files that it names as it has them."""

    kind: str
    files: tuple[str, ...]


def lines_of(text: ToldText) -> list[ToldLine]:
    """Return the `!` lines in a text."""
    return [line_of(line) for line in text.text.split("\n") if line.startswith("! ")]


def line_of(line: str) -> ToldLine:
    """Return the kind of a `!` line and the files that it names."""
    for kind, pattern in ((FILE, _FILE), (CONFLICT, _CONFLICT)):
        match = pattern.match(line)
        if match:
            names = re.split(r", | and ", match[1])
            return ToldLine(
                kind, tuple(name for name in names if not re.fullmatch(r"[\d,]+ more", name))
            )
    return ToldLine(BRANCH if _BRANCH.match(line) else OTHER, ())


def is_named(path: str, name: str) -> bool:
    """Check if a line calls the file at an absolute `path` by this, perhaps shortened, `name`."""
    start, cut, _ = name.rpartition("../")[2].partition("…")
    return f"/{start}" in path if cut else path == name or path.endswith(f"/{start}")
