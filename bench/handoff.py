"""`python -m bench.handoff REPOSITORY...`: checks if a handoff names the successor's first steps.

A repository with a branch `entire/checkpoints/v1` has the transcripts of its sessions. A session is
the successor of another if its first request names the other's transcript, as when Claude Code
carries a plan into a new session. It is one, too, if its first request is a plan whose first line
the other session has, within a day before. Otherwise it is the successor of the session that ended
last in the same directory, at most 12 hours before, if both edited a file. The successor's
first opened files and first commands are compared with the page of the other: a file by its
path in the repository, a command by its program and first word. The
baseline is the ten files that the other used last. The state of files
in git is not judged, because a clone has only today's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from session_memory.history.patterns.handoff import handed_over, page
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Conversation, Filter, StoredEntry, edits_in
from session_memory.sessions.transcripts.reader import is_plan, title_of

from .command import run
from .research.recall.checkpoints import Checkpoints
from .scratch import scratch_directory

FIRST_FILES = 10
FIRST_COMMANDS = 5
RECENT_FILES = 10
DAY = 24 * 3600_000
SOON = 12 * 3600_000  # after the last session of a directory, to go on with its files
LEAST_HEADING = 12  # characters of a plan's first line
NAMED = re.compile(r"/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl")
Edits = dict[str, set[str]]  # the files that each session edited
_NO_PROGRAM = re.compile(r"^(?:cd\s+\S+\s*&&\s*|\w+=\S+\s+)+")


def main(*repositories: Path) -> None:
    for path in repositories:
        with scratch_directory() as root:
            measure(path, root)


def measure(path: Path, root: Path) -> None:
    """Print the figures of one repository."""
    Checkpoints(path).write_transcripts(root / "projects" / "-repository")
    store = SqliteStore(str(root / "store" / "memory.db"))
    Ingestion(store, workers=os.cpu_count() or 1).scan(SourceDirectory(str(root / "projects")))
    sessions: dict[str, list[Conversation]] = {}
    for conversation in store.conversations(Filter(limit=10**6)):
        sessions.setdefault(conversation.session_id[-36:], []).insert(0, conversation)
    items = {
        name: [item for conversation in ones for item in store.entries(conversation.id)]
        for name, ones in sessions.items()
    }
    edits = {
        name: {path for _, path in edits_in(items[name], ones[-1].cwd)}
        for name, ones in sessions.items()
    }
    pairs, plans = pairs_of(sessions, items, edits)
    files: list[float] = []
    recent: list[float] = []
    commands: list[float] = []
    for before, after in dict.fromkeys(pairs):
        last = sessions[before][-1]
        edited = [path for _, path in edits_in(items[before], last.cwd)]
        text = page(handed_over(last, items[before], {}, "", edited), "session-memory")
        opened = _files(items[after], last.cwd)[:FIRST_FILES]
        used = _files(items[before][::-1], last.cwd)[:RECENT_FILES]
        ran = list(
            dict.fromkeys(_program(item.text) for item in items[after] if item.kind == "command")
        )[:FIRST_COMMANDS]
        if opened:
            files.append(mean(path in text for path in opened))
            recent.append(mean(path in used for path in opened))
        if ran:
            commands.append(mean(command in text for command in ran))
    print(
        f"{path.parent.name}: {len(sessions)} sessions, {len(set(pairs))} pairs of a session and "
        f"its successor, {plans} of them by a plan"
    )
    rows = (
        ("files, named by the page", files),
        ("files, the ten used last", recent),
        ("commands, named", commands),
    )
    for label, shares in rows:
        print(
            f"  {label}: {mean(shares) if shares else 0:.3f} of the first ones of {len(shares)} "
            f"successors"
        )
    store.close()


def pairs_of(
    sessions: dict[str, list[Conversation]], items: dict[str, list[StoredEntry]], edits: Edits
) -> tuple[list[tuple[str, str]], int]:
    """Return the pairs of a session and its successor, and how many a plan connects."""
    planned = [(before, name) for name in items if (before := _predecessor(name, items))]
    names = {name for _, name in planned}
    others = [
        (before, name)
        for name in items
        if name not in names and (before := _last_with_its_files(name, sessions, edits))
    ]
    return planned + others, len(planned)


def _predecessor(name: str, items: dict[str, list[StoredEntry]]) -> str:
    """Return the session that handed its plan to this one; '' for none."""
    request = next((entry for entry in items[name] if entry.role == "user"), None)
    if request is None or request.timestamp is None:
        return ""
    named = [
        match[1] for match in NAMED.finditer(request.text) if match[1] in items and match[1] != name
    ]
    if named or not is_plan(request.text):
        return named[-1] if named else ""
    heading, began = title_of(request.text), request.timestamp
    predecessors = []
    for other, said in items.items():
        before = [
            item
            for item in said
            if item.timestamp is not None and began - DAY <= item.timestamp < began
        ]
        if (
            other != name
            and len(heading) >= LEAST_HEADING
            and any(heading in item.text for item in before)
        ):
            predecessors.append((before[-1].timestamp or 0, other))
    return max(predecessors, default=(0, ""))[1]


def _last_with_its_files(name: str, sessions: dict[str, list[Conversation]], edits: Edits) -> str:
    """Return the session that ended last in the directory before this one began, at most 12 hours
    before, if both edited a file; '' for none."""
    first = sessions[name][0]
    began = first.first_message_at or 0
    before = [
        (ended, other)
        for other, conversations in sessions.items()
        if conversations[0].cwd == first.cwd
        and (ended := conversations[-1].last_message_at or 0)
        and began - SOON <= ended < began
    ]
    last = max(before, default=(0, ""))[1]
    return last if last and edits[last] & edits[name] else ""


def _files(items: Sequence[StoredEntry], cwd: str) -> list[str]:
    paths = [
        item.text
        for item in items
        if item.kind in ("read", "edit") and item.text and "\n" not in item.text
    ]
    return list(dict.fromkeys(path.removeprefix(f"{cwd}/") for path in paths))


def _program(command: str) -> str:
    return " ".join(_NO_PROGRAM.sub("", command.strip()).split()[:2])


if __name__ == "__main__":
    run(main)
