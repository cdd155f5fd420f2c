"""Writes an archive: streamed from the transcript, completely or not at all.

An archive never becomes shorter. The sessions of a host's groups are archived when they are
cleared.
"""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO

from ...common.system.files import Opened, make_private_dir, open_private, open_regular
from ...common.system.quick_json import decode_line
from ...common.text.format import one_line, shorten
from ...common.text.sanitize import for_people, shortened
from ...common.text.timestamps import epoch_seconds, iso_time
from ...sessions.runtimes.base import Runtime
from ...sessions.settings.compiled import Settings
from ...sessions.settings.host_layout import Group, Layout, held
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.entries import Entry
from ...sessions.transcripts.gate import Gate, describe
from ...sessions.transcripts.lines import first_line
from ...sessions.transcripts.mirror import hidden_by
from ...sessions.transcripts.pointers import SessionManager
from ...sessions.transcripts.reader import (
    FIRST_PROMPT_RANK,
    USER_RANK,
    TitleOwner,
    TranscriptReader,
    title_of,
)
from . import format
from ._archived import ArchivedEntries
from ._beginnings import ArchivedFamily, Beginnings
from ._folder import ArchivesLock
from .list import (
    KnownArchives,
    free_path,
    is_private_path,
    private_folder,
    private_folder_if_there,
    private_path,
    rule_of,
    settle,
)

LOCK_WAIT_SECONDS = 30.0
PROMPT_TITLE_CHARACTERS = 60
# The number of further directories that an archive's last line names besides the first.
DIRECTORIES_CHARACTERS = 4096
MOST_KIN = 8  # the number of transcripts with the same beginning that an archive's last line names
_CHUNK_BYTES = 1024 * 1024
_BODY = ".body"


class ArchiveSource:
    """The transcript to archive, and its session.

    `group` is the agent's group, '' without groups. `name` is the session's name in an agent home,
    or ''. `title` is a person's title for the conversation, '' for the transcript's own. `kin` are
    the ids and titles of sessions with the same beginning. `kin_hidden_by` has the directories and
    names by which a rule hides another session of these, if its mirror has them."""

    def __init__(
        self,
        session_id: str,
        path: str,
        runtime: Runtime,
        group: str = "",
        title: str = "",
        name: str = "",
    ) -> None:
        self.session_id = session_id
        self.path = path
        self.runtime = runtime
        self.group = group
        self.title = title
        self.name = name
        self.kin: list[list[str]] = []
        self.kin_hidden_by: list[list[str]] | bool = []


class WrittenArchive:
    """The result of writing an archive.

    It has the title, times in seconds since 1970 (None if unknown), and the first and last ids."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.title = ""
        self.is_named = False  # if a person gave the title
        self.cwd = ""
        self.messages = 0
        self.first: float | None = None
        self.last: float | None = None
        self.first_id = ""
        self.last_id = ""
        self._origins: dict[str, None] = {}
        self._directories: dict[str, None] = {}
        self._ids: set[int] = set()

    def add(self, entry: Entry, *, is_new_message: bool) -> None:
        """Count an entry that was written."""
        self.messages += is_new_message
        self.cwd = self.cwd or entry.cwd
        self._directories[entry.cwd] = None
        self._origins[entry.origin] = None
        self.first_id = self.first_id or entry.id
        self.last_id = entry.id or self.last_id
        self._ids.add(hash(entry.id))
        if entry.timestamp is not None:
            self.first = entry.timestamp if self.first is None else self.first
            self.last = max(entry.timestamp, self.last or entry.timestamp)

    def holds(self, facts: dict[str, Any]) -> bool:
        """Check if this transcript has the first and last entry of an archive, and so all of it.

        The archive is given by its facts."""
        return {hash(facts.get("first_id")), hash(facts.get("last_id"))} <= self._ids

    def facts(self, source: ArchiveSource) -> dict[str, Any]:
        """Return the content of the archive's last line (see `format.render_trailer`)."""
        others = [[session] for session in self._origins if session not in ("", source.session_id)]
        hidden = {
            "directories": self._other_directories(),
            "copied": source.kin + others[:MOST_KIN],
            "is_excluded": source.kin_hidden_by,
        }
        return {
            "session": source.session_id,
            "runtime": source.runtime.name,
            "group": source.group,
            "name": source.name,
            "title": self.title,
            "is_named": bool(source.title),
            "cwd": for_people(self.cwd),
            "first": "" if self.first is None else iso_time(self.first),
            "last": "" if self.last is None else iso_time(self.last),
            "messages": self.messages,
            "first_id": self.first_id,
            "last_id": self.last_id,
            **{key: value for key, value in hidden.items() if value},
        }

    def _other_directories(self) -> list[str]:
        """Return the session's other directories, as far as the archive's last line has room."""
        directories, room = [], DIRECTORIES_CHARACTERS
        for directory in map(for_people, self._directories):
            room -= len(directory)
            if directory not in ("", for_people(self.cwd)) and room >= 0:
                directories.append(directory)
        return directories


