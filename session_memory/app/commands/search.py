"""`session-memory search`: finds text of any session, and shows how to read on from there."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.errors import WrongCallError
from ...common.system.terminal import Result, Terminal, called_as, print_note
from ...common.text.format import one_line
from ...common.text.sanitize import for_prompt, name_for_people
from ...history.search.query import asks_for_last_work, verbatim_form
from ...history.store.values import ENTRY_ROLES, KINDS, TOOL_ROLE, Conversation, Filter, Hit, Hits
from ...history.titles import Titles
from .arguments import add_common
from .opened_store import OpenStore, check_names, options_of, refresh, wanted_of, with_store
from .output import brief, fields, iso, moment

if TYPE_CHECKING:
    from ...history.git.commits import Commit, Repository
    from ...history.patterns.why import Reasons
    from ...memory.memory_index import IndexedMemory

SUMMARY = "search all messages of all sessions"
LIMIT = 10
TITLE_CHARACTERS = 80
MEMORIES = 3  # shown at most, before the entries
MOST_CANDIDATES = 30  # by the words of a commit
_EPISODE = "episode"  # shown after the entries, being the log of a conversation
_HASH_DIGITS = "0123456789abcdef"
_HASH_LENGTHS = range(7, 65)
MOST_WORDS = 12  # searched one by one, if the hits do not show them
_HINT = "Try fewer or other words; `sessions --all` lists all sessions."
_QUERY = 'words, "a phrase" in quotes, -word to exclude: best as one quoted argument'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help=_QUERY)
    parser.add_argument(
        "--role", choices=(*ENTRY_ROLES, TOOL_ROLE), default="", help="only entries with this role"
    )
    parser.add_argument("--kind", choices=KINDS, default="", help="only tool calls of this kind")
    parser.add_argument(
        "--runtime",
        metavar="R",
        default="",
        help="only sessions of this runtime, such as claude-code",
    )
    add_common(parser, filter_limit=LIMIT, shared=True, private=True)


def run(arguments: argparse.Namespace) -> int:
    """Search; return 1 if nothing was found. Raises SessionMemoryError."""
    if not " ".join(arguments.query).strip():
        raise WrongCallError(
            "the query is empty",
            'name some words: session-memory search "cherry blossom"',
        )
    return with_store(arguments, lambda opened: _search(opened, arguments))


def _search(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    query = " ".join(arguments.query)
    wanted = wanted_of(opened, arguments)
    wanted = wanted._replace(role=arguments.role, kind=arguments.kind, runtime=arguments.runtime)
    may_be_hash = (
        len(query) in _HASH_LENGTHS and not query.strip(_HASH_DIGITS) and not opened.shared
    )
    of_commit = _hits_of_commit(opened, query, wanted) if may_be_hash else None
    if last := _last_work(opened, query, wanted):
        titles = Titles(opened.store, [conversation for conversation, _ in last])
        opened.terminal.show_paged(LastWork(last, options_of(arguments), titles))
        return 0
    if of_commit:
        query, hits = of_commit.commit.words, of_commit.hits
    else:
        hits = opened.store.search(query, wanted)
    if not hits:
        check_names(opened, wanted)
    options = options_of(arguments)
    result = SearchOutput(
        query,
        hits,
        [_command(hit, options) for hit in hits],
        [] if _is_limited(arguments) else _memories(opened, query),
        _absent_words(opened, query, wanted, hits),
        options,
        of_commit,
        Titles(None if opened.shared else opened.store, [hit.conversation for hit in hits]),
    )
    opened.terminal.show_paged(result)
    if not (hits or result.memories):
        for fault in opened.location.home.settings().faults:  # which may exclude existing text
            print_note(fault)
    return 0 if hits or result.memories else 1


@dataclass(frozen=True)
class SearchOutput(Result):
    """The hits of a search.

    `commands` has the command that shows each hit, `memories` the matching memories. `absent` are
    the words of the query that no entry has. `options` make a command use the same store.
    `of_commit` is set if the query named a commit. `titles` name the hits' conversations."""

    query: str
    hits: Hits
    commands: list[str]
    memories: list[IndexedMemory]
    absent: list[str]
    options: str
    of_commit: CommitHits | None
    titles: Titles

    def show(self, terminal: Terminal) -> None:
        """Show noted memories, hits by conversation, episodes."""
        hits = self.hits
        if self.of_commit:
            self.of_commit.show_head(terminal)
        if noted := [memory for memory in self.memories if memory.kind != _EPISODE]:
            _show_memories(terminal, noted, self.options)
            terminal.line()
        if not hits and not self.memories:
            terminal.line(f"Nothing found for {brief(self.query, TITLE_CHARACTERS)}. {_HINT}")
        self._show_hits(terminal)
        if episodes := [memory for memory in self.memories if memory.kind == _EPISODE]:
            if hits:
                terminal.line()
            _show_memories(terminal, episodes, self.options)
        if self.absent and hits:
            present = ", ".join([word for word in _words_of(self.query) if word not in self.absent])
            terminal.line(
                f"\nFound: {brief(present, TITLE_CHARACTERS)}. "
                f"Not found: {brief(', '.join(self.absent), TITLE_CHARACTERS)}."
            )
        if hits.notice:
            terminal.line(("\n" if hits else "") + hits.notice)

    def _show_hits(self, terminal: Terminal) -> None:
        by_conversation: dict[int, list[tuple[Hit, str]]] = {}
        for hit, command in zip(self.hits, self.commands):
            by_conversation.setdefault(hit.conversation.id, []).append((hit, command))
        for position, hits in enumerate(by_conversation.values()):
            if position:
                terminal.line()
            _print_title(terminal, hits[0][0].conversation, self.titles)
            for hit, command in hits:
                _print(terminal, hit, command, _missing_words(self.query, hit))

    def as_json(self) -> dict[str, Any]:
        """Return the result as values for JSON."""
        return {
            "memories": [_memory_as_json(memory) for memory in self.memories],
            "hits": [_as_json(hit, command) for hit, command in zip(self.hits, self.commands)],
            "unchecked": self.hits.unchecked,
            "words_not_found": self.absent,
            **({"commit": self.of_commit.head_as_json()} if self.of_commit else {}),
        }


