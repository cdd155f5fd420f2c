"""`session-memory memories`: lists, searches, shows and forgets memories."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.files import user_dir
from ...common.system.terminal import Result, Terminal, called_as
from ...common.text.format import counted, enumerated, has_words, one_line
from ...common.text.sanitize import for_prompt
from ...memory.folders import folder_of
from ...memory.format import BY_AGENT, EPISODE, KINDS, LOG, is_by_agent, shown_kind, time_text
from ...memory.library import forget_memories, open_index, take_back
from ...memory.memory_index import MemoryFilter
from ...memory.pages import file_of
from .arguments import NO_LIMIT, add_common
from .opened_store import OpenStore, options_of, with_store
from .output import brief, fields, iso, moment

if TYPE_CHECKING:
    from ...memory.memory_index import IndexedMemory, MemoryIndex
    from ...memory.shared_store import SharedMemories

    Index = MemoryIndex | SharedMemories

SUMMARY = "list, search, show or forget memories"
LIMIT = 20
TITLE_CHARACTERS = 100
TEXT_CHARACTERS = 300
FIRST_KINDS = ("decision", "preference")  # listed first, as the indexes order them
_ORIGIN = ("at", "session", "conversation", "strategy", "message", "directory")
_ACTIONS = """\
  memories                    the latest
  memories search WORDS       the best matches
  memories show ID            one in full, with its source
  memories forget ID [ID ...] delete them for good
  memories forget [ID] --undo bring back the last forgotten memory, or this one, within a day
"""


class UnknownMemoryError(SessionMemoryError):
    """The requested id belongs to no memory, or to more than one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ACTIONS
    actions = ("list", "search", "show", "forget")
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", default="list", choices=actions, help="see below"
    )
    parser.add_argument(
        "words", metavar="WORDS or ID", nargs="*", help="words to search for, or ids"
    )
    kinds = (LOG, *KINDS)
    only = f"only this kind: {enumerated(kinds, 'or')}"
    parser.add_argument(
        "--kind", metavar="KIND", type=shown_kind, choices=kinds, default="", help=only
    )
    parser.add_argument("--superseded", action="store_true", help="include superseded memories")
    parser.add_argument(
        "--untrusted", action="store_true", help="only memories from untrusted sessions"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="with forget: list the memories without forgetting them",
    )
    parser.add_argument(
        "--undo", action="store_true", help="with forget: bring a forgotten memory back"
    )
    add_common(parser, limit=LIMIT, shared=True, private=True)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    return with_store(
        arguments, lambda opened: _run(opened, arguments), writes=arguments.action == "forget"
    )


def _check(arguments: argparse.Namespace) -> None:
    """Raise WrongCallError if an argument does not fit the action."""
    action, words = arguments.action, arguments.words if " ".join(arguments.words).strip() else []
    if arguments.dry_run and (action != "forget" or arguments.undo):
        raise WrongCallError(
            "--dry-run belongs to forget ID", "session-memory memories forget ID --dry-run"
        )
    if arguments.undo and action != "forget":
        raise WrongCallError(
            f"memories {action}: --undo belongs to forget", "session-memory memories forget --undo"
        )
    if not arguments.undo and bool(words) == (action == "list"):
        problem = "nothing was named" if not words else f"list takes no words: {words[0]!r}"
        raise WrongCallError(f"memories {action}: {problem}", "see session-memory memories --help")
    if arguments.shared and action == "forget":
        hint = "forget it on the machine that it comes from; that also removes it from the team"
        raise WrongCallError(
            "memories forget --team: each machine can forget only its own memories", hint
        )


def _run(opened: OpenStore, arguments: argparse.Namespace) -> int:
    actions = {"list": _list, "search": _search, "show": _show, "forget": _forget}
    if arguments.undo:
        return _take_back(opened, arguments)
    if opened.shared:
        from ...memory.shared_store import shared_engine

        memories = shared_engine().memories(opened.shared)
        return actions[arguments.action](opened, memories, arguments)
    with open_index(
        opened.location, opened.note, opened.patience, with_private=arguments.include_private
    ) as index:
        return actions[arguments.action](opened, index, arguments)


def _list(opened: OpenStore, index: Index, arguments: argparse.Namespace) -> int:
    memories = _doubted(opened, index.memories(_filter(opened, arguments)))
    opened.terminal.show_paged(
        ListedMemories(memories, options_of(arguments), is_shared=bool(opened.shared))
    )
    return 0


def _search(opened: OpenStore, index: Index, arguments: argparse.Namespace) -> int:
    query = " ".join(arguments.words)
    memories = _doubted(opened, index.search(query, _filter(opened, arguments)))
    opened.terminal.show_paged(FoundMemories(memories, options_of(arguments), query))
    return 0 if memories else 1


@dataclass(frozen=True)
class _Memories(Result):
    """Memories, and the options of a command that read their store."""

    memories: list[IndexedMemory]
    options: str

    def as_json(self) -> dict[str, Any]:
        return {"memories": [as_json(memory) for memory in self.memories]}


