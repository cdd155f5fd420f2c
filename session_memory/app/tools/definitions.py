"""The tools, each defined once: in tools.json its name, its description for the model and the
schema of its arguments; here its function, which bears its name."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.system.files import read_whole
from ...common.text.format import ELLIPSIS, has_words
from ...common.text.sanitize import for_prompt
from ...common.text.timestamps import EXAMPLES, last_millisecond, milliseconds_at
from . import _results as results
from .values import EVERYWHERE, RefusedError, SearchLimits, team_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..projects import Project
    from .backend import Backend
    from .values import Administration, ListedSession

    Arguments = Mapping[str, Any]
    Schema = dict[str, Any]

SERVER = "session-memory"
INSTRUCTIONS = (
    "The memory of all sessions of this agent. Use search_sessions before you ask the user for "
    "something from another conversation, or say that you do not know it."
)
_OF_MAIN = " As the agent of main, you see and change the tasks of all groups."
_FOR_MAIN = "group"  # an argument of a task's tool that only the agent of main has


class Tool(NamedTuple):
    """A tool: `schema` is the JSON Schema of its arguments; `run` calls the backend and returns the
    text for the model.

    `is_read_only`: changes nothing. `is_idempotent`: a second call with the same arguments changes
    nothing, so it may be repeated after a crash. `is_destructive`: deletes something. `audience`:
    everyone, those with a `home` of their own, a knowledge `graph` or a `team`, those in a `group`
    of a host, or `main`, the group that administers the others. `output` is the JSON Schema of what
    `run` returns as values beside the text (results.Told)."""

    name: str
    title: str
    description: str
    schema: Schema
    run: Callable[[Backend, Arguments], str]
    is_read_only: bool
    audience: str
    is_idempotent: bool = False
    is_destructive: bool = False
    output: Schema | None = None

    @property
    def annotations(self) -> dict[str, Any]:
        """The hints for MCP clients, for instance before they ask the user."""
        hints = {"destructiveHint": self.is_destructive, "idempotentHint": self.is_idempotent}
        changes = {} if self.is_read_only else hints
        return {
            "title": self.title,
            "readOnlyHint": self.is_read_only,
            **changes,
            "openWorldHint": False,
        }


def chosen(listed: list[ListedSession], wanted: str) -> ListedSession:
    """Return the session called `wanted`, as `_called` finds it. Raises RefusedError."""
    found = _called(listed, wanted)
    if found is None:
        hint = (
            f"the sessions are: {results.candidates(listed)}"
            if listed
            else "there are no sessions yet"
        )
        raise RefusedError(f"no session is called {wanted!r}", hint)
    return found


def _called(listed: list[ListedSession], wanted: str) -> ListedSession | None:
    """Return the session called `wanted`: by id, else by name, else the only one whose name or id
    begins so, else the only one with these words in its name. None if no listed one is; raises
    RefusedError if several are."""
    plain = wanted.strip().removesuffix(ELLIPSIS).casefold()
    for fits in (
        lambda one: plain in (one.id.casefold(), one.session_id.casefold()),
        lambda one: plain == results.name_of(one).casefold(),
        lambda one: (
            results.name_of(one).casefold().startswith(plain) or one.session_id.startswith(plain)
        ),
        lambda one: has_words(results.name_of(one), plain),
    ):
        found = [one for one in listed if fits(one)] if plain else []
        if len(found) == 1:
            return found[0]
        if found:
            problem = f"several sessions are called {wanted!r}"
            raise RefusedError(
                problem,
                f"ask again with the id of one of these: "
                f"{results.candidates(found, with_age=True)}",
            )
    return None


def chosen_here(backend: Backend, name: str) -> ListedSession:
    """Return the local session of that name, or else of a conversation's or memory's id.

    Updates name a team's sessions as `ann@laptop`. Raises RefusedError."""
    listed = backend.sessions()
    found = _called(listed, name) or backend.session_behind(name.strip())
    if found:
        return found
    if backend.has_team and "@" in name:
        hint = (
            "it may be on another machine: search_team finds its messages, with an id for "
            "read_session"
        )
        raise RefusedError(f"no session is called {name!r}", hint)
    return chosen(listed, name)


