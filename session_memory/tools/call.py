"""Calling a tool: checks the arguments, and turns every error into a text that a model can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import LockedError, SessionMemoryError
from ..system.json import as_string
from ..system.terminal import print_traceback
from . import results
from .definitions import tools_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from .backend import Backend
    from .definitions import Schema, Tool

    Call = Callable[[str, object], "ToolResult"]

_TYPES = {"string": (str, "a text"), "integer": (int, "a whole number")}


class Served(NamedTuple):
    """The offer of a server to an agent: the tools, and a function that calls one by name."""

    tools: tuple[Tool, ...]
    call: Call


class ToolResult(NamedTuple):
    """The text for the model that called the tool, and the same as values if the tool has an `output` schema."""

    text: str
    is_error: bool = False
    data: dict[str, Any] | None = None


def call(backend: Backend, name: str, arguments: object) -> ToolResult:
    """Call the tool `name` and return its result. Raises KeyError for an unknown tool, and nothing else."""
    tool = {tool.name: tool for tool in tools_for(backend)}[name]
    given = {} if arguments is None else arguments
    if wrong := _what_is_wrong(given, tool.schema):
        return ToolResult(results.problem(f"{name}: {wrong}", "call it again"), True)
    words = {key: as_string(value) if isinstance(value, str) else value for key, value in given.items()}  # type: ignore[attr-defined]
    try:
        told = tool.run(backend, words)
        return ToolResult(results.bounded(told), data=told.data if isinstance(told, results.Told) else None)
    except LockedError:
        problem, hint = "another process is busy with the same conversations", "try again in a moment"
    except SessionMemoryError as error:
        problem, hint = str(error), error.hint
    except OSError as error:
        # Without the path: the model may not be allowed to know the directory.
        problem, hint = f"{name}: {error.strerror or 'the files cannot be read'}", "tell the user if it happens again"
    except Exception as error:
        print_traceback(error)
        problem, hint = f"{name} failed ({type(error).__name__})", "go on without it, and tell the user"
    return ToolResult(results.bounded(results.problem(problem, hint)), True)


def _what_is_wrong(given: object, schema: Schema) -> str:
    """Return the first mismatch between arguments and a schema, in the subset of JSON Schema that our tools use; '' if
    they match."""
    properties = schema["properties"]
    takes = f"it takes {', '.join(properties)}" if properties else "it takes no arguments"
    if not isinstance(given, dict):
        return f"arguments are an object; {takes}"
    for key in schema["required"]:
        if key not in given:
            return f"`{key}` is missing; {takes}"
    if len(given) < schema.get("minProperties", 0):
        return f"it changes nothing; {takes}"
    for key, value in given.items():
        if key not in properties:
            return f"it has no argument `{str(key)[:40]}`; {takes}"
        problem = _what_is_wrong_with(value, properties[key])
        if problem:
            return f"`{key}` {problem}"
    return ""


def _what_is_wrong_with(value: Any, schema: Schema) -> str:
    kind, words = _TYPES[schema["type"]]
    if not isinstance(value, kind) or isinstance(value, bool):
        return f"is {words}"
    if "enum" in schema:
        return "" if value in schema["enum"] else f"is {' or '.join(schema['enum'])}"
    if isinstance(value, str):
        low, high = schema["minLength"], schema["maxLength"]
        return "" if low <= len(value) <= high else f"is {low} to {high} characters"
    low, high = schema["minimum"], schema["maximum"]
    return "" if low <= value <= high else f"is a number from {low} to {high}"
