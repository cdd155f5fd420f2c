"""The tools, each defined once: its name, its description for the model, its arguments, its function."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ..text.format import ELLIPSIS
from ..text.sanitize import for_prompt
from ..text.timestamps import EXAMPLES, milliseconds_at
from . import results
from .backend import RefusedError, SearchLimits, team_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .backend import Backend, ListedSession

    Arguments = Mapping[str, Any]
    Schema = dict[str, Any]

SERVER = "session-memory"
INSTRUCTIONS = (
    "The memory of all sessions of this agent. Before you ask the user for something that was said in another "
    "conversation, or say that you do not know it, use search_sessions."
)
TEXT_CHARACTERS = 200
QUERY_CHARACTERS = 1_000
ERROR_CHARACTERS = 8_000
MEMORY_CHARACTERS = 500
MOST_LINES = 500
MOST_FOUND = 50
MOST_SKIPPED = 100_000


class Tool(NamedTuple):
    """A tool: `schema` is the JSON Schema of its arguments; `run` calls the backend and returns the text for the model.

    `is_read_only`: changes nothing. `is_idempotent`: a second call with the same arguments changes nothing, so it may
    be repeated after a crash. `is_destructive`: deletes something.
    """

    name: str
    title: str
    description: str
    schema: Schema
    run: Callable[[Backend, Arguments], str]
    is_read_only: bool
    is_idempotent: bool = False
    is_destructive: bool = False

    @property
    def annotations(self) -> dict[str, Any]:
        """The hints for MCP clients, for instance before they ask the user."""
        hints = {"destructiveHint": self.is_destructive, "idempotentHint": self.is_idempotent}
        changes = {} if self.is_read_only else hints
        return {"title": self.title, "readOnlyHint": self.is_read_only, **changes, "openWorldHint": False}


def chosen(listed: list[ListedSession], wanted: str) -> ListedSession:
    """Return the session called `wanted`: by id, else by name, else the only one whose name or id begins so.

    Considers only the listed ones. Raises RefusedError.
    """
    plain = wanted.strip().removesuffix(ELLIPSIS).casefold()
    for fits in (
        lambda one: plain in (one.id.casefold(), one.session_id.casefold()),
        lambda one: plain == results.name_of(one).casefold(),
        lambda one: results.name_of(one).casefold().startswith(plain) or one.session_id.startswith(plain),
    ):
        found = [one for one in listed if fits(one)] if plain else []
        if len(found) == 1:
            return found[0]
        if found:
            problem = f"several sessions are called {wanted!r}"
            raise RefusedError(problem, f"ask again with the id of one of these: {results.candidates(found)}")
    hint = f"there are: {results.candidates(listed)}" if listed else "there are no sessions yet"
    raise RefusedError(f"no session is called {wanted!r}", hint)


def chosen_here(backend: Backend, name: str) -> ListedSession:
    """Return the local session of that name; updates name those of a team as `ann@laptop`. Raises RefusedError."""
    try:
        return chosen(backend.sessions(), name)
    except RefusedError as error:
        if not backend.has_team or "@" not in name:
            raise
        hint = "it may be on another machine: search_team finds what was said there, with an id for read_session"
        raise RefusedError(str(error), hint) from None


def _list(backend: Backend, arguments: Arguments) -> str:
    return results.listing(backend.sessions(), arguments.get("skip", 0), time.time())


def _read(backend: Backend, arguments: Arguments) -> str:
    lines, skip = arguments.get("lines", 20), arguments.get("skip", 0)
    conversation = team_conversation(arguments["name"]) if backend.has_team else None
    if conversation is None:
        session = chosen_here(backend, arguments["name"])
        entries, unreadable = backend.entries(session, lines + skip)
    else:
        (session, entries), unreadable = backend.team_entries(conversation, lines + skip), 0
    is_all = len(entries) < lines + skip
    return results.log(session, entries[: len(entries) - skip], unreadable, skip, is_all=is_all)


def _search(backend: Backend, arguments: Arguments) -> str:
    limit = arguments.get("limit", 10)
    limits = _limits(arguments)
    found = backend.search(arguments["query"], limit, limits)
    return results.search_results(found, limit, is_limited=any(part not in (None, "") for part in limits))


def _search_team(backend: Backend, arguments: Arguments) -> str:
    limit = arguments.get("limit", 10)
    found = backend.search_team(arguments["query"], limit, _limits(arguments))
    return results.search_results(found, limit) if found else results.NOTHING_IN_TEAM


def _limits(arguments: Arguments) -> SearchLimits:
    return SearchLimits(_moment(arguments, "since"), _moment(arguments, "until"), arguments.get("project", ""))


def _seen_error(backend: Backend, arguments: Arguments) -> str:
    return results.seen_errors(backend.errors(arguments["error"]), arguments.get("limit", 3))


def _search_graph(backend: Backend, arguments: Arguments) -> str:
    limit = arguments.get("limit", 10)
    return results.graph_facts(backend.search_graph(arguments["query"], limit), limit)


def _remember(backend: Backend, arguments: Arguments) -> str:
    kept = backend.remember(arguments.get("kind", "fact"), arguments["text"], arguments["quote"])
    found = "other sessions find it with search_sessions"
    if kept.is_untrusted:
        found = "only a person finds it, since this session is untrusted"
    return f"Remembered as {results.memory(kept)}; {found}."


def _forget(backend: Backend, arguments: Arguments) -> str:
    gone, undo = backend.forget(arguments["id"])
    return f"Forgotten: {results.memory(gone)}. For a day the user can undo that with `{undo}`."


def _moment(arguments: Arguments, name: str) -> int | None:
    """Return the time in an argument; None if it is missing. Raises RefusedError."""
    if name not in arguments:
        return None
    found = milliseconds_at(arguments[name])
    if found is None:
        raise RefusedError(f"`{name}` is not a time", f"give {EXAMPLES}")
    return found


def _clear(backend: Backend, arguments: Arguments) -> str:
    return for_prompt(backend.clear(arguments["name"]))


def _resume(backend: Backend, arguments: Arguments) -> str:
    session = chosen(backend.sessions(), arguments["id"])
    return for_prompt(backend.resume(session, arguments.get("save_as")))


def text_argument(description: str, most: int = TEXT_CHARACTERS, least: int = 1) -> Schema:
    """Return the schema of a text."""
    return {"type": "string", "description": description, "minLength": least, "maxLength": most}


def choice_argument(description: str, *choices: str) -> Schema:
    """Return the schema of a choice of words."""
    return {"type": "string", "description": description, "enum": [*choices]}


def number_argument(description: str, default: int, least: int, most: int) -> Schema:
    """Return the schema of a whole number."""
    return {"type": "integer", "description": description, "default": default, "minimum": least, "maximum": most}


def arguments_schema(required: dict[str, Schema], optional: dict[str, Schema], least: int = 0) -> Schema:
    """Return the schema of all arguments of a tool; at least `least` of them must be given."""
    properties = {**required, **optional}
    schema = {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}
    return {**schema, "minProperties": least} if least else schema


_QUERY = text_argument("Words to look for; messages with the most of them come first.", QUERY_CHARACTERS)
_LIMITS = {
    "limit": number_argument("How many excerpts to show.", 10, 1, MOST_FOUND),
    "since": text_argument("Only messages from then on: `2026-02-01`, `3d`, `2h`, `yesterday`."),
    "until": text_argument("Only messages before then, in the same form."),
    "project": text_argument("Only sessions in a directory that this is part of, such as `webshop`."),
}

TOOLS = (
    Tool(
        "list_sessions",
        "List sessions",
        "Lists the sessions of this agent, the latest first: name, id, when it was last used, which one you are in. "
        "Use it to find the session that the user means ('the conversation about taxes', 'what we did on Discord') "
        "before read_session or resume_session, which take a name or an id from here. To find a conversation by what "
        "was said in it, use search_sessions.",
        arguments_schema(
            {}, {"skip": number_argument("Leave out this many of the latest, to see older ones.", 0, 0, MOST_SKIPPED)}
        ),
        _list,
        True,
    ),
    Tool(
        "clear_session",
        "Clear the session",
        "Ends this conversation and keeps it under a name, so that the user's next message begins a new one with an "
        "empty context. Use it only when the user asks for that ('let us start over', 'new topic', 'clear this'). "
        "Nothing is lost: what was said stays searchable, and resume_session comes back to it.",
        arguments_schema(
            {"name": text_argument("What the user would call this conversation, such as `Japan trip`.")}, {}
        ),
        _clear,
        False,
    ),
    Tool(
        "resume_session",
        "Resume a session",
        "Continues an earlier conversation from the user's next message on, with everything said in it. "
        "Use it when the user wants to continue, or switch to, another conversation. To look something up in one, use "
        "read_session or search_sessions: they leave this conversation as it is.",
        arguments_schema(
            {"id": text_argument("The id of the session as list_sessions shows it, such as `3`.")},
            {
                "save_as": text_argument(
                    "A name under which to keep the present conversation; without one it is no longer listed."
                )
            },
        ),
        _resume,
        False,
    ),
    Tool(
        "search_sessions",
        "Search past conversations",
        "Searches what was said in past conversations of this agent, by the user or you. Use it when the user refers "
        "to something earlier ('what did we decide about the budget?'), when context seems to be missing, or before "
        "you ask for what you may have been told. Give the words that were probably used, not a whole question: "
        "`budget decision Q3`. Returns memories, then excerpts, each with its session; read_session shows more.",
        arguments_schema({"query": _QUERY}, _LIMITS),
        _search,
        True,
    ),
    Tool(
        "seen_error",
        "Look up an error",
        "Finds earlier failures of a command or tool with the same error in any session, and what was edited or run "
        "before it worked. Use it before you look for the cause of an error yourself. Give the line that names the "
        "problem, or all of the output; numbers and paths may differ.",
        arguments_schema(
            {"error": text_argument("The error as printed; any of several lines may match.", ERROR_CHARACTERS)},
            {"limit": number_argument("How many occurrences to show.", 3, 1, MOST_FOUND)},
        ),
        _seen_error,
        True,
    ),
    Tool(
        "remember",
        "Remember",
        "Stores a fact, a decision or a preference for all later sessions. Use it when the user asks you to remember "
        "something, or settles something that later sessions need to know. Give one sentence that can be understood "
        "alone, and the words of this session that prove it. An existing memory is not stored twice.",
        arguments_schema(
            {
                "text": text_argument("What to remember, in one or two sentences.", MEMORY_CHARACTERS),
                "quote": text_argument("What was said in this session, word for word.", MEMORY_CHARACTERS, 8),
            },
            {"kind": choice_argument("Its kind; the default is fact.", "fact", "decision", "preference")},
        ),
        _remember,
        False,
        True,
    ),
    Tool(
        "forget",
        "Forget a memory",
        "Deletes a memory: searches no longer find it, and it is not created again. Use it only when the user says "
        "that a memory is wrong or should be forgotten. The sessions themselves stay.",
        arguments_schema({"id": text_argument("The id of the memory, as search_sessions shows it.")}, {}),
        _forget,
        False,
        is_destructive=True,
    ),
    Tool(
        "read_session",
        "Read a session",
        "Shows the last messages of a session with their times, and a line such as `[Edit a.md]` for each tool use. "
        "Use it to see what was said or done in another session, or before you repeat work that it may have done. "
        "Start with few lines, and go further back with `skip` if the answer is not among them.",
        arguments_schema(
            {
                "name": text_argument(
                    "The name or id of the session as list_sessions shows it, or how one of them begins."
                )
            },
            {
                "lines": number_argument("How many messages to show.", 20, 1, MOST_LINES),
                "skip": number_argument("Leave out this many of the latest, to read further back.", 0, 0, MOST_SKIPPED),
            },
        ),
        _read,
        True,
    ),
)


SEARCH_GRAPH = Tool(
    "search_graph",
    "Search the knowledge graph",
    "Searches facts about people, projects and things that were drawn from past conversations, each with the days on "
    "which it began and ceased to be true. Use it for how things relate ('who owns the shop?', 'what uses Redis?') and "
    "for what changed; for what was said, word for word, use search_sessions. Returns facts, each with the ids of its "
    "sessions; read_session shows more.",
    arguments_schema(
        {"query": text_argument("A question, or what it is about.", QUERY_CHARACTERS)},
        {"limit": number_argument("How many facts to show.", 10, 1, MOST_FOUND)},
    ),
    _search_graph,
    True,
)  # only if there is a graph


SEARCH_TEAM = Tool(
    "search_team",
    "Search the team's conversations",
    "Searches messages and memories of sessions on other machines: the user's own, and those that teammates share. Use "
    "it when the user refers to something that a colleague, or the user on another computer, did or decided; when an "
    "update names a session such as `ann@laptop`; and when search_sessions finds nothing. Returns excerpts, each with "
    "its author and place, and an id such as `team-8589934592` for read_session.",
    arguments_schema({"query": _QUERY}, _LIMITS),
    _search_team,
    True,
)  # only if the home joined a team
