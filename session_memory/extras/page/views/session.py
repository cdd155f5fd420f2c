"""A session: its messages and calls, to be read and followed live."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from ....app.active_sessions import active_since
from ....app.commands.arguments import NO_LIMIT
from ....app.labels import project_of, quoted
from ....awareness.events.delivery_state import hidden_at
from ....common.system.sqlite import Patience
from ....common.text.paths import relative
from ....common.text.sanitize import for_people
from ....history.copies.keep import kept_of
from ....history.costs import expenses, sums_of
from ....history.marks import Marks
from ....history.prices import all_prices
from ....history.store.sqlite.counted_files import CountedFiles
from ....history.store.values import TOOL_ROLE, Conversation, Filter, StoredEntry, edits_in
from ....history.titles import Titles
from ....memory.library import open_index
from ....memory.memory_index import MemoryFilter
from ....sessions.runtimes.table import all_runtimes
from ....sessions.transcripts.earlier_paths import present_directory
from ....sessions.transcripts.reader import is_request
from .._dialogue import AnnotatedSession, DialoguePart, call_detail, chunks_of, items_of
from .._diffs import hunks_of
from .._page_request import NotFoundError, PageRequest
from .._view import View
from .organise import MarkedSession

REQUEST_CHARACTERS = 110
NAME_CHARACTERS = 200
REQUESTS = 100  # listed at once, the latest
FILES = 40  # likewise
PATIENCE_SECONDS = 1.0
_HIGHEST = 1 << 32
Found = TypeVar("Found")


class ShownRequest(NamedTuple):
    """A user's request in one line."""

    number: int
    at: float | None
    text: str


class ChangedFile(NamedTuple):
    """An edited file, relative to the session's start directory, with the numbers of the calls."""

    path: str
    numbers: list[int]


def _values(request: PageRequest) -> dict[str, Any]:
    """Return the whole page with one chunk of the dialogue.

    It is the chunk with the entry `at`, or the first of the named conversation. Otherwise it is the
    last chunk of a working session, else the first."""
    conversations = _conversations(request)
    chunks = chunks_of(request.store, conversations)
    latest = conversations[-1]
    named = request.number("conversation", 0, 1 << 62)
    at = request.number("at", 0, _HIGHEST) or next(
        (chunk.first for chunk in chunks if chunk.conversation == named), 0
    )
    of_session = latest._replace(title=conversations[0].title)
    last_at = request.last_at(latest)
    is_active = last_at >= active_since(request.now)
    shown = next((chunk for chunk in chunks if chunk.first <= at <= chunk.last), None)
    if shown is None:
        shown = chunks[-1] if is_active or at else chunks[0]
    of = next(
        conversation for conversation in conversations if conversation.id == shown.conversation
    )
    return {
        **_facts(request, conversations),
        "name": Titles(request.store, [of_session]).of(of_session, NAME_CHARACTERS) or "Untitled",
        **_commands(request, latest),
        "chunks": chunks,
        "shown": shown,
        "blocks": _notes(request, latest).blocks(of, shown),
        "at": at,
        "is_active": is_active,
    }


def _notes(request: PageRequest, conversation: Conversation) -> AnnotatedSession:
    starts, home = (
        {*request.store.directories(), conversation.cwd},
        request.location.home_for(conversation.home),
    )
    return AnnotatedSession(request.store, request.location, hidden_at(home, starts))


def _cost(request: PageRequest) -> dict[str, Any]:
    """Return the tokens and dollars of the session's own answers, and of each model's.

    Copied answers count in their original session."""
    conversations = _conversations(request)
    latest = conversations[-1]
    file = request.location.transcript_of(latest)
    prices = all_prices(request.location.memory_settings.prices)
    all_expenses = expenses(
        [(file, latest)] if file else [], prices, lambda *_: None, CountedFiles(request.store)
    )
    total, (models,) = sums_of(
        (expense for expense in request.while_wanted(all_expenses) if not expense.usage.is_copy),
        "model",
    )
    shown = [
        replace(model_sum, name=for_people(model_sum.name) or "unknown") for model_sum in models
    ]
    return {**_facts(request, conversations), "total": total, "models": shown}


def _session_facts(request: PageRequest) -> dict[str, Any]:
    return _facts(request, _conversations(request))


def _facts(request: PageRequest, conversations: list[Conversation]) -> dict[str, Any]:
    latest = conversations[-1]
    marks, marks_problem = Marks.readable(request.location.home)
    [marked] = MarkedSession.all_of(request, [latest], marks)
    return {
        "session_id": latest.session_id,
        "runtime": marked.runtime,
        "project": project_of(for_people(latest.cwd)),
        "cwd": for_people(latest.cwd),
        "origin": for_people(latest.origin),
        "group": latest.home,
        "first_at": (conversations[0].first_message_at or 0) / 1000,
        "last_at": request.last_at(latest),
        "messages": sum(conversation.entry_count for conversation in conversations),
        "form_key": marked.key,
        "marks": marked.marks,
        "marks_problem": marks_problem,
        "active": next((card for card in request.active if card.id == latest.session_id), None),
    }


def _items(request: PageRequest) -> dict[str, Any]:
    """Return the `blocks` of one chunk of the conversation `of`: its items `from` to `to`.

    Without `to`, all following items are returned."""
    conversation = _conversation(request)
    first, last = request.number("from", 1, _HIGHEST), request.number("to", 0, _HIGHEST)
    chunk = DialoguePart(conversation.id, max(first, 1), last, not last, 0)
    return {
        "session_id": conversation.session_id,
        "shown": chunk,
        "blocks": _notes(request, conversation).blocks(conversation, chunk),
    }