@dataclass(frozen=True)
class CommitHits:
    """The hits for a commit, and how many of its added lines were left out of the comparison."""

    commit: Commit
    hits: Hits
    not_compared: int

    def show_head(self, terminal: Terminal) -> None:
        """Print the commit, and the command that explains it."""
        commit = self.commit
        subject = brief(commit.subject, TITLE_CHARACTERS)
        terminal.line(f"Commit {commit.id[:8]}, {moment(commit.at)}: {subject}")
        if self.not_compared:
            terminal.line(
                f"  {self.not_compared:,} of its added lines were not compared with the sessions' "
                "edits, because there are too many."
            )
        terminal.line(f"  {called_as()} why {commit.id[:8]}\n")

    def head_as_json(self) -> dict[str, Any]:
        """Return the commit as values for JSON."""
        return {
            "id": self.commit.id,
            "at": iso(self.commit.at),
            "subject": self.commit.subject,
            "lines_not_compared": self.not_compared,
        }


@dataclass(frozen=True)
class LastWork(Result):
    """The last conversations with their log lines, for a question about the last work."""

    conversations: list[tuple[Conversation, str]]
    options: str
    titles: Titles

    def show(self, terminal: Terminal) -> None:
        for conversation, line in self.conversations:
            _print_title(terminal, conversation, self.titles)
            terminal.line(f"  {one_line(for_prompt(line))}")
            terminal.line(terminal.paint("dim", f"    {moment(conversation.last_message_at)}"))
            terminal.line(f"    {self._command(conversation)}")

    def _command(self, conversation: Conversation) -> str:
        return f"{called_as()} read {conversation.id}{self.options}"

    def as_json(self) -> dict[str, Any]:
        last = [
            {
                "conversation": fields(conversation),
                "text": line,
                "command": self._command(conversation),
            }
            for conversation, line in self.conversations
        ]
        return {"memories": [], "hits": [], "last": last}


def _command(hit: Hit, options: str) -> str:
    return f"{called_as()} read {hit.conversation.id} --around {hit.entry.number}{options}"


def _is_limited(arguments: argparse.Namespace) -> bool:
    """Check if a filter limits sessions, times or roles, none of which a memory has."""
    limits = ("role", "kind", "runtime", "project", "session", "since", "until")
    return any(getattr(arguments, limit) for limit in limits)


