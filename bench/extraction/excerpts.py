"""Labelled excerpts: reads them, makes a conversation of each, and counts which items are right.

    == ops: a file that was mended
    U the build fails
    ! make :: undefined reference to `sum'
    E /srv/app/Makefile
    $ make
    => solution: undefined reference

`U` is what the user says, `A` the assistant, `R` a file that is read, `E` one that is edited, `$` a command that works,
`!` one that fails, with its error behind ` :: `. Lines that begin with two blanks go on. What should come of it stands
behind `=>`: a kind, or several of which any will do, and words of the item's quotation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from session_memory.memories.strategies.extractive.strategy import ExtractiveStrategy
from session_memory.memories.strategy import Memory
from session_memory.store.values import Conversation, StoredEntry

HERE = Path(__file__).parent
SETS = (HERE / "developed.txt", HERE / "unseen.txt")
CWD = "/srv/app"
CONVERSATION = Conversation(1, "excerpt", "e.jsonl", "", "claude-code", CWD, "", 0, 1, 9, "ready", "")
LEAST_PRECISION = 0.90
KINDS = ("preference", "decision", "fact", "rejected", "solution")


class Expected(NamedTuple):
    """An item that should come of an excerpt: one of its `kinds`, with these `words` in its quotation."""

    kinds: tuple[str, ...]
    words: str

    def is_met_by(self, item: Memory) -> bool:
        return item.kind in self.kinds and _plain(self.words) in _plain(item.quote)


class Excerpt(NamedTuple):
    """A labelled excerpt."""

    name: str
    entries: list[StoredEntry]
    expected: list[Expected]


class Judged(NamedTuple):
    """An excerpt with the items that were made of it: those that are right and wrong, and what is missing."""

    excerpt: Excerpt
    right: list[Memory]
    wrong: list[Memory]
    missing: list[Expected]


def read(path: Path) -> list[Excerpt]:
    """The excerpts of a file. Raises ValueError where a line has none of the signs."""
    found: list[Excerpt] = []
    lines: list[str] = []
    for line in [*path.read_text().splitlines(), "== "]:
        if line.startswith("== "):
            if lines:
                found.append(_excerpt(lines))
            lines = [line]
        elif lines and line.startswith("  "):
            lines[-1] += f"\n{line[2:]}"
        elif lines and line:
            lines.append(line)
    return found


def items_of(entries: Sequence[StoredEntry]) -> list[Memory]:
    """What the strategy makes of a conversation, but for the episode."""
    strategy = ExtractiveStrategy({}, None)  # type: ignore[arg-type]
    return [one for one in strategy.process(CONVERSATION, entries).memories if one.kind != "episode"]


def judge(excerpt: Excerpt) -> Judged:
    """Runs the strategy over an excerpt."""
    items = items_of(excerpt.entries)
    right = [item for item in items if any(one.is_met_by(item) for one in excerpt.expected)]
    missing = [one for one in excerpt.expected if not any(one.is_met_by(item) for item in items)]
    return Judged(excerpt, right, [item for item in items if item not in right], missing)


def entries_of(said: Iterable[tuple[str, str]]) -> list[StoredEntry]:
    """Entries of signs and texts."""
    return [_entry(number, sign, text) for number, (sign, text) in enumerate(said, 1)]


class Score(NamedTuple):
    """Of a kind: how many items were right, wrong and missing."""

    right: int
    wrong: int
    missing: int

    @property
    def precision(self) -> float:
        """1 where nothing was made."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """1 where there was nothing."""
        return self.right / (self.right + self.missing) if self.right + self.missing else 1.0


def scores(judged: Iterable[Judged]) -> dict[str, Score]:
    """The score of each kind. A missing item that may be of several kinds counts for the first."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for one in judged:
        right.update(item.kind for item in one.right)
        wrong.update(item.kind for item in one.wrong)
        missing.update(expected.kinds[0] for expected in one.missing)
    return scores_of(right, wrong, missing)


def scores_of(right: Mapping[str, int], wrong: Mapping[str, int], missing: Mapping[str, int]) -> dict[str, Score]:
    """The score of each kind."""
    return {kind: Score(right.get(kind, 0), wrong.get(kind, 0), missing.get(kind, 0)) for kind in KINDS}


def is_good(found: Mapping[str, Score]) -> bool:
    """Whether the precision of each kind is what is aimed at."""
    return all(score.precision >= LEAST_PRECISION for score in found.values())


def table(found: Mapping[str, Score]) -> str:
    """The scores in lines."""
    lines = [f"  {'kind':12} {'right':>5} {'wrong':>5} {'missing':>7}  precision  recall"]
    for kind, one in found.items():
        lines.append(
            f"  {kind:12} {one.right:5} {one.wrong:5} {one.missing:7}  {one.precision:9.2f}  {one.recall:6.2f}"
        )
    return "\n".join(lines)


def _excerpt(lines: Sequence[str]) -> Excerpt:
    said, expected = [], []
    for line in lines[1:]:
        sign, _, text = line.partition(" ")
        if sign == "=>":
            kinds, _, words = text.partition(": ")
            expected.append(Expected(tuple(kinds.split("|")), words))
        elif sign in "UARE$!":
            said.append((sign, text))
        else:
            raise ValueError(f"{lines[0]}: no sign that is known: {line!r}")
    return Excerpt(lines[0][3:], entries_of(said), expected)


def _entry(number: int, sign: str, text: str) -> StoredEntry:
    entry = StoredEntry(number - 1, "tool", text, number * 1000, CWD, 0, outcome="ok")
    if sign in "UA":
        return entry._replace(role={"U": "user", "A": "assistant"}[sign], outcome="")
    if sign in "RE":
        return entry._replace(tool={"R": "Read", "E": "Edit"}[sign], kind={"R": "read", "E": "edit"}[sign])
    command, _, error = text.partition(" :: ")
    return entry._replace(
        text=command, tool="Bash", kind="command", outcome="error" if sign == "!" else "ok", error=error
    )


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").replace("`", "").casefold().split())
