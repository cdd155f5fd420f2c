"""`session-memory forget`: deletes sessions, a project's sessions, or old ones for good.

A preview comes first."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ...common.errors import SessionMemoryError
from ...common.system.files import Opened
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted
from ...common.text.timestamps import epoch_seconds, now_milliseconds
from ...history.archives.list import list_archives, private_path
from ...history.copies.keep import kept_of
from ...history.copies.pack import KeptSession
from ...history.marks import SessionKey
from ...history.store.ingest.values import FileState
from ...history.store.location import Archives, StoreLocation
from ...history.store.rules import ReadRules
from ...history.store.values import Conversation, Filter
from ...memory.library import open_index
from ...memory.memory_index import MemoryFilter
from ...sessions.confined_files import OutsideGroupError, pinned
from ...sessions.runtimes.detection import is_started_by_agent, runtime_of
from ...sessions.settings import forgotten
from ...sessions.settings.rules import covers
from ...sessions.transcripts import mirror
from ..upkeep import forget_journal
from ._picker import picked_session
from .arguments import (
    NO_LIMIT,
    OnlyForPeopleError,
    add_common,
    add_project_directory,
    point_in_time,
)
from .opened_store import OpenStore, check_names, line_of, refresh, sessions_called, with_store

SUMMARY = "delete sessions for good: from store, memories and archives"
SHOWN = 10
KnownFiles = Mapping[tuple[str, str], FileState]  # by group and path


class Forks(NamedTuple):
    """Copies of the selection in other sessions, such as forks.

    `archives` are rewritten; they are tuples of (path, session id, transcript, group). `mirrors`
    are our own copies. `names` are these sessions' names by group; their titles are removed from
    other sessions' state."""

    archives: list[tuple[str, str, str, str]]
    mirrors: list[str]
    names: dict[str, set[str]]


