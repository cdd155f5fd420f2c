"""Stores recent activity of a team in this machine's projects, and its handoffs.

A prompt can then report both without a network.
"""

import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import groupby

from ... import NAME
from ...common.system.files import make_private_dir, names_in, read_whole, write_atomically
from ...common.system.git import find_worktree
from ...common.text.format import one_line, shorten
from ...common.text.sanitize import for_prompt
from ...common.text.timestamps import local_time
from ...history.store.values import TOOL_ROLE, StoredEntry
from ...memory.shared_store import RecentSession
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import Home
from ...sessions.transcripts.remote_sessions import ENDING, file_name, read_start, start_content
from .handoffs import OfferedHandoff, handoffs_file
from .postgres.rows import OthersHandoff

NAME_CHARACTERS = 60


def keep_activity(
    home: Home,
    sessions: list[RecentSession],
    starts: Mapping[str, tuple[str, str]],
    own_ids: Collection[str],
) -> int:
    """Write a file per session and delete the files of other sessions; return the number kept.

    `starts` maps start directories to projects with their local roots. Sessions with one of
    `own_ids` are left out, because they are on this machine too. Only files with new content are
    changed, and those of other projects are deleted. Raises OSError."""
    wanted: dict[str, dict[str, bytes]] = {project: {} for project, _ in starts.values()}
    for session in sessions:
        if session.session_id not in own_ids and session.project in wanted:
            wanted[session.project][file_name(session.who, session.id)] = _content(session)
    for project, files in wanted.items():
        folder = f"{home.remote_dir}/{_folder(project)}"
        make_private_dir(folder)
        for name in os.listdir(folder):
            if name.endswith(ENDING) and name not in files:
                os.unlink(f"{folder}/{name}")
        for name, content in files.items():
            _update(f"{folder}/{name}", content)
    folders = {_folder(project) for project in wanted}
    for path in {
        f"{home.remote_dir}/{name}" for name in names_in(home.remote_dir) if name not in folders
    }:
        if path != home.remote_starts:
            shutil.rmtree(path, ignore_errors=True)
    for start, (project, root) in starts.items():
        _update(home.remote_start(start), start_content(_folder(project), root, start))
    return sum(map(len, wanted.values()))


def noted_starts(home: Home) -> list[str]:
    """Return the existing directories in which sessions were started since the team was joined."""
    files = [f"{home.remote_starts}/{name}" for name in names_in(home.remote_starts)]
    return [start for _, _, start in map(read_start, files) if start and os.path.isdir(start)]


def activity_count(home: Home) -> int:
    """Return the number of other people's sessions stored here."""
    return sum(
        [name.endswith(ENDING) for _, _, names in os.walk(home.remote_dir) for name in names]
    )


def drop_activity(home: Home) -> None:
    """Delete all that is stored here. Raises LockedError, OSError."""
    with suppress(FileNotFoundError):
        shutil.rmtree(home.remote_dir)
    with suppress(FileNotFoundError):
        os.unlink(handoffs_file(home))
    OfferedHandoff.keep(home, [])


def _content(session: RecentSession) -> bytes:
    """Return the lines of a session's file.

    A message's tool calls belong to the entry before them, or form one."""
    records: list[dict[str, object]] = [{"title": session.title, "branch": session.branch}]
    for message, items in groupby(session.items, key=lambda item: item.message):
        records.append(_record(message, list(items)))
    return b"".join([json.dumps(record).encode() + b"\n" for record in records])


def _record(message: int, items: list[StoredEntry]) -> dict[str, object]:
    said = [item for item in items if item.role != TOOL_ROLE]
    at = items[0].timestamp
    return {
        "role": said[0].role if said else "assistant",
        "text": "\n\n".join([item.text for item in said]),
        "at": None if at is None else at / 1000,
        "id": f"{message}",
        "tools": [[item.tool, item.kind, item.text] for item in items if item.role == TOOL_ROLE],
    }


def _folder(project: str) -> str:
    return blake2b(project.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _update(path: str, content: bytes) -> None:
    """Write a file, unless it has this content."""
    with suppress(FileNotFoundError):
        if read_whole(path) == content:
            return
    write_atomically(path, content)


def keep_handoffs(
    home: Home,
    handoffs: Sequence[OthersHandoff],
    roots: Mapping[str, tuple[str, str]],
    own_ids: set[str],
) -> None:
    """Store the handoffs of others, for `handoffs.received` and the inbox.

    `roots` maps directories to projects with their local roots. Raises LockedError, OSError."""
    repositories: dict[str, set[str]] = {}
    for project, root in set(roots.values()):
        if worktree := find_worktree(root, home.user_dir):
            repositories.setdefault(project, set()).add(worktree.common_dir)
    kept = [
        {
            "repository": repository,
            "branch": handoff.branch,
            "session": handoff.session_id,
            "page": _safe(handoff.page),
            "line": _line(handoff),
        }
        for handoff in handoffs
        if handoff.session_id not in own_ids
        for repository in sorted(repositories.get(handoff.project, ()))
    ]
    if kept or os.path.exists(handoffs_file(home)):
        write_atomically(handoffs_file(home), json.dumps(kept).encode())
    rows = [
        (
            kept_handoff["session"],
            kept_handoff["repository"],
            kept_handoff["branch"],
            kept_handoff["line"],
        )
        for kept_handoff in kept
    ]
    OfferedHandoff.keep(home, [OfferedHandoff(*row) for row in rows])


def _safe(page: str) -> str:
    """Return a page of another member without markup, except quotation marks."""
    lines = [
        line.partition("> ") if line.startswith("> ") else (line, "", "")
        for line in page.split("\n")
    ]
    return "\n".join(
        line if line == ">" else for_prompt(line) + mark + for_prompt(quoted)
        for line, mark, quoted in lines
    )


def _line(handoff: OthersHandoff) -> str:
    titles = {runtime.name: runtime.TITLE for runtime in all_runtimes()}
    given = handoff.title, handoff.who, titles.get(handoff.runtime, handoff.runtime), handoff.branch
    title, who, runtime, branch = [
        shorten(one_line(for_prompt(part)), NAME_CHARACTERS) for part in given
    ]
    session = "".join(c for c in handoff.session_id if c.isalnum() or c in "._-")[:NAME_CHARACTERS]
    return (
        f'{who} ({runtime}) handed over "{title}" on branch {branch}, {local_time(handoff.at / 1000)}: '
        f"`{NAME} handoff {session}` prints it."
    )
