"""`python -m bench.recall [FILE...]`: how often a search finds the session in which the answer is.

Sets of questions, in the form that `bench/recall/__init__.py` tells, are taken in as transcripts by the real ingest
into a real store, and each question is a query as it stands. R@k is the share of questions of which a session with the
answer is among the first k that are found; `all @10` is the share of all such sessions that are among the first ten.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from session_memory.store.ingest.ingestion import Ingestion
from session_memory.store.ingest.sources import SourceDirectory
from session_memory.store.sqlite.engine import SqliteStore
from session_memory.store.values import Filter

from .sets import Group, Question, SetError, read_set, write_transcripts

OWN_SETS = sorted(Path(__file__).parent.glob("*.json"))
DEPTHS = (1, 5, 10)
LIMIT = 30  # conversations: a session may have several


class Answer(NamedTuple):
    """The sessions that a question found, the best first."""

    question: Question
    found: list[str]
    seconds: float

    def is_found_within(self, depth: int) -> bool:
        return not self.question.evidence.isdisjoint(self.found[:depth])

    @property
    def share(self) -> float:
        """Of the sessions with the answer those among the first ten."""
        return len(self.question.evidence & set(self.found[: DEPTHS[-1]])) / len(self.question.evidence)


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.recall", description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", default=OWN_SETS, help="sets (those in bench/recall)"
    )
    parser.add_argument(
        "--missed", action="store_true", help="also print the questions that are not among the first five"
    )
    options = parser.parse_args()
    headings = "  ".join(f"R@{depth:<4}" for depth in DEPTHS)
    print(f"{'set':24} {'sessions':>8} {'questions':>9}   {headings}  all @10  ms/query")
    for path in options.files:
        try:
            groups = read_set(path)
        except (SetError, OSError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        answers = list(ask(groups))
        print(_row(path.stem, groups, answers))
        if options.missed:
            for answer in answers:
                if not answer.is_found_within(5):
                    print(f"    {answer.question.text} {sorted(answer.question.evidence)}, found {answer.found[:5]}")
    return 0


def ask(groups: list[Group]) -> Iterator[Answer]:
    """Asks all questions of a store that has all groups, each in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="session-memory-bench-") as name:
        store = SqliteStore(f"{name}/store/memory.db")
        sessions = [_ingest(store, group, Path(name) / "homes", number) for number, group in enumerate(groups)]
        for number, group in enumerate(groups):
            wanted = Filter(homes=(f"group-{number}",), limit=LIMIT)
            for question in group.questions:
                began = time.perf_counter()
                hits = store.search(question.text, wanted)
                seconds = time.perf_counter() - began
                found = dict.fromkeys(sessions[number][hit.conversation.session_id] for hit in hits)
                yield Answer(question, list(found), seconds)
        store.close()


def _ingest(store: SqliteStore, group: Group, homes: Path, number: int) -> dict[str, str]:
    home = f"group-{number}"
    sessions = write_transcripts(group, homes / home / "-srv-agent")
    Ingestion(store, home).scan(SourceDirectory(str(homes / home), home))
    return sessions


def _row(title: str, groups: list[Group], answers: list[Answer]) -> str:
    sessions = sum(len(group.sessions) for group in groups)
    recall = "  ".join(f"{mean(answer.is_found_within(depth) for answer in answers):<6.3f}" for depth in DEPTHS)
    share = mean(answer.share for answer in answers)
    milliseconds = mean(answer.seconds for answer in answers) * 1000
    return f"{title:24} {sessions:8} {len(answers):9}   {recall}  {share:<7.3f}  {milliseconds:.1f}"


if __name__ == "__main__":
    sys.exit(main())