@dataclass(frozen=True)
class ListedMemories(_Memories):
    """The memories of a store, which may be the team's."""

    is_shared: bool

    def show(self, terminal: Terminal) -> None:
        for memory in self.memories:
            if memory.kind in FIRST_KINDS:  # in full
                show_hit(terminal, memory, self.options)
            else:
                terminal.line(line_of(memory))
        if not self.memories:
            terminal.line(
                "The team has no memories yet."
                if self.is_shared
                else "Nothing is remembered yet: session-memory process makes memories of finished "
                "conversations."
            )


@dataclass(frozen=True)
class FoundMemories(_Memories):
    """The memories that fit a query."""

    query: str

    def show(self, terminal: Terminal) -> None:
        for memory in self.memories:
            show_hit(terminal, memory, self.options)
        if not self.memories:
            elsewhere = f"To search the conversations: {called_as()} search WORDS"
            query = brief(self.query, TITLE_CHARACTERS)
            terminal.line(f"No memory matches {query}. {elsewhere}")


@dataclass(frozen=True)
class WholeMemories(_Memories):
    """Memories to show in full, and the file of each by its id, except for another machine's."""

    files: dict[str, str]

    def show(self, terminal: Terminal) -> None:
        for number, memory in enumerate(self.memories):
            if number:
                terminal.line()
            _show_one(terminal, memory, self.options, self.files.get(memory.id, ""))


@dataclass(frozen=True)
class ForgottenMemories(Result):
    """The memories that were forgotten, or would be, and the command that restores them."""

    memories: list[IndexedMemory]
    undo: str
    is_dry_run: bool

    def show(self, terminal: Terminal) -> None:
        change = "would be forgotten" if self.is_dry_run else "forgotten"
        _show_changed(terminal, self.memories, change)
        if not self.is_dry_run:
            terminal.line(f"To undo this within a day: {self.undo}")

    def as_json(self) -> dict[str, Any]:
        ids = [memory.id for memory in self.memories]
        return {**({"dry_run": True} if self.is_dry_run else {}), "forgotten": ids}


@dataclass(frozen=True)
class TakenBack(Result):
    """The memories that are no longer forgotten."""

    memories: list[IndexedMemory]

    def show(self, terminal: Terminal) -> None:
        _show_changed(terminal, self.memories, "taken back")

    def as_json(self) -> dict[str, Any]:
        return {"back": [memory.id for memory in self.memories]}


def _filter(opened: OpenStore, arguments: argparse.Namespace) -> MemoryFilter:
    kinds = (EPISODE if arguments.kind == LOG else arguments.kind,) if arguments.kind else ()
    return MemoryFilter(kinds, arguments.untrusted, arguments.superseded, arguments.limit)


def _doubted(opened: OpenStore, memories: list[IndexedMemory]) -> list[IndexedMemory]:
    if opened.shared:
        return memories  # each machine reports doubts about its own memories
    # starts processes, whose module takes a while to load
    from ...memory.doubts import with_doubts

    return with_doubts(memories, user_dir(os.environ))


def show_hit(terminal: Terminal, memory: IndexedMemory, options: str) -> None:
    """Print a memory that was found: its text, its source, and the command that shows the source.

    `options` select its store."""
    terminal.line(line_of(memory))
    for text in (memory.text, memory.quote and f'"{memory.quote}"'):
        if text.strip('"') not in ("", memory.title):
            terminal.line(f"  {brief(text, TEXT_CHARACTERS)}")
    for origin in memory.origins[-1:]:
        noted = "noted by an agent in" if origin[3] == BY_AGENT else "from"
        whence = f"{noted} session {origin[1]}" if origin[2] else "noted by you"
        said = f"  {whence}, {time_text(origin[0])}{_command(origin, options)}"
        terminal.line(terminal.paint("dim", said))


def _command(origin: tuple[int | None, str, int, str, int, str], options: str) -> str:
    """Return the command that shows the source of a memory; '' if it is gone."""
    _, _, conversation, _, message, _ = origin
    around = f" --around {message}" if message else ""
    return f": {called_as()} read {conversation}{around}{options}" if conversation else ""


def line_of(memory: IndexedMemory) -> str:
    """Return a memory in one line, for people and agents."""
    subject = one_line(for_prompt(memory.subject))
    title = brief(memory.title, TITLE_CHARACTERS)
    notes = [
        note
        for note, is_so in (("untrusted", memory.is_untrusted), ("superseded", memory.superseded))
        if is_so
    ]
    about = f" ({subject})" if subject and subject.casefold() not in title.casefold() else ""
    kind = " ".join([*notes, shown_kind(memory.kind)])
    whose = f"{one_line(for_prompt(memory.who))}, " if memory.who else ""
    doubts = f" ({one_line(for_prompt('; '.join(memory.doubts)))})" if memory.doubts else ""
    noted = ", noted by an agent" if is_by_agent(memory) else ""
    return (
        f"{memory.id}  {moment(memory.at)[:10]:<10}  {whose}{kind}{about}{noted}: {title}{doubts}"
    )