def archive_transcript(
    source: ArchiveSource,
    directory: str,
    settings: Settings,
    now: float,
    *,
    privacy: Privacy | None = None,
    known: KnownArchives | None = None,
) -> str | None:
    """Archive a conversation in `directory`, or in the private folder beside it.

    The rules of `privacy` decide. Return the archive's path, None if the transcript is missing or
    empty. Forgotten entries are omitted. `known` is for callers that archive many sessions. Raises
    OSError, LockedError."""
    if not os.path.lexists(source.path):  # sessions without a transcript, or without a message yet
        return None
    style = format.ArchiveStyle(
        settings.assistant_name,
        settings.archive_message_characters,
        settings.archive_tools,
        settings.archive_times,
    )
    return write_archive(source, directory, style, now, privacy, known)


def write_archive(
    source: ArchiveSource,
    directory: str,
    style: format.ArchiveStyle,
    now: float,
    privacy: Privacy | None = None,
    known: KnownArchives | None = None,
) -> str | None:
    """Write or update the archive of a session in `directory`, and return its path.

    Return None without any message. If its mirror shows that a rule hides the session, the
    archive stays as it is, in the private folder. A session has one archive, which is renamed with
    it. The archive keeps messages that a truncated or replaced transcript has lost. `now` is in seconds
    since 1970. Raises OSError, and LockedError if another process writes for a long time."""
    make_private_dir(directory)
    with ExitStack() as stack:
        held = ArchivesLock(directory, LOCK_WAIT_SECONDS)
        stack.callback(held.close)
        update = _ArchiveUpdate(source, directory, known or KnownArchives(), held, stack)
        return update.hide() if hidden_by(source.path) else update.write(style, now, privacy)


