"""Lost work of sessions that can be brought back, whoever removed it.

It finds noted stashes, branches and worktrees, commits and staged files that git still has, and the
texts of edits in transcripts. All of it is restored into new branches and new files; nothing is
ever overwritten.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from ...awareness.activity.collisions.ref_notes import RefNotes
from ...awareness.activity.session_edits import SessionCalls
from ...common.errors import SessionMemoryError
from ...common.system.files import read_whole, real_path
from ...common.system.git import Worktree
from ...common.system.git_refs import STASH, WORKTREE, short_id
from ...sessions.transcripts.sessions import FoundSession
from ._lost_objects import DAYS, LARGEST_FILE, LostFile, LostObjects

FILE, TEXT, COMMIT = "file", "text", "commit"
RECENT_SECONDS = DAYS * 86400.0
MOST_ENTRIES = 20_000  # of a session
MOST_VERSIONS = 3  # of a file that was staged several times
LEAST_CHARACTERS = 4  # of a line that tells a file from others
_SLACK_SECONDS = 1.0
_COMMITTING = ("am", "cherry-pick", "commit", "merge", "pull", "rebase", "revert", "stash")


class Rescuable(NamedTuple):
    """Lost work, as a `commit` or as the `content` of a file.

    `kind` is the kind of a shared ref, COMMIT, FILE (a staged version) or TEXT (edits from a
    transcript). `about` is git's name or message, or the file's path relative to the root. `at` is
    when it was made or lost, in seconds since the epoch. `session` made it; None if unknown.
    `replaced` is the present content of the file."""

    id: str
    kind: str
    about: str
    at: float
    session: FoundSession | None
    commit: str = ""
    content: bytes = b""
    root: str = ""
    replaced: bytes = b""

    def diff(self, objects: LostObjects) -> str:
        """Return the lost work as a diff. Raises GitUnavailableError."""
        if self.commit:
            return objects.diff(self.commit)
        if b"\0" in self.content:
            return f"Binary file {self.about}\n"
        before, after = (
            [f"{line}\n" for line in text.decode("utf-8", "replace").removesuffix("\n").split("\n")]
            if text
            else []
            for text in (self.replaced if self.kind == FILE else b"", self.content)
        )
        name = self.about or self.id
        lines = difflib.unified_diff(before, after, f"now/{name}", f"rescued/{name}")
        return "".join(lines)


# A staged file, the session's work that contains its edits, and its path (None and '' if unknown).
StagedFile = tuple[LostFile, "SessionWork | None", str]


class SessionWork:
    """The texts that a session has written since a given time, and when it may have committed.

    `texts` has the texts by path, `times` the time of each file's last edit. Raises OSError."""

    def __init__(self, session: FoundSession, since: float) -> None:
        self.session = session
        self.texts: dict[str, list[str]] = {}
        self.times: dict[str, float] = {}
        permitted = session.gate.quoted if session.gate else list
        entries = permitted(session.last_entries(MOST_ENTRIES)[0])
        entries = [entry for entry in entries if (entry.timestamp or 0.0) >= since]
        calls = SessionCalls(session.session, session.runtime, entries, permitted, since)
        self._runs = calls.git_runs(_COMMITTING)
        for edit in sorted(calls.edits, key=lambda edit: edit.began):
            for before, after in edit.texts():
                _put(self.texts.setdefault(edit.path, []), before, after)
            self.times[edit.path] = edit.ended

    def has_made(self, at: float) -> bool:
        """Check if one of the session's git commands ran at the time of a commit.

        Times of commits are whole seconds."""
        return any(int(began) <= at <= ended + _SLACK_SECONDS for began, ended in self._runs)


