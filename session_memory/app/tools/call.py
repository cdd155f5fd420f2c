"""Calling a tool: checks the arguments, and turns every error into text that a model can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.errors import LockedError, SessionMemoryError
from ...common.system.json import as_string
from ...common.system.terminal import print_traceback
from ...common.text.format import whole_number
from . import results
from .definitions import ARGUMENTS, tools_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from .backend import Backend
    from .definitions import Schema, Tool

    Call = Callable[[str, object], "ToolResult"]


class Served(NamedTuple):
    """The tools that a server offers an agent, and a function that calls one by name."""

    tools: tuple[Tool, ...]
    call: Call


class ToolResult(NamedTuple):
    """The text for the model that called a tool, and values for a tool with an `output` schema."""

    text: str
    is_error: bool = False
    data: dict[str, Any] | None = None


def call(backend: Backend, name: str, arguments: object) -> ToolResult:
    """Call the tool `name` and return its result.

    Clients add arguments of their own, send null for absent arguments, and send numbers as text. So
    an unknown argument is ignored, and any usual spelling of a value is accepted. Raises KeyError
    for an unknown tool, and nothing else."""
    tool = {tool.name: tool for tool in tools_for(backend)}[name]
    try:
        words = _read(tool, {} if arguments is None else arguments)
    except _WrongArgumentError as error:
        return ToolResult(results.problem(f"{name}: {error}", "call it again"), True)
    try:
        result = tool.run(backend, words)
        return ToolResult(
            results.bounded(result), data=result.data if isinstance(result, results.Told) else None
        )
    except LockedError:
        problem, hint = (
            "another process is busy with the same conversations",
            "try again in a moment",
        )
    except SessionMemoryError as error:
        problem, hint = str(error), error.hint
    except OSError as error:
        # omit the path, because the model may not be allowed to know the directory
        problem, hint = (
            f"{name}: {error.strerror or 'the files cannot be read'}",
            "tell the user if it happens again",
        )
    except Exception as error:
        print_traceback(error)
        problem, hint = (
            f"{name} failed ({type(error).__name__})",
            "continue without it, and tell the user",
        )
    return ToolResult(results.bounded(results.problem(problem, hint)), True)


class _WrongArgumentError(ValueError):
    """A missing argument, or one whose value cannot be read; the message names it."""


def _read(tool: Tool, given: object) -> dict[str, Any]:
    """Return the arguments of a call in the types of the tool. Raises _WrongArgumentError."""
    schema = tool.schema
    properties = schema["properties"]
    takes = f"it takes {', '.join(properties)}" if properties else "it takes no arguments"
    if not isinstance(given, dict):
        raise _WrongArgumentError(f"arguments must be an object; {takes}")
    for key in given:
        if key not in properties and key in ARGUMENTS[tool.name]:
            raise _WrongArgumentError(f"only main may use the argument `{key}`; {takes}")
    words = {}
    for key, wanted in properties.items():
        value = _value(key, given.get(key), wanted)
        is_blank = isinstance(value, str) and not value.strip() and wanted.get("minLength", 1) > 0
        if key in schema["required"]:
            if value is None:
                raise _WrongArgumentError(f"`{key}` is missing; {takes}")
        elif value is None or is_blank:
            continue
        words[key] = _checked(key, value, wanted)
    if len(words) < schema.get("minProperties", 0):
        raise _WrongArgumentError(f"it changes nothing; {takes}")
    return words


def _value(key: str, value: object, wanted: Schema) -> str | int | None:
    """Return a value in the type that a schema requires; None for an absent value.

    Raises _WrongArgumentError."""
    if value is None or (value == "" and wanted["type"] == "integer"):
        return None
    if wanted["type"] == "integer":
        number = None if isinstance(value, bool) else whole_number(value)
        if number is None:
            raise _WrongArgumentError(f"`{key}` must be a whole number")
        return number
    # such as an id or an interval
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = whole_number(value)
        return str(value if number is None else number)
    if not isinstance(value, str):
        raise _WrongArgumentError(f"`{key}` must be a text")
    return as_string(value).strip().lower() if "enum" in wanted else as_string(value)


def _checked(key: str, value: str | int, wanted: Schema) -> str | int:
    if "enum" in wanted:
        problem = "" if value in wanted["enum"] else f"is {' or '.join(wanted['enum'])}"
    elif isinstance(value, str):
        low, high = wanted["minLength"], wanted["maxLength"]
        problem = "" if low <= len(value) <= high else f"is {low} to {high} characters"
    else:
        low, high = wanted["minimum"], wanted["maximum"]
        problem = "" if low <= value <= high else f"is a number from {low} to {high}"
    if problem:
        raise _WrongArgumentError(f"`{key}` {problem}")
    return value