def _outline(request: PageRequest) -> dict[str, Any]:
    """Return the session's requests, changed files and memories.

    Of a long session, only the latest requests and files are returned; `part` requests the
    `requests` or the `files` before these."""
    conversations = _conversations(request)
    start = next((conversation.cwd for conversation in conversations if conversation.cwd), "")
    requests: list[StoredEntry] = []
    files: dict[str, list[int]] = {}
    for conversation in conversations:
        calls = request.store.sub_agent_calls(conversation.id)
        for item in request.store.entries(conversation.id):
            if item.role == TOOL_ROLE:
                calls.append(item)
            elif item.role == "user" and is_request(item.text):
                requests.append(item)
        for item, path in edits_in(calls, start):
            files[path] = [*files.pop(path, ()), item.number]
    part = request.one("part")
    earlier, latest = _split(requests, REQUESTS)
    files_before, last_files = _split(
        [ChangedFile(relative(path, start), edits) for path, edits in files.items()], FILES
    )
    return {
        "session_id": conversations[-1].session_id,
        "part": part,
        "requests": [
            ShownRequest(
                request_made.number,
                request_made.timestamp and request_made.timestamp / 1000,
                quoted(request_made.text, REQUEST_CHARACTERS),
            )
            for request_made in (earlier if part == "requests" else latest)
        ],
        "earlier": len(earlier),
        "files": [
            file._replace(path=for_people(file.path))
            for file in (files_before if part == "files" else last_files)[::-1]
        ],
        "files_before": len(files_before),
        "memories": [] if part else _memories_of(request, conversations[-1].session_id),
    }


def _split(listed: list[Found], most: int) -> tuple[list[Found], list[Found]]:
    """Return the last `most` of them, and those before."""
    at = max(0, len(listed) - most)
    return listed[:at], listed[at:]


def _memories_of(request: PageRequest, session: str) -> list[tuple[str, str]]:
    """Return kind and title of each memory drawn from a session."""
    with open_index(request.location, lambda _: None, Patience(PATIENCE_SECONDS)) as index:
        return [
            (for_people(memory.kind), for_people(memory.title))
            for memory in index.memories(MemoryFilter())
            if any(origin[1] == session for origin in memory.origins)
        ]


def _call(request: PageRequest) -> dict[str, Any]:
    """Return the tool call with the number `item` of the conversation `of`."""
    conversation, item = shown_call(request)
    detail = call_detail(request.location, conversation, item)
    hunks = hunks_of(detail.diff) if detail.diff and item.kind == "edit" else []
    return {
        "call": detail,
        "kind": item.kind,
        "path": for_people(item.text),
        "hunks": hunks,
        "session_id": conversation.session_id,
        "of": conversation.id,
        "item": item.number,
    }


def shown_call(request: PageRequest) -> tuple[Conversation, StoredEntry]:
    """Return the conversation `of`, and its tool call with the number `item`.

    Raises NotFoundError."""
    conversation = _conversation(request)
    number = request.number("item", 0, _HIGHEST)
    calls = (
        items_of(request.store, DialoguePart(conversation.id, number, number, False, 0))
        if number
        else []
    )
    if not calls or calls[0].role != TOOL_ROLE:
        raise NotFoundError("this tool call does not exist")
    return conversation, calls[0]


def _conversations(request: PageRequest) -> list[Conversation]:
    """Return the requested session's conversations, the earliest first. Raises NotFoundError."""
    wanted = request.path["session"]
    conversations = request.store.conversations(Filter(session=wanted, limit=NO_LIMIT))
    conversations = [
        conversation for conversation in conversations if conversation.session_id == wanted
    ]
    if not conversations:
        raise NotFoundError(
            "there is no such session",
            "it may be excluded by a rule, forgotten, or not ingested yet",
        )
    return conversations[::-1]


def _conversation(request: PageRequest) -> Conversation:
    """Return the conversation `of` of the requested session. Raises NotFoundError."""
    conversation = request.store.conversation(request.number("of", 0, _HIGHEST))
    if conversation is None or conversation.session_id != request.path["session"]:
        raise NotFoundError("this part of the session no longer exists", "reload the page")
    return conversation


def _commands(request: PageRequest, latest: Conversation) -> dict[str, str]:
    """Return the commands that hand over the session, and that resume it in a terminal.

    If its runtime no longer has it, the second command restores it from the kept copy, or is ''
    without a copy."""
    runtime = next(
        (known_runtime for known_runtime in all_runtimes() if known_runtime.name == latest.runtime),
        None,
    )
    handoff = f"session-memory handoff {shlex.quote(latest.session_id)}"
    if runtime is None or not runtime.install.RESUME or latest.home:
        return {"resume": "", "restore": "", "handoff": handoff}
    state = request.store.file_states("").get(latest.source_file)
    if (
        state is not None
        and state.status != "gone"
        and os.path.exists(f"{state.root}/{state.file_path}")
    ):
        present = present_directory(request.location.home.repositories_file, latest.cwd)
        command = runtime.backup.resume_command(latest.session_id, present)
        return {"resume": command, "restore": "", "handoff": handoff}
    kept = kept_of(
        request.location, lambda kept: kept.session_id == latest.session_id and not kept.is_earlier
    )
    command = f"session-memory restore {shlex.quote(latest.session_id)}"
    return {"resume": "", "restore": command if kept else "", "handoff": handoff}


VIEWS = (
    View("session", "/session/{session}", _values),
    View("session_facts", "/session/{session}/facts", _session_facts),
    View("session_cost", "/session/{session}/cost", _cost),
    View("session_items", "/session/{session}/items", _items),
    View("session_outline", "/session/{session}/outline", _outline),
    View("session_call", "/session/{session}/call", _call),
)