class Rescue:
    """A search for lost work of `sessions` in the repository of `worktree`.

    It includes the `chosen` session even if that was started elsewhere, and leaves out the work of
    `hidden` sessions. Raises GitUnavailableError."""

    def __init__(
        self,
        worktree: Worktree,
        sessions: list[FoundSession],
        hidden: list[FoundSession],
        chosen: FoundSession | None = None,
    ) -> None:
        self.objects = LostObjects(worktree)
        self._here = worktree
        self._sessions = {session.id: session for session in sessions}
        self._notes = [
            RefNotes(path, worktree.common_dir)
            for path in dict.fromkeys(
                session.home.ref_notes(worktree.common_dir) for session in (*sessions, *hidden)
            )
        ]
        self._roots = self._all_roots()
        self._work = self._read(sessions, chosen)
        self._hidden = self._read(hidden, None)
        self._known: dict[str, set[bytes]] = {}

    def find(self) -> list[Rescuable]:
        """Return the lost work, the newest first."""
        noted = list(self._noted())
        known = {each.commit for each in noted}
        commits = [each for each in self._commits() if each.commit not in known]
        staged = [(file, *_writer(file, self._work)) for file in self.objects.files()]
        relatives = {self._relative(path) for work in self._work for path in work.texts}
        lost = [each.commit for each in (*noted, *commits)]
        self._known = self._lines_of(relatives - {""}, lost)
        files = list(self._files(staged))
        every = [*noted, *commits, *files, *self._texts(files)]
        unique = {each.id: each for each in every}
        return sorted(unique.values(), key=lambda each: -each.at)

    def _read(self, sessions: list[FoundSession], chosen: FoundSession | None) -> list[SessionWork]:
        """Return the readable work of the sessions that were started in this repository."""
        since, works = time.time() - RECENT_SECONDS, []
        for session in sessions:
            if session is chosen or self._is_here(session.start):
                with suppress(Exception):  # any error affects only this session
                    works.append(SessionWork(session, since))
        return works

    def _all_roots(self) -> list[str]:
        """Return the roots of all worktrees, this one first, including removed ones."""
        roots = [self._here.root, *[worktree.root for worktree in self.objects.worktrees]]
        for notes in self._notes:
            refs = [*notes.refs, *[loss.ref for loss in notes.losses]]
            roots += [ref.text for ref in refs if ref.kind == WORKTREE]
        return [root for root in dict.fromkeys(roots) if root]

    def _is_here(self, directory: str) -> bool:
        real = real_path(directory) if directory else ""
        return any(f"{real}/".startswith(root + "/") for root in self._roots)

    def _root_of(self, path: str) -> str:
        """Return the root of the worktree, present or removed, that contains a path, or ''."""
        return max(
            [root for root in self._roots if path.startswith(root + "/")], key=len, default=""
        )

    def _relative(self, path: str) -> str:
        """Return a path relative to its worktree, present or removed.

        Return '' for a path outside every worktree or inside `.git`."""
        root = self._root_of(path)
        relative = path[len(root) + 1 :] if root else ""
        return "" if {"..", ".git"} & set(relative.split("/")) else relative

    def _noted(self) -> Iterator[Rescuable]:
        for loss in [loss for notes in self._notes for loss in notes.losses]:
            ref = loss.ref
            commit = self.objects.described(ref.commit)
            if commit is None or self.objects.is_reachable(commit.id):
                continue
            session, is_hidden = self._maker(ref.time if ref.kind == STASH else commit.at, ref.key)
            if ref.kind == WORKTREE and session is None:
                session = self._only_session_in(ref.text)
            if not is_hidden:
                about = ref.text if ref.kind == STASH else ref.name
                id = short_id(commit.id)
                yield Rescuable(id, ref.kind, about, loss.missed, session, commit.id)

    def _commits(self) -> Iterator[Rescuable]:
        for commit in self.objects.commits():
            session, is_hidden = self._maker(commit.at)
            if not is_hidden:
                id = short_id(commit.id)
                yield Rescuable(id, COMMIT, commit.subject, commit.at, session, commit.id)

    def _maker(self, at: float, key: str = "") -> tuple[FoundSession | None, bool]:
        """Return the session that owns the ref `key` or committed at a time, or None.

        The second value is True if that session is hidden."""
        owners = [
            owner.rpartition(":")[2] for notes in self._notes for owner in notes.owners.get(key, ())
        ]
        makers = [work.session for work in self._work if work.has_made(at)]
        if owners:
            seen = [self._sessions[owner] for owner in owners if owner in self._sessions]
            # A session that took over a branch owns it now, but may not have made the commit.
            made = [session for session in seen if session in makers] or seen
            return (made[-1] if made else None), not made
        if any(work.has_made(at) for work in self._hidden):
            return None, True
        return (makers[0] if len(makers) == 1 else None), False

    def _only_session_in(self, root: str) -> FoundSession | None:
        sessions = [
            work.session for work in self._work if f"{work.session.start}/".startswith(f"{root}/")
        ]
        return sessions[0] if len(sessions) == 1 else None

    def _files(self, staged: list[StagedFile]) -> Iterator[Rescuable]:
        """Yield the lost staged files.

        Of a file that a session edited, these are the newest versions that have lines no present
        file or commit has."""
        counts: dict[str, int] = {}
        for file, work, path in staged:
            if work is None and _writer(file, self._hidden)[0]:
                continue
            relative = self._relative(path) if work else ""
            counts[path] = counts.get(path, 0) + 1
            if relative and (
                not _lines(file.content) - self._known[relative] or counts[path] > MOST_VERSIONS
            ):
                continue
            yield self._rescuable(
                short_id(file.id), FILE, relative, path, (file.at, work), file.content
            )

    def _texts(self, files: list[Rescuable]) -> Iterator[Rescuable]:
        """Yield the texts of edits that no file, commit or staged file contains any more."""
        for file in files:
            self._known.setdefault(file.about, set()).update(_lines(file.content))
        for work in self._work:
            for path, texts in work.texts.items():
                relative = self._relative(path)
                known = self._known.get(relative, set())
                lost = [text for text in texts if _is_lost(_encoded(text), known)]
                if relative and lost:
                    content = _encoded("".join([text.removesuffix("\n") + "\n" for text in lost]))
                    place = _encoded(f"{work.session.id} {path}\0")
                    id = f"t{hashlib.sha256(place + content).hexdigest()[:7]}"
                    when = work.times[path], work
                    yield self._rescuable(id, TEXT, relative, path, when, content)

    def _rescuable(
        self,
        id: str,
        kind: str,
        relative: str,
        path: str,
        made: tuple[float, SessionWork | None],
        content: bytes,
    ) -> Rescuable:
        root = self._root_of(path)
        root = root if root and os.path.isdir(root) else self._here.root
        at, work = made
        session, present = (work.session if work else None), _content(f"{root}/{relative}")
        return Rescuable(id, kind, relative, at, session, "", content, root, present)

    def _lines_of(self, relatives: set[str], lost: list[str]) -> dict[str, set[bytes]]:
        """Return all lines that each file has in any worktree, recent commit or lost commit.

        The keys are paths relative to the root."""
        versions = self.objects.versions(relatives, lost)
        contents = self.objects.contents(set().union(*versions.values()))
        known: dict[str, set[bytes]] = {}
        for relative, ids in versions.items():
            texts = [contents[id] for id in ids if id in contents]
            texts += [_content(f"{root}/{relative}") for root in self._roots]
            known[relative] = set().union(*map(_lines, texts))
        return known


