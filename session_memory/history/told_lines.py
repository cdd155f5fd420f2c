"""The kinds of `!` lines in an update, and the files that they name."""

from __future__ import annotations

import re
from typing import NamedTuple

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

    @classmethod
    def of(cls, line: str) -> ToldLine:
        """Return the kind of a `!` line and the files that it names."""
        for kind, pattern in ((FILE, _FILE), (CONFLICT, _CONFLICT)):
            match = pattern.match(line)
            if match:
                names = re.split(r", | and ", match[1])
                return cls(
                    kind, tuple(name for name in names if not re.fullmatch(r"[\d,]+ more", name))
                )
        return cls(BRANCH if _BRANCH.match(line) else OTHER, ())
