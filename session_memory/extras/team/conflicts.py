"""Conflicts with other machines.

A team's store gets the lines that live sessions changed. The other members' lines are stored on
this machine for its own search for conflicts, which asks no server.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.system.files import read_whole, write_atomically
from ...common.system.git_directories import GitDirectory
from ...common.system.git_process import GitUnavailableError
from ...history.git.branches import default_branch
from ...history.git.merges import Conflict, Merges, touching
from ...sessions.settings.homes import Home
from .postgres.rows import LIVE_HOURS, OthersFile, UnmergedFile

if TYPE_CHECKING:
    from ...history.conflicts import Side

SECONDS = 2.0  # of git, for the changes of one side
MOST_FILES = 200  # of a side


def changed_by_session(
    sides: Iterable[Side],
    root_of: Callable[[str], str],
    shared: Callable[[str], set[str]],
    now: float,
) -> dict[str, list[UnmergedFile]]:
    """Return, by session id, the files that a session edited and that its side changed.

    The side's changes are since it left the default branch. `root_of` returns the root of a
    worktree's project, or ''; `shared` returns the files of a session whose edits may be shared."""
    files_by_session: dict[str, list[UnmergedFile]] = {}
    for side in sides:
        root = root_of(side.root) if side.worktree else ""
        edited = {session.id: shared(session.id) for session in side.sessions} if root else {}
        if not any(edited.values()):
            continue
        with GitDirectory() as directory:
            try:
                merges = Merges(side.common_dir, Path(directory.path), SECONDS)
                changed = list(_changed(side, root, merges, set().union(*edited.values()), now))
            except (GitUnavailableError, OSError):
                continue
        for id, paths in edited.items():
            files_by_session[id] = [file for file in changed if file.path in paths]
    return files_by_session


def _changed(
    side: Side, root: str, merges: Merges, edited: set[str], now: float
) -> Iterator[UnmergedFile]:
    """Yield the differences of the `edited` files of a project at `root` from the default branch.

    Raises GitUnavailableError, OSError."""
    assert side.worktree is not None
    wanted = {
        f"{root}/{path}"[len(side.root) + 1 :]: path
        for path in edited
        if f"{root}/".startswith(f"{side.root}/")
    }
    state, head = (
        merges.state_of(side.worktree, wanted),
        merges.commit_of(side.worktree.git_dir, "HEAD"),
    )
    base = base_of(merges, side.common_dir, state) or head
    changed = [file for file in merges.changed_files(base, state) if file[0] in wanted]
    for path, before, after in changed[:MOST_FILES]:
        with suppress(OSError):
            at = os.lstat(f"{side.root}/{path}").st_mtime if after else now
            hunks = tuple(merges.hunks(before, after)) if before and after else ()
            yield UnmergedFile(wanted[path], head, before, after, hunks, int(at * 1000))


def base_of(merges: Merges, common_dir: str, commit: str) -> str:
    """Return the commit at which a branch left the default branch, as others have it, or ''.

    Raises GitUnavailableError."""
    refs = default_branch(common_dir)[1]
    return merges.base_of(commit, merges.commit_of(common_dir, refs[-1])) if refs else ""


def keep_others(
    home: Home, files: Sequence[OthersFile], roots: Mapping[str, str], own_ids: set[str]
) -> None:
    """Store the others' changes, by the local root of their project, for `others_in`.

    Raises OSError."""
    kept = {
        root: [file for file in files if file.project == project and file.session_id not in own_ids]
        for root, project in roots.items()
    }
    content = json.dumps({root: of for root, of in kept.items() if of}).encode()
    if content != b"{}" or os.path.exists(_file(home)):
        write_atomically(_file(home), content)


def drop_others(home: Home) -> None:
    """Delete the stored changes. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(_file(home))


def others_in(side: Side) -> list[tuple[str, OthersFile]]:
    """Return the others' recent changes in files of a side's worktree, each with its path there."""
    files_by_place: dict[tuple[str, int], OthersFile] = {}
    oldest = (time.time() - LIVE_HOURS * 3600) * 1000
    for home in {session.home.state_dir: session.home for session in side.sessions}.values():
        # Without the file, or if it is damaged or from another version, nothing is known: the next
        # push writes it.
        with suppress(FileNotFoundError, ValueError, TypeError, AttributeError):
            for root, files in json.loads(read_whole(_file(home))).items():
                for *session, file in files:
                    others_file = OthersFile._make((*session, UnmergedFile._make(file)))
                    whole = f"{root}/{others_file.file.path}"
                    if whole.startswith(f"{side.root}/") and others_file.file.at >= oldest:
                        files_by_place[whole[len(side.root) + 1 :], others_file.session] = (
                            others_file
                        )
    return [(path, file) for (path, _), file in files_by_place.items()]


def paths_in(side: Side) -> set[str]:
    """Return the paths of these files."""
    return {path for path, _ in others_in(side)}


def conflicts_with(
    side: Side, commit: str, merges: Merges
) -> Iterator[tuple[OthersFile, Conflict, bool]]:
    """Yield conflicts with changes by others, and whether a merge confirms each.

    Each has the others' file and the conflict. Raises GitUnavailableError, OSError."""
    others = others_in(side)
    base = base_of(merges, side.common_dir, commit) if others else ""
    for path, theirs in others:
        conflict, is_certain = conflict_with(merges, commit, base, path, theirs.file) or (
            None,
            True,
        )
        if conflict:
            yield theirs, conflict, is_certain


def conflict_with(
    merges: Merges, commit: str, base: str, path: str, theirs: UnmergedFile
) -> tuple[Conflict | None, bool] | None:
    """Return the conflict of a file that others changed, and whether a merge confirms it.

    The `commit` left the default branch at `base`. If their state is not here, only changes of the
    same lines of the same file may conflict. Return None if that cannot be judged either. Raises
    GitUnavailableError."""
    own_blob, before = merges.blob_at(commit, path), merges.blob_at(base, path) if base else ""
    if own_blob in (before, theirs.blob):
        return None, True
    if theirs.blob and merges.blob_at(theirs.head, path) == theirs.blob:
        return next(
            (
                conflict
                for conflict in merges.conflicts(commit, theirs.head)
                if conflict.path == path
            ),
            None,
        ), True
    if before != theirs.base:
        return None
    objects = own_blob, theirs.blob
    if not own_blob or not theirs.blob:
        return Conflict(path, deleted_by=objects.index(""), objects=objects), True
    if not before:
        return Conflict(path, objects=objects), True
    hunks = touching(merges.hunks(before, own_blob), theirs.hunks)
    return Conflict(path, hunks, objects=objects) if hunks else None, False


def _file(home: Home) -> str:
    return f"{home.state_dir}/team-changes.json"