class _ArchiveUpdate:
    """A session's earlier archive, if any, and its replacement by the new archive.

    `stack` keeps the private folder open."""

    def __init__(
        self,
        source: ArchiveSource,
        directory: str,
        known: KnownArchives,
        held: ArchivesLock,
        stack: ExitStack,
    ) -> None:
        self._source = source
        self._directory = directory
        self._stack = stack
        self._known = known
        self._held = held
        self._private = stack.enter_context(private_folder_if_there(directory))
        before = known.find(directory, source.session_id, held.token) or (
            self._private and known.find(self._private, source.session_id, held.token)
        )
        self._path, self._facts = before or ("", {})

    def write(self, style: format.ArchiveStyle, now: float, privacy: Privacy | None) -> str | None:
        """Write the archive; return its path, or None without messages."""
        self._keep_names()
        source = self._source
        beginnings = self._known.beginnings
        judged = _Judged(source, privacy, beginnings) if privacy is not None else None
        # no word is written in the open folder, not even for a moment
        is_private = judged is not None and judged.has_rules
        folder = self._private_folder() if is_private else self._directory
        temporary = f"{folder}/.{source.session_id}.tmp"
        gate = judged.gate if judged is not None else None
        try:
            written = self._write_whole(temporary, style, now, gate)
            if self._has_more_than(written):
                written = _write_appended(source, temporary, style, self._path, self._facts, gate)
            if not written.messages:
                return self._named(self._path) if self._path else None
            is_hidden = judged is not None and judged.is_private(written)
            return self._replace(temporary, written, is_private=is_hidden)
        finally:
            self._remove(temporary, temporary + _BODY)

    def hide(self) -> str | None:
        """Move the archive to the private folder; return its path, if any.

        Its last line then says by what the session is hidden."""
        if not self._path:
            return None
        hidden = hidden_by(self._source.path)
        if self._facts.get("is_excluded") == hidden:
            return self._named(self._path)
        folder = self._private_folder()
        temporary = f"{folder}/.{self._source.session_id}.tmp"
        try:
            with self._changing():
                file = _create(temporary)
            with file, os.fdopen(open_regular(self._path), "rb") as archive:
                _copy_without_trailer(archive, file)
                trailer = format.render_trailer({**self._facts, "is_excluded": hidden})
                file.write(trailer.encode())
            is_there = os.path.dirname(self._path) == folder
            stem = os.path.basename(self._path).removesuffix(".md")
            return self._put(temporary, self._path if is_there else free_path(f"{folder}/{stem}"))
        finally:
            self._remove(temporary)

    def _write_whole(
        self, path: str, style: format.ArchiveStyle, now: float, gate: Gate | None
    ) -> WrittenArchive:
        """Write the whole transcript to `path`. Raises OSError."""
        source = self._source
        # Open neither a second time: somebody with write access to the directory could have
        # replaced it with a symlink meanwhile.
        with ExitStack() as files:
            with self._changing():
                messages = files.enter_context(_create(path + _BODY))
                file = files.enter_context(_create(path))
            written = _write_messages(source, messages, style, lambda entry: True, gate)
            messages.seek(0)
            file.write(format.render_header(written.title, now).encode())
            _copy(messages, file)
            file.write(format.render_trailer(written.facts(source)).encode())
        return written

    def _changing(self) -> AbstractContextManager[None]:
        """Return a context for a short change, so only others' changes make the run list again."""
        folders = filter(None, (self._directory, self._private))
        return self._known.changing(self._held, *folders)

    def _keep_names(self) -> None:
        """Keep names that a person gave, until the session gets new ones."""
        source, facts = self._source, self._facts
        source.name = source.name or facts.get("name", "")
        if not source.title and facts.get("is_named"):
            source.title = facts.get("title", "")

    def _private_folder(self) -> str:
        if not self._private:
            self._private = self._stack.enter_context(private_folder(self._directory, make=True))
        return self._private

    def _has_more_than(self, written: WrittenArchive) -> bool:
        """Check if the earlier archive has messages that the transcript no longer has."""
        if not written.messages or not self._facts:
            return False
        return not (written.holds(self._facts) or _still_holds(self._source, self._facts))

    def _replace(self, temporary: str, written: WrittenArchive, *, is_private: bool) -> str:
        """Replace the earlier archive with the new one, under its current title."""
        folder = self._private_folder() if is_private else self._directory
        slug = format.slug(written.title)
        is_renamed = written.is_named and slug != format.slug(self._facts.get("title", ""))
        target = self._path
        if os.path.dirname(self._path) != folder or is_renamed:
            date = time.strftime("%Y-%m-%d", time.localtime(written.first))
            target = free_path(f"{folder}/{date}-{slug or written.session_id[:8]}")
        return self._put(temporary, target)

    def _put(self, temporary: str, target: str) -> str:
        """Replace the earlier archive with a file, at the path `target`."""
        with self._changing():
            if target != self._path:
                self._held.change_token()
                self._known.move(self._path, target, self._source.session_id)
            if self._path and target != self._path:
                os.rename(self._path, target)
            os.replace(temporary, target)
        return self._named(target)

    def _named(self, path: str) -> str:
        """Return the path by which other processes find an archive of the private folder too."""
        if os.path.dirname(path) == self._directory:
            return path
        return private_path(self._directory, os.path.basename(path))

    def _remove(self, *paths: str) -> None:
        with self._changing():
            for path in paths:
                if os.path.lexists(path):
                    os.unlink(path)


class _Judged:
    """A transcript after the gate's judgement, ready for archiving. Raises OSError."""

    def __init__(self, source: ArchiveSource, privacy: Privacy, beginnings: Beginnings) -> None:
        described = describe(source.runtime, source.path, privacy)
        path = os.path.abspath(source.path)
        self._source = source
        self._privacy = privacy
        names = {path: [name for name in (source.name, source.title) if name]}
        self._family = ArchivedFamily(privacy, source.runtime, path, names, beginnings)
        self._kin = self._family.kin(path, described.first_id, described.is_compacted)
        self.has_rules = privacy.has_rules(described.start)
        self.gate = self._family.gate(path, described)
        source.kin = [self._named(path) for path in self._kin[:MOST_KIN]]
        if self.has_rules:
            hiding = [by for path in self._kin if (by := hidden_by(path))]
            source.kin_hidden_by = hiding[0] if hiding else []

    def _named(self, path: str) -> list[str]:
        """Return the id and title of the session with this transcript.

        Return only the id if the title may quote a forgotten message."""
        described = describe(self._source.runtime, path)
        gate = self._family.gate(path, described)
        session_id = self._source.runtime.session_id_of(path)
        return [session_id] if gate.hides_forgotten else [session_id, described.title]

    def is_private(self, written: WrittenArchive) -> bool:
        """Return whether an archive belongs in the private folder.

        It does if any part of it is hidden."""
        is_hidden = (
            any(self._family.rule_of_path(path).is_private for path in self._kin)
            if self.has_rules
            else False
        )
        return is_hidden or rule_of(written.facts(self._source), self._privacy).is_private


