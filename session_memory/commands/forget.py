"""`session-memory forget`: deletes sessions, a project's sessions, or old ones for good, after a preview."""

from __future__ import annotations

import os
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from ..activity.cursor_file import CursorFile
from ..archives.list import list_archives
from ..archives.privacy import private_path
from ..errors import SessionMemoryError, WrongCallError
from ..memories import forgotten as forgotten_memories
from ..memories.folders import folder_of, groups_of, strategies_directory
from ..memories.library import library_of, open_index
from ..runtimes.detection import is_started_by_agent, runtime_of
from ..settings import forgotten
from ..settings.confined_group import held_home
from ..settings.host_layout import Layout
from ..settings.rules import covers
from ..store.sqlite.memory_index import MemoryFilter
from ..store.values import Filter, RuleSubject
from ..system.confined_files import OutsideGroupError, pinned
from ..system.files import names_in
from ..system.terminal import Terminal
from ..text.format import counted
from ..text.timestamps import epoch_seconds
from ..transcripts import mirror
from .arguments import OnlyForPeopleError, add_common, point_in_time
from .nearest import check_names
from .opened_store import with_store
from .output import brief, moment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ..store.location import Archives
    from ..store.values import Conversation, FileState
    from .opened_store import OpenStore

SUMMARY = "delete sessions from store, memories and archives, for good"
SHOWN = 10
TITLE_CHARACTERS = 60


class ForgetError(SessionMemoryError):
    """Nothing was named that could be forgotten, or nobody agreed to it."""


