"""The tools of the rows of `extension_points.TOOLS`, each defined once.

The tools.json beside the module of a tool's function has its name, its description for the model,
and the schema of its arguments.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.extensions import load_present
from ...common.system.files import read_whole
from ...extension_points import TOOLS as TOOLS_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from .backend import Backend

    Arguments = Mapping[str, Any]
    Schema = dict[str, Any]

SERVER = "session-memory"
INSTRUCTIONS = (
    "The memory of all sessions of this agent. Use search_sessions before you ask the user for "
    "something from another conversation, or say that you do not know it."
)


class Tool(NamedTuple):
    """A tool for agents.

    `schema` is the JSON Schema of its arguments; `run` calls the backend and returns the text for
    the model. `is_read_only` means that it changes nothing, `is_destructive` that it deletes
    something. If it `is_idempotent`, a second call with the same arguments changes nothing, so it
    may be repeated after a crash. `audience` is everyone, agents with a `home` of their own, or
    another of `Backend.audiences`. `output` is the JSON Schema of the values that `run` returns
    beside the text (results.Told). `adapted` returns the tool for a set of audiences; None if all
    get the same tool."""

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
    adapted: Callable[[Tool, Collection[str]], Tool] | None = None

    @property
    def annotations(self) -> dict[str, Any]:
        """Hints for MCP clients, for instance for deciding whether to ask the user."""
        hints = {"destructiveHint": self.is_destructive, "idempotentHint": self.is_idempotent}
        changes = {} if self.is_read_only else hints
        return {
            "title": self.title,
            "readOnlyHint": self.is_read_only,
            **changes,
            "openWorldHint": False,
        }


@cache
def _defined(directory: str) -> dict[str, dict[str, Any]]:
    """Return the definitions in a directory's tools.json, by the name of the tool."""
    return {each["name"]: each for each in json.loads(read_whole(f"{directory}/tools.json"))}


def _tools() -> Iterator[Tool]:
    """Yield the tools of all rows whose module is there."""
    for name, place in TOOLS_BY_NAME.items():
        for run in load_present([place]):
            module = sys.modules[run.__module__]
            definition = _defined(os.path.dirname(os.path.abspath(str(module.__file__))))[name]
            yield Tool(**definition, run=run, adapted=getattr(module, "adapted", None))


ALL = tuple(_tools())
# that any agent may give
ARGUMENTS = {tool.name: frozenset(tool.schema["properties"]) for tool in ALL}
TOOLS = tuple([tool for tool in ALL if tool.audience in ("everyone", "home")])


def tools_for(backend: Backend) -> tuple[Tool, ...]:
    """Return the tools of an agent with this backend."""
    return tools_of(backend.audiences)


def tools_of(audiences: Collection[str]) -> tuple[Tool, ...]:
    """Return the tools of an agent that belongs to these audiences."""
    return tuple(
        [
            tool.adapted(tool, audiences) if tool.adapted else tool
            for tool in ALL
            if tool.audience in audiences
        ]
    )
