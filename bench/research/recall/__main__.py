"""`python -m bench.research.recall [FILE...]`: how often search finds the answer's session.

Sets of questions, in the form in `bench/research/recall/__init__.py`, are ingested as transcripts
by the real ingest into a real store, and each question is a query as it is. R@k is the share of
questions for which a session with the answer is among the first k hits; `all @10` is the share of
all such sessions among the first ten.

Each set is also queried with plain FTS5: `bm25()` of messages and tool uses, and of whole sessions,
as shares of the best, added. And ours is queried for sentences of the sessions, verbatim, each of
which is in only one of them. With `--team` everything is pushed to a real server, as in
`bench.team`, and a team's store is queried too. With `--missed` the questions are printed whose
answers are not among the first five."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from random import Random
from statistics import mean
from typing import NamedTuple

import apsw

from session_memory.extras.team.postgres.engine import TeamStore
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.extras.team.push import push_new
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Filter
from tests.postgres_server import running_server

from ...command import run
from ...scratch import scratch_directory
from ...team import SHARED
from .sets import Collection, Question, SetError, read_set

OWN_SETS = sorted(Path(__file__).parent.glob("*.json"))
DEPTHS = (1, 5, 10)
LIMIT = 30  # conversations: a session may have several
SENTENCES, SHORTEST, LONGEST = 100, 25, 160
SEED = 7


class Answer(NamedTuple):
    """The sessions that a question found, best first."""

    question: Question
    found: list[str]
    seconds: float

    def is_found_within(self, depth: int) -> bool:
        return not self.question.evidence.isdisjoint(self.found[:depth])

    @property
    def share(self) -> float:
        """Of the sessions with the answer those among the first ten."""
        return len(self.question.evidence & set(self.found[: DEPTHS[-1]])) / len(
            self.question.evidence
        )


def main(*files: Path, team: bool = False, missed: bool = False) -> int:
    headings = "  ".join(f"R@{depth:<4}" for depth in DEPTHS)
    print(f"{'':26} {'questions':>9}   {headings}  all @10  ms/query")
    try:
        with running_server() if team else nullcontext() as server:
            if isinstance(server, str):
                raise OSError(server)
            url = server.url_of(server.database, "ann") if server else ""
            for path in files or OWN_SETS:
                _print_rows(path.stem, read_set(path), missed, url)
    except (SetError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


def ask(groups: Sequence[Collection]) -> Iterator[Answer]:
    """Ask all questions of a store that has all groups, each in a home of its own."""
    with scratch_directory() as name, _Taken(name, groups) as store_taken:
        yield from store_taken.ask([group.questions for group in groups])


class _Taken:
    """A store into which groups were taken, each in a home of its own."""

    def __init__(self, root: Path, groups: Sequence[Collection]) -> None:
        self._store = SqliteStore(f"{root}/store/memory.db")
        self._sessions = []
        for number, group in enumerate(groups):
            home = f"group-{number}"
            self._sessions.append(group.write_transcripts(root / "homes" / home / "-srv-agent"))
            Ingestion(self._store, home).scan(SourceDirectory(f"{root}/homes/{home}", home))

    def __enter__(self) -> _Taken:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def ask_team(self, url: str, questions: Sequence[Sequence[Question]]) -> list[Answer]:
        """Ask all questions of a team's store, which has the same content only meanwhile."""
        with closing(TeamPush(url, "laptop")) as push, closing(TeamStore(url)) as team:
            push_new(self._store, push, lambda *_: SHARED)
            try:
                return list(self.ask(questions, team))
            finally:
                push.withdraw_all()

    def ask(
        self, questions: Sequence[Sequence[Question]], team: TeamStore | None = None
    ) -> Iterator[Answer]:
        """Asks each group its questions."""
        for number, questions_of_group in enumerate(questions):
            store = team or self._store
            store.visible = (f"group-{number}",)
            for question in questions_of_group:
                began = time.perf_counter()
                hits = store.search(question.text, Filter(limit=LIMIT))
                seconds = time.perf_counter() - began
                sessions = dict.fromkeys(
                    self._sessions[number][hit.conversation.session_id] for hit in hits
                )
                yield Answer(question, list(sessions), seconds)

    def texts(self, number: int) -> list[tuple[str, str]]:
        """Return a group's texts and tool arguments, each with its session."""
        sql = """
            SELECT c.session_id, t.text FROM memory_conversations AS c
            JOIN memory_file_states AS f ON f.id = c.file_id AND f.home = ?
            CROSS JOIN (
                SELECT id, content AS text FROM memory_transcript_entries
                UNION ALL SELECT id, argument FROM memory_tool_uses
            ) AS t ON t.id BETWEEN c.first_item AND c.last_item
        """
        return [
            (self._sessions[number][session], text)
            for session, text in self._store.connection.execute(sql, (f"group-{number}",))
        ]


