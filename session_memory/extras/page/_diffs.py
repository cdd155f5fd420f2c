"""Diffs of edits, as values for a template: numbered lines by kind, with counts of changes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...common.text.sanitize import for_people
from ...sessions.transcripts.edits import Edit, Hunk

CONTEXT_LINES = 3
MOST_LINES = 2000  # a longer diff takes longer to compute than to read
FOLDED_CHARACTERS = 400  # of a line: the rest is folded


class DiffLine(NamedTuple):
    """A line of a diff.

    `kind` is add, del, at (a gap) or ''; `before` and `after` are its numbers in both texts."""

    kind: str
    text: str
    before: int | None = None
    after: int | None = None

    @property
    def number(self) -> str:
        """Return the number to show: the one in the new text; for a removed line the old one."""
        return str(self.before if self.kind == "del" else self.after or "")


class Diff(NamedTuple):
    """The diff of one or several edits of a file.

    If it `is_placed`, the numbers are the file's; otherwise they count from the beginning of each
    edit."""

    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    is_placed: bool


def diff_of(edits: Sequence[Edit], hunks: Sequence[Hunk]) -> Diff | None:
    """Return the diff of edits, by the `hunks` if the transcript has them.

    Return None if there is nothing to show."""
    is_placed = bool(hunks) or all(not before for before, _ in edits)
    parts = list(hunks) or [(before, after, 1, 1) for before, after in edits]
    lines: list[DiffLine] = []
    for removed, added, before, after in parts:
        old, new = for_people(removed), for_people(added)
        if old.removesuffix("\n") != new.removesuffix("\n"):  # else the edit is the line's end
            old, new = old.removesuffix("\n"), new.removesuffix("\n")
        hunk_lines = list(
            _lines(old.split("\n") if old else [], new.split("\n") if new else [], before, after)
        )
        lines += [DiffLine("at", ""), *hunk_lines] if lines and hunk_lines else hunk_lines
    kinds = [line.kind for line in lines]
    return Diff(tuple(lines), kinds.count("add"), kinds.count("del"), is_placed) if lines else None


def _lines(old: list[str], new: list[str], before: int, after: int) -> Iterable[DiffLine]:
    if not old or not new or len(old) + len(new) > MOST_LINES:
        yield from (DiffLine("del", line, number) for number, line in enumerate(old, before))
        yield from (DiffLine("add", line, None, number) for number, line in enumerate(new, after))
        return
    hunks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(
        CONTEXT_LINES
    )
    for position, hunk in enumerate(hunks):
        if position:
            yield DiffLine("at", "")
        for kind, i1, i2, j1, j2 in hunk:
            if kind == "equal":
                yield from (
                    DiffLine("", old[i], before + i, after + j)
                    for i, j in zip(range(i1, i2), range(j1, j2))
                )
                continue
            yield from (DiffLine("del", old[i], before + i) for i in range(i1, i2))
            yield from (DiffLine("add", new[j], None, after + j) for j in range(j1, j2))


class AddedLines(NamedTuple):
    """The lines that a hunk adds; `number` is the first one's in the file, 0 if unknown."""

    number: int
    texts: tuple[str, ...]


def hunks_of(diff: Diff) -> list[AddedLines]:
    """Return what each hunk adds, of those that add lines."""
    hunks: list[list[DiffLine]] = [[]]
    for line in diff.lines:
        if line.kind == "at":
            hunks.append([])
        elif line.kind == "add":
            hunks[-1].append(line)
    return [
        AddedLines((hunk[0].after or 0) if diff.is_placed else 0, tuple(line.text for line in hunk))
        for hunk in hunks
        if hunk
    ]
