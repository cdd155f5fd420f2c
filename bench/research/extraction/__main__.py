"""`python -m bench.research.extraction [REPOSITORY...]`: results of rules without a model, by rule.

The labels are in labels.tsv. With clones of the repositories, it also prints each labelled
sentence; none of them is in this project."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Filter
from session_memory.memory.format import short_hash
from session_memory.memory.strategies.extractive.sentences import sentences_of

from ...command import run
from ...scratch import scratch_directory
from ..recall.checkpoints import Checkpoints
from ..recall.sets import SetError
from ..updates.sheet import share

LABELS = Path(__file__).with_name("labels.tsv")
READER = "reader"  # found by reading, before anything else was known of the session
HISTORY = ".specstory/history/"
_SPEAKER = re.compile(r"^_\*\*(User|Agent|Assistant)[^*]*\*\*_\s*$", re.MULTILINE)


def labels() -> list[dict[str, str]]:
    head, *rows = [line.split("\t") for line in LABELS.read_text().splitlines()]
    return [dict(zip(head, row)) for row in rows]


def scores() -> str:
    """Return a table of each rule in each set.

    It has how many sentences the rule kept, how many of these are worth it, and how many of the
    reader's marked sentences it found."""
    lines = [
        "| set | rule | kept | worth keeping | of what the reader marked |",
        "|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["set"] for row in labels()):
        rows = [
            (row["found by"].split("|"), row["label"] == "keep")
            for row in labels()
            if row["set"] == name
        ]
        marked = [rules for rules, _ in rows if READER in rules]
        kept = Counter(rule for rules, _ in rows for rule in rules if rule != READER)
        right = Counter(rule for rules, keep in rows if keep for rule in rules)
        for rule, count in sorted(kept.items()):
            found_share = (
                f"{sum(rule in rules for rules in marked)} of {len(marked)}" if marked else "-"
            )
            lines.append(
                f"| {name} | {rule} | {count} | {share(right[rule], count)} | {found_share} |"
            )
    return "\n".join(lines)


def texts(repository: Path) -> Iterator[tuple[str, str]]:
    """Yield session and text of each message that a person sent, of a repository that keeps its
    sessions in git."""
    try:
        checkpoints = Checkpoints(repository)
    except SetError:
        yield from _histories(repository)
        return
    with scratch_directory() as directory, closing(SqliteStore(f"{directory}/store.db")) as store:
        checkpoints.write_transcripts(Path(directory) / "transcripts")
        Ingestion(store).scan(SourceDirectory(f"{directory}/transcripts"))
        for conversation in store.conversations(Filter(limit=-1)):
            for entry in store.entries(conversation.id):
                if entry.role == "user" and entry.text:
                    yield conversation.session_id, entry.text


def _histories(repository: Path) -> Iterator[tuple[str, str]]:
    for name in filter(
        None, _git(repository, "ls-tree", "-r", "-z", "--name-only", "HEAD", HISTORY).split("\0")
    ):
        parts = _SPEAKER.split(_git(repository, "show", f"HEAD:{name}"))
        for speaker, text in zip(parts[1::2], parts[2::2]):
            if speaker == "User":
                yield Path(name).stem, text.strip().removesuffix("---").strip()


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=False
    )
    return done.stdout.decode(errors="replace")


def main(*repositories: Path) -> int:
    print(scores())
    wanted = {(row["session"], row["hash"]): row for row in labels()}
    for repository in repositories:
        for session, text in texts(repository):
            for sentence in sentences_of(text):
                row = wanted.pop((session, short_hash(sentence)), None)
                if row:
                    print(
                        f"{row['label']:4}  {row['found by']:24}  {row['repository']}  "
                        f"{session}\n      {sentence}"
                    )
    return 0


if __name__ == "__main__":
    run(main)