class Chosen(NamedTuple):
    """The selection to forget.

    `until` has the time up to which each session is forgotten, by group and session. `archives` are
    paths, `rewritten` the archives of sessions that continued, as (path, session id, transcript,
    group). `ended` are the sessions of which no conversation is left. `transcripts` are paths,
    `whole` those that are forgotten completely, `copies` our mirrors of them. `names` are the
    sessions' ids and names by group, `kept` their kept transcripts, `forks` the copies in other
    sessions."""

    conversations: list[Conversation]
    until: dict[tuple[str, str], int]
    memories: dict[str, list[str]]
    archives: list[str]
    rewritten: list[tuple[str, str, str, str]]
    ended: list[SessionKey]
    transcripts: list[str]
    whole: list[str]
    copies: list[str]
    names: dict[str, set[str]]
    kept: list[KeptSession]
    forks: Forks


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        default="",
        help="its id, the beginning of it, or the name of an agent's session",
    )
    add_project_directory(parser, "all sessions started in this directory or below")
    parser.add_argument(
        "--before",
        metavar="WHEN",
        type=point_in_time,
        help="only conversations that ended before this time",
    )
    parser.add_argument(
        "--transcripts", action="store_true", help="also delete the runtime's own transcripts"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--dry-run", action="store_true", help="list the deletions without deleting anything"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Forget the selection after confirmation. Raises SessionMemoryError, OSError."""
    if not (arguments.session or arguments.project or arguments.before):
        hint = "name a session, --project P or --before WHEN"
        question = "Which session do you want to forget? A number or an id:"
        arguments.session = picked_session(arguments, hint, question)
    if arguments.transcripts and (
        is_started_by_agent(os.environ) or not Terminal(os.environ).can_ask()
    ):
        raise OnlyForPeopleError("--transcripts")
    return with_store(arguments, lambda opened: _forget(opened, arguments), writes=True)


def _forget(opened: OpenStore, arguments: argparse.Namespace) -> int:
    directories = arguments.project.paths if arguments.project else ()
    now = now_milliseconds()
    if not arguments.dry_run:
        _finish_earlier(opened)
    refresh(opened)
    chosen = _chosen(opened, arguments.session, directories, arguments.before, now)
    if not chosen.conversations and not directories:
        _refuse(opened, arguments.session)
    preview = ForgetPreview(chosen, _visible(opened, chosen))
    if arguments.dry_run:
        opened.terminal.show(preview)
        return 0
    if not arguments.yes:
        preview.show(opened.terminal)
        if not (opened.terminal.can_ask() and opened.terminal.ask("Delete it?")):
            raise SessionMemoryError("nothing was forgotten", "--yes forgets without asking")
    tombstones = []
    if arguments.before is None and not arguments.session:
        tombstones = [
            forgotten.directory_tombstone(home_name, directory, now)
            for home_name in opened.location.home_names
            for directory in directories
        ]
    unfinished = _delete(opened, chosen, tombstones)
    deleted = (
        _delete_transcripts(opened, chosen.whole, is_asked=arguments.transcripts)
        if chosen.whole
        else []
    )
    left = [path for path in chosen.transcripts if path not in deleted]
    chosen = chosen._replace(transcripts=left)
    for problem in unfinished:
        opened.note(f"{problem}; the next upkeep, ingest or forget tries again")
    opened.terminal.show(ForgottenSelection(chosen, _visible(opened, chosen), unfinished))
    return int(bool(unfinished))


def amounts_of(opened: OpenStore, sessions: Collection[str]) -> Amounts:
    """Return the amounts that `forget_sessions` would delete."""
    refresh(opened)
    return _amounts(_fitting(opened, Criteria(sessions, (), None), now_milliseconds()))


def forget_sessions(opened: OpenStore, sessions: Collection[str]) -> None:
    """Forget the sessions with these ids, but not the runtimes' own transcripts.

    Raises SessionMemoryError if a step failed, which is then tried again by the next upkeep."""
    now = now_milliseconds()
    _finish_earlier(opened)
    refresh(opened)
    chosen = _fitting(opened, Criteria(sessions, (), None), now)
    if unfinished := _delete(opened, chosen, []):
        raise SessionMemoryError("; ".join(unfinished), "the next upkeep or ingest tries again")


def _delete(opened: OpenStore, chosen: Chosen, tombstones: list[forgotten.Tombstone]) -> list[str]:
    """Delete the selection, with tombstones also of directories; return the problems."""
    names = opened.location.home_names
    tombstones = [
        *(forgotten.session_tombstone(*who, until) for who, until in chosen.until.items()),
        *tombstones,
    ]
    forget_journal.begin(opened.location, _journal(chosen, names, tombstones))
    return forget_journal.finish(opened.location, opened.store, opened.note)


def _finish_earlier(opened: OpenStore) -> None:
    if not forgotten.is_unfinished(opened.location.database):
        return
    opened.note("finishing an earlier forget that was interrupted")
    for problem in forget_journal.finish(opened.location, opened.store, opened.note):
        opened.note(problem)


def _refuse(opened: OpenStore, session: str) -> NoReturn:
    """Raise SessionMemoryError with a hint about the name to use instead of `session`."""
    if titled := sessions_called(opened, session) if session else []:
        hint = f"did you mean this session?\n  {line_of(titled[0])}"
        raise SessionMemoryError(f"forget needs a session id, and {session!r} is not one", hint)
    check_names(opened, Filter(session=session))
    raise SessionMemoryError("nothing matches", "session-memory sessions --all lists them")


def _journal(
    chosen: Chosen, home_names: Sequence[str], tombstones: list[forgotten.Tombstone]
) -> dict[str, Any]:
    """Return the steps that forget the selection, for the journal."""
    conversations = [(each.id, each.home, each.session_id) for each in chosen.conversations]
    return {
        "messages": {"conversations": conversations, "transcripts": _with_times(chosen)},
        "tombstones": tombstones,
        "memories": {home_name: chosen.memories.get(home_name, []) for home_name in home_names},
        "archives": chosen.archives,
        "rewritten": [*chosen.rewritten, *chosen.forks.archives],
        "conversations": conversations,
        "kept": [(copy.home, copy.session_id) for copy in chosen.kept],
        "copies": [*chosen.copies, *chosen.forks.mirrors],
        "cursors": {home_name: sorted(names) for home_name, names in chosen.names.items()},
        "marks": chosen.ended,
        "titles": {home_name: sorted(names) for home_name, names in chosen.forks.names.items()},
        "graph": [(*who, until) for who, until in chosen.until.items()],
        "team": {"sessions": list(chosen.until), "memories": chosen.memories},
        "set_aside": True,
        "free_pages": True,
    }


def _with_times(chosen: Chosen) -> list[tuple[str, str, int]]:
    """Return the transcripts of the selection.

    Each is (path, group, the time up to which the session is forgotten)."""
    sessions = {(each.home, each.session_id): each.source_file for each in chosen.conversations}
    paths = [*chosen.transcripts, *chosen.copies]
    return [
        (path, who[0], until)
        for who, until in chosen.until.items()
        for path in paths
        if path.endswith(f"/{sessions[who]}")
    ]


def _delete_transcripts(opened: OpenStore, paths: list[str], *, is_asked: bool) -> list[str]:
    """Delete a runtime's transcripts and their sub-agents', if a person at a terminal agrees.

    Return the paths of the deleted ones."""
    terminal, deleted = opened.terminal, []
    if not is_asked:
        if is_started_by_agent(os.environ) or not terminal.can_ask():
            return []
        terminal.line(
            f"The runtime still has {counted(len(paths), 'transcript')} of these sessions:"
        )
        for path in paths[:SHOWN]:
            terminal.line(f"  {terminal.short(path)}")
        if not terminal.ask("Delete them too?"):
            return []
    for path in paths:
        folder = path.removesuffix(".jsonl") + "/"
        try:
            with Opened(path) as descriptor:
                runtime = runtime_of(descriptor)
            for transcript in (*(runtime.sub_agents(path) if runtime else ()), path):
                if transcript == path or transcript.startswith(folder):
                    os.unlink(transcript)
            deleted.append(path)
        except OSError as error:
            opened.note(
                f"{terminal.short(path)}: it could not be deleted: {error.strerror or error}"
            )
    terminal.line(f"Deleted: {counted(len(deleted), 'transcript')}.")
    return deleted


class Criteria(NamedTuple):
    """Conditions for the conversations to forget; all of them must apply.

    They are the session ids (None for any), the directories of the project (empty for any), and the
    time before which the conversation ended (None for any)."""

    sessions: Collection[str] | None
    directories: Sequence[str]
    before: int | None

    def fits(self, conversation: Conversation) -> bool:
        """Check if a conversation meets all conditions."""
        return (
            (self.sessions is None or conversation.session_id in self.sessions)
            and (self.before is None or (conversation.last_message_at or 0) < self.before)
            and (not self.directories or _is_in(self.directories, conversation.cwd))
        )

    @property
    def whole_directories(self) -> Sequence[str]:
        """The directories that are forgotten with everything in them."""
        return self.directories if self.before is None and self.sessions is None else ()


def _chosen(
    opened: OpenStore, session: str, directories: Sequence[str], before: int | None, now: int
) -> Chosen:
    """Return the selection that fits all given conditions."""
    named = None
    if session:
        every, files = opened.store.all_conversations(), _files_of(opened)
        named = [_named(opened, every, files, opened.location.rules(), session)]
    return _fitting(opened, Criteria(named, directories, before), now)


def _files_of(opened: OpenStore) -> KnownFiles:
    states = opened.location.known_files(opened.store)
    return {(state.home, state.file_path): state for state in states}


def _fitting(opened: OpenStore, criteria: Criteria, now: int) -> Chosen:
    """Return the selection that fits the criteria."""
    location, before = opened.location, criteria.before
    files, every = _files_of(opened), opened.store.all_conversations()
    wanted = [conversation for conversation in every if criteria.fits(conversation)]
    until = _until(wanted, now if before is None else 0)
    archives, rewritten = _chosen_archives(location, until, _transcripts_of(wanted, files))
    transcripts, whole, copies = _transcripts_here(wanted, every, files)
    chosen = Chosen(
        conversations=wanted,
        until=until,
        memories=_memories(opened, until),
        archives=archives,
        rewritten=rewritten,
        ended=_ended(wanted, every),
        transcripts=transcripts,
        whole=whole,
        copies=copies,
        names=_names_of(wanted, files, location.rules()),
        kept=_kept_transcripts(location, until, criteria.whole_directories),
        forks=Forks([], [], {}),
    )
    return _with_forks(opened, chosen, files)


def _is_in(directories: Iterable[str], cwd: str) -> bool:
    """Check if a session was started in one of the directories or below."""
    return any(covers(directory, cwd) for directory in directories)


def _transcripts_of(wanted: Iterable[Conversation], files: KnownFiles) -> dict[SessionKey, str]:
    """Return the path of each session's transcript."""
    return {
        (each.home, each.session_id): _path_of(files[each.home, each.source_file])
        for each in wanted
    }


def _path_of(state: FileState) -> str:
    return f"{state.root}/{state.file_path}"


def _names_of(
    wanted: Iterable[Conversation], files: KnownFiles, rules: ReadRules
) -> dict[str, set[str]]:
    """Return the ids and names of the sessions, by group."""
    names: dict[str, set[str]] = {}
    for home, file in dict.fromkeys((each.home, each.source_file) for each in wanted):
        state = files[home, file]
        names.setdefault(home, set()).update((state.session_id, *rules.names(state.subject)))
    return names


def _kept_transcripts(
    location: StoreLocation, until: Mapping[SessionKey, int], directories: Sequence[str]
) -> list[KeptSession]:
    """Return the kept transcripts of these sessions, and all that belong to these directories."""
    return kept_of(
        location,
        lambda copy: (copy.home, copy.session_id) in until or _is_in(directories, copy.cwd),
    )


def _transcripts_here(
    wanted: Sequence[Conversation], every: Iterable[Conversation], files: KnownFiles
) -> tuple[list[str], list[str], list[str]]:
    """Return the existing transcripts, those forgotten completely, and our mirrors."""
    ids = {conversation.id for conversation in wanted}
    shared = {(each.home, each.source_file) for each in every if each.id not in ids}
    keys = dict.fromkeys((each.home, each.source_file) for each in wanted)
    is_whole = {_path_of(files[key]): key not in shared for key in keys}
    present = [path for path in is_whole if path.endswith(".jsonl") and os.path.exists(path)]
    copies = [path for path in present if mirror.is_mirror(path)]
    transcripts = [path for path in present if path not in copies]
    return transcripts, [path for path in transcripts if is_whole[path]], copies


def _ended(wanted: Iterable[Conversation], every: Iterable[Conversation]) -> list[SessionKey]:
    """Return the wanted sessions that have no other conversations."""
    ids = {conversation.id for conversation in wanted}
    continued = {(each.home, each.session_id) for each in every if each.id not in ids}
    return [
        who
        for who in dict.fromkeys((each.home, each.session_id) for each in wanted)
        if who not in continued
    ]


def _until(conversations: Iterable[Conversation], least: int) -> dict[tuple[str, str], int]:
    """Return the time up to which each conversation's session is forgotten, `least` or later."""
    until: dict[tuple[str, str], int] = {}
    for each in conversations:
        who = each.home, each.session_id
        until[who] = max(until.get(who, least), each.last_message_at or 0)
    return until


def _chosen_archives(
    location: StoreLocation,
    until: Mapping[tuple[str, str], int],
    transcript_of: Mapping[tuple[str, str], str],
) -> tuple[list[str], list[tuple[str, str, str, str]]]:
    """Return the archives to delete, and those to rewrite from the session's transcript."""
    archives: list[str] = []
    rewritten: list[tuple[str, str, str, str]] = []
    for archived in location.archives:
        for path, id, is_whole in _archives(archived, until):
            if is_whole:
                archives.append(path)
            elif (archived.home, id) in transcript_of:
                rewritten.append((path, id, transcript_of[archived.home, id], archived.home))
    return archives, rewritten


def _with_forks(opened: OpenStore, chosen: Chosen, files: KnownFiles) -> Chosen:
    """Return the selection together with its copies in other sessions."""
    location, rules = opened.location, opened.location.rules()
    until: dict[tuple[str, str], int] = {}
    transcripts: dict[tuple[str, str], str] = {}
    forks = Forks([], [], {})
    for fork, copied_at in opened.store.conversations_with_copies(chosen.conversations):
        who, state = (fork.home, fork.session_id), files[fork.home, fork.source_file]
        if who not in chosen.until:
            until[who] = max(until.get(who, 0), copied_at)
            transcripts[who] = f"{state.root}/{fork.source_file}"
            forks.names.setdefault(fork.home, set()).update(
                (fork.session_id, *rules.names(state.subject))
            )
    if not until:
        return chosen
    forks.mirrors.extend([path for path in transcripts.values() if mirror.is_mirror(path)])
    for archived in location.archives:
        for path, id, _ in _archives(archived, {who: 0 for who in until}):
            forks.archives.append((path, id, transcripts[archived.home, id], archived.home))
    memories = _memories(opened, until)
    both = {
        home_name: [*chosen.memories.get(home_name, ()), *ids]
        for home_name, ids in memories.items()
    }
    packed = kept_of(location, lambda session: (session.home, session.session_id) in until)
    return chosen._replace(
        memories={**chosen.memories, **both}, kept=[*chosen.kept, *packed], forks=forks
    )


def _named(
    opened: OpenStore,
    every: Iterable[Conversation],
    files: KnownFiles,
    rules: ReadRules,
    session: str,
) -> str:
    """Return the session id for an id, its beginning or a session's name; '' if there is none.

    Titles are not accepted, because a deletion must name its session unambiguously. Raises
    SessionMemoryError if several sessions match."""
    by_id: dict[str, Conversation] = {}
    by_name: dict[str, Conversation] = {}
    for conversation in every:
        if conversation.session_id == session:
            return session
        state = files.get((conversation.home, conversation.source_file))
        if conversation.session_id.startswith(session):
            by_id[conversation.session_id] = conversation
        elif state and session in rules.names(state.subject):
            by_name[conversation.session_id] = conversation
    by_session = by_name or by_id
    if len(by_session) > 1:
        shown = [
            f"  {line_of(conversation)}"
            for conversation in _shown(opened, by_session.values())[-SHOWN:]
        ]
        hint = "\n".join(["give the whole id of one:", *shown])
        raise SessionMemoryError(f"{counted(len(by_session), 'session')} match {session!r}", hint)
    return next(iter(by_session), "")


def _shown(opened: OpenStore, conversations: Iterable[Conversation]) -> list[Conversation]:
    """Return the conversations that the caller may see; an agent may see no excluded ones."""
    if not is_started_by_agent(os.environ):
        return list(conversations)
    visible = {
        conversation.id for conversation in opened.store.conversations(Filter(limit=NO_LIMIT))
    }
    return [conversation for conversation in conversations if conversation.id in visible]


def _visible(opened: OpenStore, chosen: Chosen) -> Chosen:
    shown = _shown(opened, chosen.conversations)
    if len(shown) == len(chosen.conversations):
        return chosen
    files = tuple(f"/{conversation.source_file}" for conversation in shown)
    transcripts = [path for path in chosen.transcripts if path.endswith(files)]
    copies = [path for path in chosen.copies if path.endswith(files)]
    hidden: dict[str, Any] = {"memories": {}, "archives": [], "rewritten": []}
    return chosen._replace(conversations=shown, transcripts=transcripts, copies=copies, **hidden)


def _memories(opened: OpenStore, until: dict[tuple[str, str], int]) -> dict[str, list[str]]:
    """Return the ids of the memories made from the selection, by group."""
    ids_by_home: dict[str, list[str]] = {}
    with open_index(opened.location, opened.note) as index:
        every = index.memories(MemoryFilter(with_superseded=True, with_excluded=True))
    for memory in every:
        if any(
            (at or 0) <= until.get((memory.home, session), -1) for at, session, *_ in memory.origins
        ):
            ids_by_home.setdefault(memory.home, []).append(memory.id)
    return ids_by_home


def _archives(
    archives: Archives, until: Mapping[tuple[str, str], int]
) -> Iterator[tuple[str, str, bool]]:
    """Yield the archives of the selection.

    Private archives and those in subfolders are included. Each has its path, its session, and
    whether all of it is forgotten."""
    confined_to = archives.confined_to
    try:
        with (
            pinned(confined_to, archives.directory)
            if confined_to
            else nullcontext(archives.directory) as directory
        ):
            below = [
                folder.name
                for folder in os.scandir(directory)
                if folder.is_dir(follow_symlinks=False)
            ]
    except (OSError, OutsideGroupError):
        below = []
    folders = [archives.directory, *(f"{archives.directory}/{name}" for name in below)]
    for folder in [*folders, os.path.dirname(private_path(archives.directory, ""))]:
        for path, facts in list_archives(folder):
            end = until.get((archives.home, facts["session"]))
            if end is not None:
                yield (
                    path,
                    facts["session"],
                    (epoch_seconds(facts.get("last")) or 0.0) * 1000 <= end,
                )


@dataclass(frozen=True)
class Amounts:
    """The amounts of a selection."""

    conversations: int
    messages: int
    memories: int
    archives: int
    kept_transcripts: int

    def __str__(self) -> str:
        parts = [
            counted(self.conversations, "conversation"),
            counted(self.messages, "message"),
            counted(self.memories, "memory", "memories"),
            counted(self.archives, "archive"),
            *([counted(self.kept_transcripts, "kept transcript")] if self.kept_transcripts else []),
        ]
        return ", ".join(parts)


def _amounts(chosen: Chosen) -> Amounts:
    return Amounts(
        conversations=len(chosen.conversations),
        messages=sum(conversation.entry_count for conversation in chosen.conversations),
        memories=sum(map(len, chosen.memories.values())),
        archives=len(chosen.archives) + len(chosen.rewritten),
        kept_transcripts=len(chosen.kept),
    )


@dataclass(frozen=True)
class ForgetPreview(Result):
    """The selection to forget, and the part that the caller may see."""

    chosen: Chosen
    visible: Chosen

    def show(self, terminal: Terminal) -> None:
        by_session = {each.session_id: each for each in self.visible.conversations}
        shown = list(by_session.values())[-SHOWN:]
        more = len({each.session_id for each in self.chosen.conversations}) - len(shown)
        terminal.line(terminal.paint("bold", "This would be deleted for good:"))
        for session in shown:
            terminal.line(f"  {line_of(session)}")
        if more:
            terminal.line(f"  and {more} more")
        terminal.line(f"  {_amounts(self.chosen)}")
        _show_transcripts(self.visible, "stay: only you can delete them", terminal)

    def as_json(self) -> dict[str, Any]:
        return _as_json(self.chosen, self.visible, [])


@dataclass(frozen=True)
class ForgottenSelection(Result):
    """The forgotten selection, its visible part, and the problems that kept some of it."""

    chosen: Chosen
    visible: Chosen
    unfinished: list[str]

    def show(self, terminal: Terminal) -> None:
        how = "Forgotten only in part" if self.unfinished else "Forgotten"
        terminal.line(f"{how}: {_amounts(self.chosen)}.")
        _show_transcripts(
            self.visible, "stay; only what these sessions add later is stored again", terminal
        )

    def as_json(self) -> dict[str, Any]:
        return _as_json(self.chosen, self.visible, self.unfinished)


def _as_json(chosen: Chosen, seen: Chosen, unfinished: list[str]) -> dict[str, Any]:
    return {
        "conversations": [each.id for each in seen.conversations],
        "sessions": list(dict.fromkeys(each.session_id for each in seen.conversations)),
        "memories": [id for ids in seen.memories.values() for id in ids],
        "archives": seen.archives,
        "rewritten": [path for path, *_ in seen.rewritten],
        "transcripts": seen.transcripts,
        "kept_by_runtimes": len(seen.copies),
        "amounts": vars(_amounts(chosen)),
        "unfinished": unfinished,
    }


def _show_transcripts(seen: Chosen, what: str, terminal: Terminal) -> None:
    shown = seen.transcripts
    if seen.copies:
        sessions = counted(len(seen.copies), "session")
        terminal.line(
            f"The runtime's own copies of {sessions} stay too; only you can delete them there."
        )
    if shown:
        terminal.line(f"The runtime's own transcripts {what}:")
    for path in shown[:SHOWN]:
        terminal.line(f"  {terminal.short(path)}")
    if len(shown) > SHOWN:
        terminal.line(f"  and {len(shown) - SHOWN} more")