def _last_work(
    opened: OpenStore, query: str, wanted: Filter
) -> list[tuple[Conversation, str]] | None:
    """Return the last conversations if the query asks for the last work; None if it does not."""
    if opened.shared or not asks_for_last_work(query):
        return None
    from ...memory.last_work import last_work  # imported late, with the strategies
    from ...sessions.runtimes.detection import running_session

    return last_work(opened.store, wanted, running_session(os.environ, os.getppid())[1])


def _hits_of_commit(opened: OpenStore, hash: str, wanted: Filter) -> CommitHits | None:
    """Search for a commit of the current repository by its subject, branch and files.

    The commit's own sessions, known by its lines and its date, come first. Return None if `hash`
    does not name a commit."""
    from ...history.patterns.why import Reasons  # imported late, with all that starts git
    from ...history.store.sqlite.written_lines import known_key

    repository = _repository_here(opened)
    commit = _commit(opened, repository, hash) if repository else None
    if repository is None or commit is None:
        return None
    store = opened.store
    reasons = Reasons(store, repository, known_key(store.path))
    hits = store.search(commit.words, wanted._replace(limit=MOST_CANDIDATES))
    order = _sessions_of_commit(
        opened, reasons, commit, [hit.conversation.session_id for hit in hits]
    )
    if repository.lacks:
        opened.note(repository.lacks)
    place = {session: at for at, session in enumerate(order)}
    by_session = [
        store.search(commit.words, wanted._replace(session=session, limit=1))
        for session in order[: wanted.limit]
    ]
    known = {hit.entry.id: hit for batch in [*by_session, hits] for hit in batch}.values()
    best = sorted(known, key=lambda hit: place.get(hit.conversation.session_id, len(place)))
    hits[:] = best[: wanted.limit]
    return CommitHits(commit, hits, reasons.not_compared(commit))


def _repository_here(opened: OpenStore) -> Repository | None:
    """Return the repository of the current directory, or None with a printed note if git fails."""
    from ...common.system.git import find_worktree, refusal_at
    from ...history.git.commits import Repository
    from ...sessions.settings.homes import user_dir

    worktree = find_worktree(os.getcwd(), user_dir(os.environ))
    if refused := refusal_at(os.getcwd(), user_dir(os.environ)):
        opened.note(f"git cannot look up commits here: {refused}")
    if worktree is None or not worktree.root:
        return None
    return Repository(worktree.git_dir, worktree.root)


def _commit(opened: OpenStore, repository: Repository, hash: str) -> Commit | None:
    from ...common.system.git_process import GitUnavailableError

    try:
        id = repository.resolved(hash)
        return repository.commit(id) if id else None
    except GitUnavailableError as error:
        opened.note(f"git cannot read this commit: {error}")
        return None


def _sessions_of_commit(
    opened: OpenStore, reasons: Reasons, commit: Commit, by_words: list[str]
) -> list[str]:
    """Return the sessions of a commit, the likeliest first.

    If git fails, they keep the order of `by_words`."""
    from ...common.system.git_process import GitUnavailableError

    try:
        return reasons.ordered(commit, by_words)
    except GitUnavailableError as error:
        opened.note(
            f"git cannot tell which lines the commit added, so only its words "
            f"were compared: {error}"
        )
        return by_words


def _words_of(query: str) -> list[str]:
    """Return the searched words, without quotes and excluded words."""
    words = [word.strip("\"'.,;:!?()") for word in query.split() if not word.startswith("-")]
    return list(dict.fromkeys([word for word in words if len(word) > 1]))


def _absent_words(opened: OpenStore, query: str, wanted: Filter, hits: Hits) -> list[str]:
    """Return the words of the query that no entry within the limits has."""
    words = _words_of(query)
    if len(words) < 2 or len(words) > MOST_WORDS:
        return []
    marked = {verbatim_form(hit.pieces[index]) for hit in hits for index in _marked(hit.pieces)}
    unmarked = [word for word in words if verbatim_form(word) not in marked]
    return [word for word in unmarked if not opened.store.search(word, wanted._replace(limit=1))]