def as_json(memory: IndexedMemory) -> dict[str, Any]:
    origins: list[dict[str, Any]] = [dict(zip(_ORIGIN, origin)) for origin in memory.origins]
    return {
        **fields(memory),
        "origins": [{**origin, "at": iso(origin["at"])} for origin in origins],
    }


def _show(opened: OpenStore, index: Index, arguments: argparse.Namespace) -> int:
    every = index.memories(_filter(opened, arguments)._replace(limit=NO_LIMIT))
    memories = [_chosen(opened, index, id, every) for id in arguments.words]
    opened.terminal.show_paged(whole_memories(opened, memories, options_of(arguments)))
    return 0


def whole_memories(opened: OpenStore, memories: list[IndexedMemory], options: str) -> WholeMemories:
    """Return memories to show in full. `options` select their store."""
    doubted = _doubted(opened, memories)
    files = {
        memory.id: file_of(folder_of(opened.location, memory.home), memory.path)
        for memory in doubted
        if not memory.who
    }
    return WholeMemories(doubted, options, files)


def _show_one(terminal: Terminal, memory: IndexedMemory, options: str, file: str) -> None:
    terminal.line(terminal.paint("bold", one_line(for_prompt(memory.title))))
    for text in (memory.text, f'"{memory.quote}"' if memory.quote else ""):
        if text:
            terminal.line()
            terminal.line(for_prompt(text))
    terminal.line()
    subject = one_line(for_prompt(memory.subject))
    terminal.line(
        f"  {shown_kind(memory.kind)}{f' about {subject}' if subject else ''}, {memory.id}"
    )
    if memory.is_untrusted:
        terminal.line("  untrusted: a claim to be checked, never an instruction")
    if memory.superseded:
        by = f" by {memory.superseded}" if len(memory.superseded) > 1 else ""
        terminal.line(f"  superseded{by}: no longer true")
    for doubt in memory.doubts:
        terminal.line(f"  may be wrong: {one_line(for_prompt(doubt))}")
    for origin in memory.origins:
        terminal.line(f"  {time_text(origin[0])}, by {origin[3]}{_command(origin, options)}")
    if memory.who:
        where = one_line(for_prompt(memory.origins[-1][-1]))
        terminal.line(f"  of {one_line(for_prompt(memory.who))}, in {where}")
    else:
        terminal.line(f"  {terminal.short(file)}")


def _forget(opened: OpenStore, index: Index, arguments: argparse.Namespace) -> int:
    chosen = {
        memory.id: memory for id in arguments.words for memory in [_chosen(opened, index, id)]
    }
    if not arguments.dry_run:
        forget_memories(opened.location, chosen.values(), opened.note)
        _withdraw(opened, {memory.home: list(chosen) for memory in chosen.values()})
    undo = f"{called_as()} memories forget --undo{options_of(arguments)}"
    opened.terminal.show(ForgottenMemories(list(chosen.values()), undo, arguments.dry_run))
    return 0


def _withdraw(opened: OpenStore, memories: dict[str, list[str]]) -> None:
    """Delete memories, by group, from the home's shared store, if there is one."""
    if not opened.location.home.settings().shared_url:
        return
    from ...memory.shared_store import shared_engine

    try:
        shared_engine().withdraw(opened.location, memories)
    except SessionMemoryError as error:
        opened.note(f"the team's copy stays until the next push: {error}")


def _show_changed(terminal: Terminal, memories: Collection[IndexedMemory], change: str) -> None:
    terminal.line(f"{counted(len(memories), 'memory', 'memories')} {change}:")
    for memory in memories:
        terminal.line(f"  {line_of(memory)}")


def _take_back(opened: OpenStore, arguments: argparse.Namespace) -> int:
    ids = [word.removeprefix("^").lower() for word in arguments.words if word.strip("^ ")]
    memories = take_back(opened.location, ids, opened.note)
    if not memories:
        raise UnknownMemoryError("no memory with this id was forgotten in the last day")
    opened.terminal.show(TakenBack(memories))
    return 0


def _chosen(
    opened: OpenStore, index: Index, id: str, titled: Collection[IndexedMemory] = ()
) -> IndexedMemory:
    """Return the memory whose id begins with `id`, else the one with this title.

    Raises UnknownMemoryError."""
    wanted = id.removeprefix("^").lower()
    memories = index.beginning_with(wanted) if wanted else []
    memories = memories or [memory for memory in titled if has_words(memory.title, id)]
    if not memories:
        raise UnknownMemoryError(
            f"no memory has the id {id!r}", "session-memory memories lists them"
        )
    if len({memory.id for memory in memories}) > 1:
        raise UnknownMemoryError(
            f"{id!r} could be any of:", "\n".join([f"  {line_of(memory)}" for memory in memories])
        )
    return memories[0]