def _still_holds(source: ArchiveSource, facts: dict[str, Any]) -> bool:
    """Check if the transcript still has the first and last entry of an archive.

    The archive is given by its facts. These entries may have no text now, such as tool uses of an
    archive in another style. Raises OSError."""
    wanted = {facts.get("first_id"), facts.get("last_id")}
    with Opened(source.path) as descriptor:
        entries = _reader(source, descriptor).conversation(descriptor)
        return wanted == {entry.id for entry in entries if entry is not None and entry.id in wanted}


def _write_appended(
    source: ArchiveSource,
    path: str,
    style: format.ArchiveStyle,
    archive: str,
    facts: dict[str, Any],
    gate: Gate | None,
) -> WrittenArchive:
    """Write `archive` to `path`, followed by the messages that only the transcript has."""
    last = epoch_seconds(facts.get("last")) or 0.0
    with _create(path) as file, os.fdopen(open_regular(archive), "rb") as old:
        _copy_without_trailer(old, file)
        file.seek(0)
        known = ArchivedEntries(format.messages_in(file.read().decode("utf-8", "replace")), last)
        written = _write_messages(source, file, style, lambda entry: not known.has(entry), gate)
        if written.messages:
            written.messages += facts.get("messages", 0)
            written.cwd, written.first_id = facts.get("cwd", ""), facts.get("first_id", "")
            written.first = epoch_seconds(facts.get("first"))
            written.last = max(last, written.last or last)
            file.write(format.render_trailer(written.facts(source)).encode())
    return written


def _write_messages(
    source: ArchiveSource,
    file: BinaryIO,
    style: format.ArchiveStyle,
    is_new: Callable[[Entry], bool],
    gate: Gate | None,
) -> WrittenArchive:
    """Write the messages, only of entries that are new."""
    written = WrittenArchive(source.session_id)
    with Opened(source.path) as descriptor:
        reader = _reader(source, descriptor)
        conversation = reader.conversation(descriptor, with_tools=style.with_tools)
        entries = format.RememberedEntries(conversation, gate)
        prompt = ""
        for batch in format.batches(entries, is_new):
            for message in batch:
                for index, entry in enumerate(message):
                    written.add(entry, is_new_message=index == 0)
            said = format.said_in(batch, style)
            prompt = prompt or next(
                (message.text for message in said if message.speaker in format.ASKING), ""
            )
            file.write(format.rendered(said, style).encode("utf-8", "replace"))
    rank, title = reader.title
    written.is_named = bool(source.title) or rank >= USER_RANK
    is_hidden = entries.has_forgotten and (gate is None or not gate.title((rank, title), "")[1])
    if rank <= FIRST_PROMPT_RANK or not title or is_hidden:
        title = shorten(
            one_line(title_of(prompt)), PROMPT_TITLE_CHARACTERS
        )  # already redacted: the cut cannot split a secret
    written.title = shortened(source.title or title, format.TITLE_CHARACTERS) or "Conversation"
    return written


def _reader(source: ArchiveSource, descriptor: int) -> TranscriptReader:
    owner = TitleOwner(source.session_id, descriptor)
    return TranscriptReader(source.runtime, first_line(descriptor), decode_line, owner=owner)


def _create(path: str) -> BinaryIO:
    return os.fdopen(open_private(path, os.O_RDWR | os.O_TRUNC), "w+b", buffering=_CHUNK_BYTES)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    while block := source.read(_CHUNK_BYTES):
        target.write(block)


def _copy_without_trailer(archive: BinaryIO, target: BinaryIO) -> None:
    _copy(archive, target)
    size = target.tell()
    target.seek(max(0, size - format.TRAILER_BYTES))
    target.seek(size - format.trailer_bytes(target.read()))
    target.truncate()


def open_sessions(layout: Layout, now: Callable[[], float] = time.time) -> SessionManager:
    """Return the pointers to the sessions of a host's groups. Raises DatabaseError."""

    def archive(group: str, session_id: str, title: str) -> str | None:
        return archive_group_session(layout.group(group), session_id, now(), title)

    return SessionManager(layout.database, layout.group, archive, now)


def archive_group_session(group: Group, session_id: str, now: float, title: str = "") -> str | None:
    """Write or update the archive of a group's session, under `title` if given; return its path.

    Return None if there is nothing to archive. `now` is in seconds since 1970. Symlinks that the
    agent may have made are not followed. Raises SessionMemoryError, OSError."""
    privacy = Privacy(os.environ, group.memory_home)
    with held(group) as place:
        settle(place.conversations_dir, privacy)
        source = ArchiveSource(
            session_id, place.transcript(session_id), group.runtime, group.name, title
        )
        archive = archive_transcript(
            source, place.conversations_dir, group.settings(), now, privacy=privacy
        )
    if archive and is_private_path(archive):
        return private_path(group.conversations_dir, os.path.basename(archive))
    return archive and f"{group.conversations_dir}/{os.path.basename(archive)}"
