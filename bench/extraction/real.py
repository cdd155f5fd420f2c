"""Real transcripts with labels: which of their messages hold what, by a hash of the session, message number and kind.

No word of them stands here. A message that is not in `real.tsv` holds nothing worth keeping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from session_memory.memories.format import EPISODE, short_hash
from session_memory.memories.strategies.extractive.strategy import ExtractiveStrategy
from session_memory.memories.strategy import Memory

from ..real import conversations_of

LABELS = Path(__file__).with_name("real.tsv")
FEWEST_MESSAGES = 5  # of a conversation of which memories are made


class RealItem:
    """What was made of a message of a real session."""

    def __init__(self, session: str, item: Memory) -> None:
        self.where = short_hash(session), item.message
        self.item = item


def labels() -> dict[tuple[str, int], list[tuple[str, ...]]]:
    """What each labelled message holds: for each item the kinds that will do."""
    found: dict[tuple[str, int], list[tuple[str, ...]]] = {}
    for line in LABELS.read_text().splitlines():
        session, message, kinds = line.split("\t")
        found.setdefault((session, int(message)), []).append(tuple(kinds.split("|")))
    return found


def made(transcripts: Path) -> Iterator[RealItem]:
    """Yield what the strategy makes of real transcripts, but for episodes."""
    strategy = ExtractiveStrategy({}, None)  # type: ignore[arg-type]
    for conversation, entries in conversations_of(transcripts, "claude", "pi"):
        if conversation.entry_count >= FEWEST_MESSAGES:
            for item in strategy.process(conversation, entries).memories:
                if item.kind != EPISODE:
                    yield RealItem(conversation.session_id, item)


def judged(transcripts: Path) -> tuple[Counter[str], Counter[str], Counter[str], list[str]]:
    """How many items of each kind are right, wrong and missing, and the wrong ones."""
    due = labels()
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    faults = []
    for one in made(transcripts):
        fitting = next((kinds for kinds in due.get(one.where, []) if one.item.kind in kinds), None)
        if fitting is None:
            wrong[one.item.kind] += 1
            faults.append(f"{one.where[0]} {one.where[1]}: {one.item.kind}: {one.item.title}")
        else:
            due[one.where].remove(fitting)
            right[one.item.kind] += 1
    missing = Counter(kinds[0] for every in due.values() for kinds in every)
    return right, wrong, missing, faults
