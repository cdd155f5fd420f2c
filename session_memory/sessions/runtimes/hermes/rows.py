"""The rows of Hermes's database as lines of a mirror: steps of a trajectory and results."""

from __future__ import annotations

from zlib import crc32

from ....common.system.json import (
    as_list,
    as_object,
    as_string,
    decode,
    encode,
    objects_in,
    objects_of,
)
from ....common.text.timestamps import iso_time
from ...transcripts.entries import INTRODUCTION
from ..atif.records import STEP
from .records import SESSION, USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Record = dict[str, Any]

_JSON = "\0json:"  # begins a content that is a list of parts
# how prompts begin that Hermes wrote itself
_OF_PROGRAM = ("[IMPORTANT: ", "[ASYNC DELEGATION ", "[System: ", "[System note: ")
_SKILL = "[IMPORTANT: The user has invoked the "
# Before the words that a person typed after a skill's name, and the texts that may follow these
_WITH_SKILL = "The user has provided the following instruction alongside the skill invocation: "
_WITH_SKILLS = "\nUser instruction: "
_BEHIND_WORDS = ("\n\n[Runtime note:", "\n\n[Loaded as part of the ")
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:", "[PRIOR CONTEXT ")
_NOTE = "[Note: model was just switched "  # before a prompt


# the columns with numbers of tokens
AMOUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_ROUTE = ("model", "billing_provider", "billing_base_url", "billing_mode", "task")


class HermesUsage:
    """The tokens that a session has used so far, of one model for one purpose.

    The `key` identifies model and purpose. The `totals` are in the order of AMOUNTS."""

    def __init__(self, session_id: str, row: Mapping[str, object]) -> None:
        self._session_id, self._model = session_id, as_string(row.get("model"))
        self._seconds = _seconds(row.get("last_seen"))
        self.key = _checksum([row.get(name) for name in _ROUTE])
        given = [row.get(name) for name in AMOUNTS]
        self.totals = [each if isinstance(each, int) and each > 0 else 0 for each in given]

    def line(self, before: list[int]) -> Record | None:
        """Return the line with the tokens since the totals `before`; None if there are none."""
        new = [max(0, now - then) for now, then in zip(self.totals, before)]
        if not any(new):
            return None
        return {
            "type": USAGE,
            "id": f"{self._session_id}:{self.key}-{_checksum(self.totals)}",
            "timestamp": iso_time(self._seconds),
            "model": self._model,
            "usage": dict(zip(AMOUNTS, new)),
        }


def _checksum(values: list[object] | list[int]) -> str:
    return f"{crc32(repr(values).encode('utf-8', 'surrogatepass')):08x}"


class HermesSession:
    """A session. The row may contain anything: SQLite's columns accept values of every type."""

    def __init__(self, row: Mapping[str, object]) -> None:
        self.id, self.source, self.model, self.title, self.parent, self.end, directory = [
            as_string(row.get(name))
            for name in ("id", "source", "model", "title", "parent_session_id", "end_reason", "cwd")
        ]
        self.directory = directory if directory.startswith("/") else ""
        self.started = _seconds(row.get("started_at"))
        config = _decoded(row.get("model_config"))
        self.is_of_subagent = self.source == "subagent" or bool(config.get("_delegate_from"))
        self.is_branch = bool(config.get("_branched_from"))

    def continues(self, above: HermesSession) -> bool:
        """Check if the session is the one `above` after a compaction."""
        return above.end == "compression" and not self.is_branch and not self.is_of_subagent

    def copies(self, above: HermesSession) -> bool:
        """Check if the session begins with copies of rows of the one `above`."""
        is_branch = self.is_branch or above.end == "branched"
        return self.continues(above) or (is_branch and not self.is_of_subagent)

    def header(self, own_id: str, directory: str, parent: str) -> Record:
        """Return the first record of the session's mirror, which has the id `own_id`.

        `parent` is the session that started a sub-agent."""
        return {
            "type": SESSION,
            "id": own_id,
            "timestamp": iso_time(self.started),
            "cwd": directory,
            "started_by": self.source,
            **({"parent_id": parent} if parent else {}),
        }

    @classmethod
    def exported_lines(cls, content: bytes) -> list[Record | bytes]:
        """Return a session as the lines of a mirror; [] if `content` is not one.

        The forms are an export of Hermes, which is an object with `messages`, and a kept copy, where
        each message is a line of its own."""
        rows = [record for line in content.splitlines() for record in objects_in(line)]
        first = rows[0] if rows else {}
        if not (first.get("id") and "started_at" in first and "source" in first):
            return []
        session, messages = cls(first), objects_of(first.get("messages")) or rows[1:]
        lines: list[Record | bytes] = [session.header(session.id, session.directory, "")]
        if session.title:
            lines.append({"type": "title", "title": session.title})
        parent = ""
        for number, row in enumerate(messages, 1):
            calls = row.get("tool_calls")
            given = encode(calls) if isinstance(calls, list) else calls
            message = HermesMessage({**row, "id": number, "tool_calls": given})
            line = message.line(session, parent)
            if line is not None:
                lines.append(line)
                parent = as_string(line.get("id")) if line["type"] == STEP else parent
        return lines


class HermesMessage:
    """A message of a session."""

    def __init__(self, row: Mapping[str, object]) -> None:
        number = row.get("id")
        self.number = number if isinstance(number, int) else 0
        self.seconds = _seconds(row.get("timestamp"))
        self.role = as_string(row.get("role"))
        self.text = _text_of(row.get("content"))
        self.is_undone = row.get("active") == 0 and not row.get("compacted")
        self._row = row
        calls = row.get("tool_calls")
        self._calls = objects_of(_list_in(calls)) if isinstance(calls, str) and calls else []

    @property
    def is_summary(self) -> bool:
        """Return whether the message is the summary of a compaction."""
        return self.text.startswith(_SUMMARIES)

    @property
    def key(self) -> tuple[str, ...]:
        """Return the parts that a copy has too: a compaction shortens results and arguments.

        A branch in Hermes's terminal page lacks the ids of calls, which are the last parts."""
        if self.role == "tool":
            return (self.role, as_string(self._row.get("tool_call_id")))
        return (self.role, self.text, *[as_string(call.get("id")) for call in self._calls])

    def line(self, session: HermesSession, parent: str) -> Record | None:
        """Return the step or result; None for a message that nobody said.

        `parent` is the id of the step before it."""
        line = self._identity
        if self.role == "tool":
            call_id = as_string(self._row.get("tool_call_id"))
            return {"type": "result", "id": call_id, **line, **self._outcome()} if call_id else None
        said = self._said(session)
        if said is None:
            return None
        # in the copy of a database, later rows get the same numbers, but are others
        row = crc32(f"{line['timestamp']} {line['sum']}".encode())
        ids = {"id": f"{session.id}:{self.number}-{row:08x}", "parent": parent}
        return {"type": STEP, **ids, **line, **said}

    def compaction(self) -> Record:
        """Return the line of a summary."""
        management = {"type": "compaction"}
        return {
            "type": STEP,
            "source": "system",
            **self._identity,
            "context_management": management,
        }

    @property
    def _identity(self) -> Record:
        """Return the parts that identify the message; in another row the `sum` is the same."""
        given = self._row.get("content")
        parts = [*self.key, None if isinstance(given, bytes) else given]
        content = encode(parts).encode("utf-8", "replace")
        return {
            "number": self.number,
            "timestamp": iso_time(self.seconds),
            "sum": crc32(content),
        }

    def _said(self, session: HermesSession) -> Record | None:
        """Return the parts of a step; None if the message is another one."""
        row = self._row
        if self.role == "user":
            text = _typed(self.text) if not row.get("observed") else ""
            sent = as_string(row.get("api_content"))
            added = sent[len(self.text) :].strip() if sent.startswith(self.text) else ""
            context = {"context": added} if INTRODUCTION in added else {}
            return {"source": "user", "message": text, **context} if text or context else None
        if self.role != "assistant" or self.is_summary or not (self.text or self._calls):
            return None
        thinking = as_string(row.get("reasoning_content")) or as_string(row.get("reasoning"))
        said = {
            "source": "agent",
            "message": self.text,
            "model": session.model,
            "tool_calls": [_call(call) for call in self._calls],
            "reasoning_content": thinking,
        }
        return {name: part for name, part in said.items() if part}

    def _outcome(self) -> Record:
        """Return the text of a result, and whether it failed.

        The text is JSON. A failed command has only an `exit_code`."""
        given = next(iter(objects_in(self.text.encode("utf-8", "replace"))), {})
        exit_code, error = given.get("exit_code"), given.get("error")
        extra: Record = {}
        if isinstance(exit_code, int):
            extra["exit_code"] = exit_code
        if given.get("success") is False or (error and not given.get("success")):
            extra["is_error"] = True
        is_refused = isinstance(error, str) and error.startswith(INTRODUCTION)
        if is_refused or self._row.get("effect_disposition") == "none":
            extra["has_run"] = False
        output = given.get("output")
        texts = [text for text in (output, error) if isinstance(text, str) and text]
        content = "\n".join(texts) if "exit_code" in given else self.text
        return {"content": content, **({"extra": extra} if extra else {})}


def _typed(prompt: str) -> str:
    """Return the words of a person in a prompt; '' if Hermes wrote it."""
    if prompt.startswith(_NOTE):
        prompt = prompt.partition("]\n\n")[2]
    if prompt.startswith(_SKILL):
        words = prompt.rpartition(_WITH_SKILL)[2] if _WITH_SKILL in prompt else ""
        words = words or prompt.partition(_WITH_SKILLS)[2]
        for mark in _BEHIND_WORDS:
            words = words.partition(mark)[0]
        return words.strip()
    return "" if prompt.startswith((*_OF_PROGRAM, *_SUMMARIES)) else prompt


def _call(call: Record) -> Record:
    """Return a call in a message as a trajectory has it."""
    function = as_object(call.get("function")) or call
    arguments = function.get("arguments")
    given = _decoded(arguments) if isinstance(arguments, str) else as_object(arguments)
    name, call_id = as_string(function.get("name")), as_string(call.get("id"))
    return {"tool_call_id": call_id, "function_name": name, "arguments": given}


def _text_of(content: object) -> str:
    """Return the text of a message, which is a string or a list of parts."""
    if isinstance(content, str) and content.startswith(_JSON):
        parts = objects_of(_list_in(content[len(_JSON) :]))
        texts = [as_string(part.get("text")) for part in parts if part.get("type") == "text"]
        return "\n\n".join(filter(None, texts)) or "[image]"
    return content.strip() if isinstance(content, str) else ""


def _list_in(text: str) -> list[Any]:
    try:
        return as_list(decode(text))
    except (ValueError, RecursionError):
        return []


def _decoded(text: object) -> Record:
    """Return the object in a column; empty if there is none."""
    try:
        return as_object(decode(text) if isinstance(text, str) else None)
    except (ValueError, RecursionError):
        return {}


def _seconds(value: object) -> float:
    """Return the seconds since 1970 in a column; 0 if it is not a time up to the year 9999."""
    is_time = isinstance(value, (int, float)) and 0 < value < 253_402_300_800
    return float(value) if is_time and isinstance(value, (int, float)) else 0.0