def list_sessions(backend: Backend, arguments: Arguments) -> str:
    return results.listing(backend.sessions(), arguments.get("skip", 0), time.time())


def read_session(backend: Backend, arguments: Arguments) -> str:
    lines, skip = arguments.get("lines", 20), arguments.get("skip", 0)
    conversation = team_conversation(arguments["name"]) if backend.has_team else None
    if conversation is None:
        session = chosen_here(backend, arguments["name"])
        entries, unreadable = backend.entries(session, lines + skip)
    else:
        (session, entries), unreadable = backend.team_entries(conversation, lines + skip), 0
    is_all = len(entries) < lines + skip
    return results.log(
        session, entries[: max(0, len(entries) - skip)], unreadable, skip, is_all=is_all
    )


def search_sessions(backend: Backend, arguments: Arguments) -> str:
    limit = arguments.get("limit", 10)
    limits = _limits(arguments)
    found = backend.search(arguments["query"], limit, limits)
    return results.search_results(found, limit, is_limited=limits != EVERYWHERE)


def search_team(backend: Backend, arguments: Arguments) -> str:
    limit = arguments.get("limit", 10)
    found = backend.search_team(arguments["query"], limit, _limits(arguments))
    nothing = results.Told(results.NOTHING_IN_TEAM, note=results.NOTHING_IN_TEAM, results=[])
    return results.search_results(found, limit) if found else nothing


def seen_error(backend: Backend, arguments: Arguments) -> str:
    return results.seen_errors(backend.errors(arguments["error"]), arguments.get("limit", 3))


def why(backend: Backend, arguments: Arguments) -> str:
    return backend.why(arguments["what"])


def search_graph(backend: Backend, arguments: Arguments) -> str:
    limit = arguments.get("limit", 10)
    return results.graph_facts(backend.search_graph(arguments["query"], limit), limit)


def remember(backend: Backend, arguments: Arguments) -> str:
    kept = backend.remember(arguments.get("kind", "fact"), arguments["text"], arguments["quote"])
    found = "other sessions find it with search_sessions"
    if kept.is_untrusted:
        found = "only a person finds it, because this session is untrusted"
    return f"Remembered as {results.memory(kept)}; {found}."


def forget(backend: Backend, arguments: Arguments) -> str:
    gone, undo = backend.forget(arguments["id"])
    return f"Forgotten: {results.memory(gone)}. The user can undo that for a day with `{undo}`."


def clear_session(backend: Backend, arguments: Arguments) -> str:
    return for_prompt(backend.clear(arguments["name"]))


def resume_session(backend: Backend, arguments: Arguments) -> str:
    session = chosen(backend.sessions(), arguments["id"])
    return for_prompt(backend.resume(session, arguments.get("save_as")))


def schedule_task(backend: Backend, arguments: Arguments) -> str:
    task = _of(backend).schedule(
        arguments.get("group", ""),
        arguments["prompt"],
        arguments["schedule_type"],
        arguments["schedule_value"],
        arguments.get("context_mode", "group"),
    )
    return f"Done: {results.task(task, _of(backend).group)}\n{results.clock(time.time())}"


def list_tasks(backend: Backend, arguments: Arguments) -> str:
    return results.tasks(_of(backend).tasks(), _of(backend).group, time.time())


def update_task(backend: Backend, arguments: Arguments) -> str:
    changes = {name: value for name, value in arguments.items() if name != "id"}
    task = _of(backend).update_task(arguments["id"].strip(), changes)
    return f"Done: {results.task(task, _of(backend).group)}\n{results.clock(time.time())}"