def restore(work: Rescuable, objects: LostObjects) -> str:
    """Restore lost work, and return the name of the new branch or the path of the new file.

    Raises GitUnavailableError, SessionMemoryError, OSError."""
    if work.commit:
        return objects.make_branch(work.commit)
    name = work.about or f"staged-{work.id}"
    for path in (f"{work.root}/{name}", f"{work.root}/{name}.rescued-{work.id}"):
        if not os.path.lexists(path):
            _write_new(path, work.root, work.content)
            return path
    raise SessionMemoryError(
        f"{name}.rescued-{work.id} already exists",
        "move it away, then run session-memory rescue again",
    )


def _write_new(path: str, root: str, content: bytes) -> None:
    """Write a new file below a root, and refuse a path that a link leads out of it.

    Raises SessionMemoryError, OSError."""
    directory = os.path.dirname(path)
    real, real_root = real_path(directory), real_path(root)
    if not f"{real}/".startswith(f"{real_root}/") or "/.git/" in f"{real[len(real_root) :]}/":
        raise SessionMemoryError(
            f"{path} was not restored, because a link leads out of {root}",
            "remove the link, or copy the diff",
        )
    os.makedirs(directory, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags, 0o666), "wb") as file:
        file.write(content)


def _put(texts: list[str], before: str, after: str) -> None:
    """Apply an edit to the texts of a file: replace `before`, '' if unknown, by `after`."""
    for place, text in enumerate(texts):
        if before and before in text:
            texts[place] = text.replace(before, after, 1)
            return
        lines, new = set(text.split("\n")), set(after.split("\n"))
        if not before and 2 * len(lines & new) > len(lines):  # the whole file once more
            texts[place] = after
            return
    if after.strip():
        texts.append(after)


def _lines(content: bytes) -> set[bytes]:
    """Return the lines that are not blank, without white space at their ends."""
    return {line for line in map(bytes.strip, content.split(b"\n")) if line}


def _is_lost(text: bytes, known: set[bytes]) -> bool:
    """Check if most lines of a text are not `known`.

    A formatter may have changed a few of the others."""
    lines = _lines(text)
    return 2 * len(lines - known) > len(lines)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _content(path: str) -> bytes:
    with suppress(OSError):
        return read_whole(path, LARGEST_FILE)
    return b""


def _writer(file: LostFile, works: Iterable[SessionWork]) -> tuple[SessionWork | None, str]:
    """Return the session's work that most likely produced a staged file, and the file's path.

    It is the work with the most texts in the file; None and '' if there is none."""
    best: tuple[int, SessionWork | None, str] = (0, None, "")
    for work in works:
        for path, texts in work.texts.items():
            wanted = [_encoded(text).strip() for text in texts]
            count = sum(len(text) >= LEAST_CHARACTERS and text in file.content for text in wanted)
            if count > best[0]:
                best = count, work, path
    return best[1], best[2]