def _print_rows(title: str, groups: Sequence[Collection], missed: bool, url: str) -> None:
    """Print the rows. `url` is a team's store, which is queried too; '' if there is none."""
    with scratch_directory() as name, _Taken(name, groups) as store_taken:
        texts = [store_taken.texts(number) for number in range(len(groups))]
        plain = [
            answer
            for group, texts_of_group in zip(groups, texts)
            for answer in PlainSearch(texts_of_group).ask(group.questions)
        ]
        questions = [group.questions for group in groups]
        answers = list(store_taken.ask(questions))
        of_team = store_taken.ask_team(url, questions) if url else []
        verbatim = list(
            store_taken.ask(
                [sentences(texts_of_group, SENTENCES // len(groups)) for texts_of_group in texts]
            )
        )
    sessions = sum(len({session for session, _ in texts_of_group}) for texts_of_group in texts)
    print(f"{title} ({sessions} sessions)")
    of_each = {
        "plain FTS5": plain,
        "ours": answers,
        "ours, of a team": of_team,
        "ours, verbatim sentences": verbatim,
    }
    for kind, rows in of_each.items():
        if rows:
            print(_row(kind, rows), flush=True)
    for answer in answers if missed else []:
        if not answer.is_found_within(5):
            print(
                f"    {answer.question.text} {sorted(answer.question.evidence)}, found "
                f"{answer.found[:5]}"
            )


class PlainSearch:
    """A search with FTS5 alone: `bm25()` of texts and of sessions, as shares of the best, added."""

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        whole: dict[str, list[str]] = {}
        for session, text in texts:
            whole.setdefault(session, []).append(text)
        self._database = apsw.Connection(":memory:")
        for table, rows in (
            ("texts", texts),
            ("sessions", [(session, "\n".join(all)) for session, all in whole.items()]),
        ):
            self._database.execute(
                f"CREATE VIRTUAL TABLE {table} USING fts5 (session UNINDEXED, text, "
                f"tokenize = porter)"
            )
            self._database.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)

    def ask(self, questions: Sequence[Question]) -> Iterator[Answer]:
        for question in questions:
            began = time.perf_counter()
            words = " OR ".join([f'"{word}"' for word in re.findall(r"\w+", question.text)])
            shares_by_table = [self._shares(table, words) for table in ("texts", "sessions")]
            total = {
                session: sum([shares.get(session, 0.0) for shares in shares_by_table])
                for session in shares_by_table[1]
            }
            ranked = sorted(total, key=total.__getitem__, reverse=True)
            yield Answer(question, ranked, time.perf_counter() - began)

    def _shares(self, table: str, words: str) -> dict[str, float]:
        scores: dict[str, float] = {}
        for row in self._database.execute(
            f"SELECT session, -bm25({table}) FROM {table}(?)", (words or '""',)
        ):
            session, score = str(row[0]), float(row[1] or 0)
            scores[session] = max(score, scores.get(session, 0.0))
        best = max(scores.values(), default=0.0) or 1.0
        return {session: score / best for session, score in scores.items()}


def sentences(texts: Sequence[tuple[str, str]], number: int) -> list[Question]:
    """Return about `number` sentences that are each in only one session.

    They are the same for the same texts."""
    questions: list[Question] = []
    random = Random(SEED)
    for session, text in random.sample(texts, len(texts)):
        inner = [sentence_text.strip() for sentence_text in re.split(r"(?<=[.!?])\s+|\n+", text)]
        if chosen := [
            sentence_text for sentence_text in inner if SHORTEST <= len(sentence_text) <= LONGEST
        ]:
            sentence = random.choice(chosen)
            if all(
                session_of_text == session for session_of_text, other in texts if sentence in other
            ):
                questions.append(Question(sentence, frozenset((session,))))
        if len(questions) == number:
            break
    return questions


def _row(title: str, answers: list[Answer]) -> str:
    recall = "  ".join(
        f"{mean(answer.is_found_within(depth) for answer in answers):<6.3f}" for depth in DEPTHS
    )
    share = mean(answer.share for answer in answers)
    milliseconds = mean(answer.seconds for answer in answers) * 1000
    return f"  {title:24} {len(answers):9}   {recall}  {share:<7.3f}  {milliseconds:.1f}"


if __name__ == "__main__":
    run(main)