def cancel_task(backend: Backend, arguments: Arguments) -> str:
    _of(backend).cancel_task(arguments["id"].strip())
    return (
        f"Done: the task {arguments['id'].strip()} is deleted. A run that has started still "
        f"finishes."
    )


def list_groups(backend: Backend, arguments: Arguments) -> str:
    return results.chats(_of(backend).chats(), time.time())


def register_group(backend: Backend, arguments: Arguments) -> str:
    made = _of(backend).register_group(
        arguments["group"],
        arguments.get("chat", ""),
        arguments.get("name", ""),
        arguments.get("trigger", ""),
    )
    return (
        f"Done: {results.chat(made, time.time())}\ngroups/{made.group}/CLAUDE.md describes "
        f"its agent; you may write it."
    )


def update_group(backend: Backend, arguments: Arguments) -> str:
    changes = {name: value for name, value in arguments.items() if name != "group"}
    return (
        f"Done: {results.chat(_of(backend).update_group(arguments['group'], changes), time.time())}"
    )


def _limits(arguments: Arguments) -> SearchLimits:
    since, until = (
        _moment(arguments, "since", milliseconds_at),
        _moment(arguments, "until", last_millisecond),
    )
    return SearchLimits(since, until, _project(arguments))


def _project(arguments: Arguments) -> Project | None:
    """Return the project in the arguments; None if it is missing. Raises RefusedError."""
    from ..projects import read_project_of_agent

    if not arguments.get("project", ""):
        return None
    try:
        return read_project_of_agent(arguments["project"], os.environ)
    except (ValueError, OSError) as error:
        raise RefusedError(f"`project` is not usable: {error}", "name a directory") from error


def _moment(arguments: Arguments, name: str, read: Callable[[str], int | None]) -> int | None:
    """Return the time in an argument; None if it is missing. Raises RefusedError."""
    if name not in arguments:
        return None
    found = read(arguments[name])
    if found is None:
        raise RefusedError(f"`{name}` is not a time", f"give {EXAMPLES}")
    return found


def _of(backend: Backend) -> Administration:
    if backend.administration is None:
        raise RefusedError("there is no host here", "go on without it")
    return backend.administration


_DEFINED = json.loads(
    read_whole(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools.json"))
)
ALL = tuple([Tool(**values, run=globals()[values["name"]]) for values in _DEFINED])
# that any agent may give
ARGUMENTS = {tool.name: frozenset(tool.schema["properties"]) for tool in ALL}
TOOLS = tuple([tool for tool in ALL if tool.audience in ("everyone", "home")])


def tools_for(backend: Backend) -> tuple[Tool, ...]:
    """Return the tools of an agent with this backend."""
    administration = backend.administration
    if administration is None:
        return _tools_of("everyone", "home", has_graph=backend.has_graph, has_team=backend.has_team)
    return tools_of_group(
        is_main=administration.is_main, has_graph=backend.has_graph, has_team=backend.has_team
    )


def tools_of_group(
    *, is_main: bool, has_graph: bool = False, has_team: bool = False
) -> tuple[Tool, ...]:
    """Return the tools of the agent of a host's group."""
    return _tools_of(
        "everyone", "group", *(["main"] if is_main else []), has_graph=has_graph, has_team=has_team
    )


def _tools_of(*audiences: str, has_graph: bool, has_team: bool) -> tuple[Tool, ...]:
    allowed = {*audiences, *(["graph"] if has_graph else []), *(["team"] if has_team else [])}
    return tuple(
        [_as_told(tool, is_main="main" in allowed) for tool in ALL if tool.audience in allowed]
    )


def _as_told(tool: Tool, *, is_main: bool) -> Tool:
    """Return a tool as the agent of main, or of any other group, gets it."""
    described = tool._replace(
        description=tool.description.replace("{of_main}", _OF_MAIN if is_main else "")
    )
    if is_main or tool.audience != "group":
        return described
    properties = {name: one for name, one in tool.schema["properties"].items() if name != _FOR_MAIN}
    return described._replace(schema={**tool.schema, "properties": properties})