class Chosen(NamedTuple):
    """The selection to forget: `until` is the time up to which, by group and session; `archives` and `transcripts` are
    paths; nothing is kept of those in `whole`. `names` are the ids and names of the sessions, by group."""

    conversations: list[Conversation]
    until: dict[tuple[str, str], int]
    memories: dict[str, list[str]]
    archives: list[str]
    transcripts: list[str]
    whole: list[str]
    names: dict[str, set[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session", metavar="SESSION", nargs="?", default="", help="its id, or how that begins, its title or its name"
    )
    parser.add_argument(
        "--project", metavar="P", default="", help="all that were started in this directory, or below it"
    )
    parser.add_argument("--before", metavar="WHEN", type=point_in_time, help="only conversations that ended before")
    parser.add_argument(
        "--transcripts", action="store_true", help="delete the runtime's own transcripts of it too, in a terminal"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Forget the selection after confirmation. Raises SessionMemoryError, OSError."""
    if not (arguments.session or arguments.project or arguments.before):
        raise WrongCallError("nothing was named", "name a session, --project P or --before WHEN")
    if arguments.transcripts and (is_started_by_agent(os.environ) or not Terminal(os.environ).can_ask()):
        raise OnlyForPeopleError("--transcripts")
    return with_store(arguments, lambda opened: _forget(opened, arguments), writes=True)


def _forget(opened: OpenStore, arguments: argparse.Namespace) -> int:
    project = os.path.abspath(os.path.expanduser(arguments.project)) if arguments.project else ""
    now = forgotten.now()
    chosen = _chosen(opened, arguments.session, project, arguments.before, now)
    if not chosen.conversations and not project:
        check_names(opened, Filter(opened.location.homes, session=arguments.session))
        raise ForgetError("nothing matches", "session-memory conversations lists them")
    if not arguments.yes:
        _preview(opened, chosen)
        if not (opened.terminal.can_ask() and opened.terminal.ask("Delete it?")):
            raise ForgetError("nothing was forgotten", "--yes forgets it without asking")
    groups = opened.location.homes or tuple(groups_of(opened.location))
    tombstones = [forgotten.session_tombstone(*who, until) for who, until in chosen.until.items()]
    if project and arguments.before is None and not arguments.session:
        tombstones += [forgotten.directory_tombstone(group, project, now) for group in groups]
    forgotten.add(opened.location.database, tombstones)  # first: after a crash here none of it comes back
    with open_index(opened.location, opened.note) as index:
        for group, ids in chosen.memories.items():
            library_of(opened.location, index, group).forget(ids)
    for group in groups:  # nor what was forgotten of it before
        forgotten_memories.write_undo(folder_of(opened.location, group), ())
    for path in chosen.archives:
        os.unlink(path)
    opened.store.forget_conversations(chosen.conversations)
    for path in chosen.whole:
        mirror.empty(path)
    _forget_in_cursors(opened, chosen.names)
    _forget_in_graph(opened, chosen.until)
    forget_in_team(opened, chosen.until.keys(), chosen.memories)
    own = [path for path in chosen.whole if not mirror.is_mirror(path)]
    deleted = _delete_transcripts(opened, own, is_asked=arguments.transcripts) if own else []
    _tell(opened, chosen._replace(transcripts=[path for path in chosen.transcripts if path not in deleted]))
    return 0


def _delete_transcripts(opened: OpenStore, paths: list[str], *, is_asked: bool) -> list[str]:
    """Delete transcripts of a runtime, and those of sub-agents beside them, if a person at a terminal wants that;
    return those that are gone."""
    terminal, deleted = opened.terminal, []
    if not is_asked:
        if is_started_by_agent(os.environ) or not terminal.can_ask():
            return []
        terminal.line(f"The runtime still has {counted(len(paths), 'transcript')} of it:")
        for path in paths[:SHOWN]:
            terminal.line(f"  {terminal.short(path)}")
        if not terminal.ask("Delete them too?"):
            return []
    for path in paths:
        try:
            for one in (*_sub_agents(path), path):
                os.unlink(one)
            deleted.append(path)
        except OSError as error:
            opened.note(f"{terminal.short(path)}: it could not be deleted: {error.strerror or error}")
    terminal.line(f"Deleted: {counted(len(deleted), 'transcript')}.")
    return deleted


def _sub_agents(path: str) -> list[str]:
    """Return the transcripts of sub-agents in the folder of a session."""
    with open(path, "rb") as file:
        runtime = runtime_of(file.fileno())
    folder = path.removesuffix(".jsonl") + "/"
    return [one for one in runtime.sub_agents(path) if one.startswith(folder)] if runtime else []


def _chosen(opened: OpenStore, session: str, project: str, before: int | None, now: int) -> Chosen:
    """Return the selection that fits all given conditions."""
    location = opened.location
    files = {
        (home, state.file_path): state
        for home in groups_of(location)
        for state in opened.store.file_states(home).values()
    }
    rules = location.rules.read()

    def is_named(one: Conversation) -> bool:
        state = files.get((one.home, one.source_file))
        names = [state.title, *rules.names(_judged(state))] if state else []
        return one.session_id.startswith(session) or session in names

    every = opened.store.all_conversations(location.homes)
    wanted = [
        one for one in every
        if (not session or is_named(one))
        and (before is None or (one.last_message_at or 0) < before)
        and (not project or covers(project, one.cwd))
    ]  # fmt: skip
    until: dict[tuple[str, str], int] = {}
    for one in wanted:
        who = one.home, one.session_id
        until[who] = max(until.get(who, 0), now if before is None else one.last_message_at or 0)
    ids = {one.id for one in wanted}
    kept = {(one.home, one.source_file) for one in every if one.id not in ids}
    keys = dict.fromkeys((one.home, one.source_file) for one in wanted)
    paths = {f"{files[key].root}/{key[1]}": key not in kept for key in keys}
    archives = [path for archived in location.archives for path in _archives(archived, until)]
    transcripts = [path for path in paths if path.endswith(".jsonl") and os.path.exists(path)]
    whole = [path for path in transcripts if paths[path]]
    names: dict[str, set[str]] = {home: set() for home, _ in until}
    for key in keys:
        names[key[0]].update((files[key].session_id, *rules.names(_judged(files[key]))))
    return Chosen(wanted, until, _memories(opened, until), archives, transcripts, whole, names)


def _judged(state: FileState) -> RuleSubject:
    return RuleSubject(state.id, state.home, state.session_id, state.title, state.cwd, state.file_path)


def _memories(opened: OpenStore, until: dict[tuple[str, str], int]) -> dict[str, list[str]]:
    """Return the ids of the memories made from the selection, by group."""
    found: dict[str, list[str]] = {}
    with open_index(opened.location, opened.note) as index:
        every = index.memories(MemoryFilter(opened.location.homes, with_superseded=True, with_excluded=True))
    for memory in every:
        if any((at or 0) <= until.get((memory.home, session), -1) for at, session, *_ in memory.origins):
            found.setdefault(memory.home, []).append(memory.id)
    return found


def _archives(archives: Archives, until: dict[tuple[str, str], int]) -> Iterator[str]:
    """Yield the archives of the selection, including private ones and those in subfolders; not of a session that has
    continued since."""
    confined_to = archives.confined_to
    try:
        with pinned(confined_to, archives.directory) if confined_to else nullcontext(archives.directory) as directory:
            below = [one.name for one in os.scandir(directory) if one.is_dir(follow_symlinks=False)]
    except (OSError, OutsideGroupError):
        below = []
    folders = [archives.directory, *(f"{archives.directory}/{name}" for name in below)]
    for folder in [*folders, os.path.dirname(private_path(archives.directory, ""))]:
        for path, facts in list_archives(folder):
            ended = (epoch_seconds(facts.get("last")) or 0.0) * 1000
            if ended <= until.get((archives.home, facts["session"]), -1):
                yield path


def _preview(opened: OpenStore, chosen: Chosen) -> None:
    terminal = opened.terminal
    sessions: dict[str, Conversation] = {one.session_id: one for one in chosen.conversations}
    terminal.line(terminal.paint("bold", "This would be deleted, for good:"))
    for one in list(sessions.values())[-SHOWN:]:
        terminal.line(f"  {one.session_id}  {moment(one.last_message_at)}  {brief(one.title, TITLE_CHARACTERS)}")
    if len(sessions) > SHOWN:
        terminal.line(f"  and {len(sessions) - SHOWN} more")
    terminal.line(f"  {_amounts(chosen)}")
    _tell_transcripts(opened, chosen.transcripts, "stay: only you can delete them")


def _amounts(chosen: Chosen) -> str:
    messages = sum(one.entry_count for one in chosen.conversations)
    memories = sum(map(len, chosen.memories.values()))
    parts = [
        counted(len(chosen.conversations), "conversation"), counted(messages, "message"),
        counted(memories, "memory", "memories"), counted(len(chosen.archives), "archive"),
    ]  # fmt: skip
    return ", ".join(parts)


def _forget_in_cursors(opened: OpenStore, names: Mapping[str, Collection[str]]) -> None:
    """Delete the titles of sessions, by group, from the cursors of those that were told of them."""
    for group, keys in names.items():
        layout = Layout(opened.location.home.root)
        held = held_home(layout.group(group)) if group else nullcontext(opened.location.home)
        try:
            with held as home:
                folder = os.path.dirname(home.cursor_file("x"))
                for name in names_in(folder):
                    if name.endswith(".json"):
                        with closing(CursorFile(f"{folder}/{name}")) as file:
                            file.forget_titles(keys)
        except FileNotFoundError:  # a group without transcripts
            continue
        except (SessionMemoryError, OSError) as error:
            opened.note(f"cursors keep titles of it until the next prompt: {error}")


def _forget_in_graph(opened: OpenStore, until: dict[tuple[str, str], int]) -> None:
    """Make the knowledge graph forget the selection, if there is one; on failure, report that it keeps it."""
    settings = opened.location.home.settings().memories.get("graphiti", {})
    embedded = f"{strategies_directory(opened.location)}/graphiti"
    if not settings.get("url") and not os.path.isdir(embedded):
        return
    from ..memories.strategies.graphiti.graphs import forget_in_graph

    try:
        for group in {home for home, _ in until}:
            forget_in_graph(
                opened.location, group, {session: at for (home, session), at in until.items() if home == group}
            )
    except SessionMemoryError as error:
        opened.note(f"the knowledge graph keeps its facts: {error}")
        if not settings.get("url"):
            opened.note(f"to delete the whole graph: rm -r {opened.terminal.short(embedded)}")


def forget_in_team(
    opened: OpenStore, sessions: Collection[tuple[str, str]], memories: Mapping[str, Collection[str]]
) -> None:
    """Make the team forget sessions, as (group, id), and memories by their groups, if the home has joined one; if that
    fails, say when it will be done. Raises ConfigError."""
    if not opened.location.home.settings().team.get("url"):
        return
    from ..upkeep.team import withdraw_forgotten

    try:
        withdraw_forgotten(opened.location, sessions, memories)
    except SessionMemoryError as error:
        opened.note(f"the team keeps what was shared of it until the next push: {error}")


def _tell(opened: OpenStore, chosen: Chosen) -> None:
    opened.terminal.line(f"Forgotten: {_amounts(chosen)}.")
    _tell_transcripts(opened, chosen.transcripts, "stay, and are not read for it again")
    opened.terminal.result(
        {
            "conversations": [one.id for one in chosen.conversations],
            "sessions": list(dict.fromkeys(one.session_id for one in chosen.conversations)),
            "memories": [id for ids in chosen.memories.values() for id in ids],
            "archives": chosen.archives,
            "transcripts": chosen.transcripts,
        }
    )


def _tell_transcripts(opened: OpenStore, paths: Iterable[str], what: str) -> None:
    every = list(paths)
    shown = [path for path in every if not mirror.is_mirror(path)]
    if len(shown) < len(every):
        sessions = counted(len(every) - len(shown), "session")
        opened.terminal.line(f"What the runtime itself keeps of {sessions} stays too: only you can delete it there.")
    if shown:
        opened.terminal.line(f"The runtime's own transcripts {what}:")
    for path in shown[:SHOWN]:
        opened.terminal.line(f"  {opened.terminal.short(path)}")
    if len(shown) > SHOWN:
        opened.terminal.line(f"  and {len(shown) - SHOWN} more")
