"""Reads the calls that a tool of Pi made, such as codemode for its script.

They are in the message with the tool's result. Pi 1.6 stores them as `nestedCalls` for every tool.
Earlier versions store them only for codemode, in its `details`, with the arguments as JSON that is
cut off after some characters."""

from __future__ import annotations

from ....common.system.json import as_object, as_string, objects_in, objects_of
from ....common.text.timestamps import epoch_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records import Record

# A line with nested calls contains at least one of these
MARKS = (b'"nestedCalls":{', b'"details":{"calls":[')


def nested_calls(message: Record) -> list[Record]:
    """Return the calls that a tool made, by the message with its result."""
    if message.get("role") != "toolResult":
        return []
    calls = objects_of(as_object(message.get("nestedCalls")).get("calls"))
    return calls or objects_of(as_object(message.get("details")).get("calls"))


def arguments_of(call: Record) -> object:
    """Return the arguments of a nested call, which may be JSON in a string."""
    arguments = call.get("arguments", call.get("args"))
    return (
        next(iter(objects_in(arguments.encode())), {}) if isinstance(arguments, str) else arguments
    )


def nested_began(lines: Iterable[bytes]) -> float | None:
    """Return when a tool with nested calls was called; its result is in the first of `lines`.

    Return None for any other record. The other lines are those before it, last first."""
    several = iter(lines)
    for record in objects_in(next(several, b"")):
        message = as_object(record.get("message"))
        call_id = as_string(message.get("toolCallId"))
        if not (call_id and nested_calls(message)):
            continue
        named = f'"{call_id}"'.encode()
        for line in several:
            if named in line and b'"role":"assistant"' in line:
                return next(
                    (epoch_seconds(caller.get("timestamp")) for caller in objects_in(line)), None
                )
    return None