def _missing_words(query: str, hit: Hit) -> list[str]:
    """Return the words of the query that are only in other entries of a hit's conversation."""
    entry = hit.entry
    shown = {verbatim_form(hit.pieces[index]) for index in _marked(hit.pieces)}
    text = verbatim_form(f"{entry.text} {entry.error} {entry.tool}")
    words = _words_of(query) if len(_words_of(query)) > 1 else []
    forms = {word: verbatim_form(word) for word in words}
    return [
        word
        for word, form in forms.items()
        if form not in text and not any(_are_forms(form, word_shown) for word_shown in shown)
    ]


def _are_forms(word: str, other: str) -> bool:
    """Check if two words differ only in their endings, such as `state` and `states`."""
    shortest = min(len(word), len(other))
    same = next((at for at in range(shortest) if word[at] != other[at]), shortest)
    return same >= max(3, shortest - 2)


def _memories(opened: OpenStore, query: str) -> list[IndexedMemory]:
    """Return the memories that fit the query."""
    if opened.shared:
        from ...memory.memory_index import MemoryFilter
        from ...memory.shared_store import shared_engine

        wanted = MemoryFilter(limit=MEMORIES)
        return list(shared_engine().memories(opened.shared).search(query, wanted))
    if opened.store.holds_memories():
        from ...memory.library import search_memories

        return list(search_memories(opened.location, query, MEMORIES, opened.note, opened.patience))
    return []


def _show_memories(terminal: Terminal, memories: list[IndexedMemory], options: str) -> None:
    """Show memories, and the command that shows all of them."""
    from .memories import show_hit

    for memory in memories:
        show_hit(terminal, memory, options)
    terminal.line(
        f"  {called_as()} memories show {' '.join(memory.id for memory in memories)}{options}"
    )


def _memory_as_json(memory: IndexedMemory) -> dict[str, Any]:
    from .memories import as_json

    return as_json(memory)


def _print_title(terminal: Terminal, conversation: Conversation, titles: Titles) -> None:
    where = conversation.cwd or "-"
    title = one_line(for_prompt(titles.of(conversation))) or f"Conversation {conversation.id}"
    terminal.line(terminal.paint("bold", title))
    origin = f", {one_line(conversation.origin)}" if conversation.origin else ""
    about = (
        f"  {conversation.runtime}, in {terminal.short(where)}, session "
        f"{conversation.session_id}{origin}"
    )
    terminal.line(terminal.paint("dim", name_for_people(about)))


def _print(terminal: Terminal, hit: Hit, command: str, missing: list[str]) -> None:
    who = hit.entry.tool if hit.entry.role == TOOL_ROLE else hit.entry.role
    who = name_for_people(f"{who} of {hit.conversation.who}" if hit.conversation.who else who)
    terminal.line(f"  {_highlighted(terminal, [for_prompt(piece) for piece in hit.pieces])}")
    when = moment(hit.entry.timestamp or hit.conversation.last_message_at)
    without = f"; without {brief(', '.join(missing), TITLE_CHARACTERS)}" if missing else ""
    terminal.line(terminal.paint("dim", f"    {when}, {who}{without}"))
    terminal.line(f"    {command}")


def _highlighted(terminal: Terminal, pieces: list[str]) -> str:
    """Return the snippet on one line, with the matching words in bold.

    Without colours they are in asterisks, and asterisks in the text around a matching word are
    removed."""
    touching = [
        pieces[index - 1].endswith("*") or pieces[index + 1].startswith("*")
        for index in _marked(pieces)
    ]
    if any(touching):
        pieces = [piece.replace("**", "") for piece in pieces]
    for index in _marked(pieces):
        bold = terminal.paint("bold", pieces[index])
        pieces[index] = bold if bold != pieces[index] else f"**{pieces[index]}**"
    return one_line("".join(pieces))


def _marked(pieces: list[str]) -> range:
    """Return which pieces of a snippet fit the query."""
    return range(1, len(pieces), 2)


def _as_json(hit: Hit, command: str) -> dict[str, Any]:
    return {
        "entry": {"number": hit.entry.number, **fields(hit.entry)},
        "conversation": fields(hit.conversation),
        "snippet": hit.snippet,
        "marks": hit.marks,
        "score": hit.score,
        "command": command,
    }
