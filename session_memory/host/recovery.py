"""The answers that a transcript holds to prompts which a host gave before it was killed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ..system.files import open_regular
from ..system.json import decode_line
from ..transcripts.lines import lines_forward

# With these a message of the model is not the last one of its turn.
_GOES_ON = (None, "tool_use", "pause_turn")


class RecoveredAnswer(NamedTuple):
    """The reply in a transcript to the prompts with these ids."""

    uuids: tuple[str, ...]
    text: str


class Recovered(NamedTuple):
    """The prompts that were answered, and the ids of those that the runtime had taken but not answered."""

    answers: list[RecoveredAnswer]
    begun: set[str]


def recover(transcript: str, uuids: Collection[str]) -> Recovered:
    """What became of the prompts with these ids; nothing where there is no transcript."""
    found = Recovered([], set())
    final_id, text = "", ""
    for record in _records(transcript):
        own_id = _prompt_id(record)
        message = record.get("message") if record.get("type") == "assistant" else None
        is_more = isinstance(message, dict) and message.get("id") == final_id
        if final_id and not is_more:
            _close(found, text)
            final_id, text = "", ""
        if own_id in uuids:
            found.begun.add(own_id)
        elif isinstance(message, dict) and _is_final(record, message) and found.begun:
            final_id = str(message.get("id"))
            text = "\n\n".join([part for part in (text, _text(message)) if part])
    if final_id:
        _close(found, text)
    return found


def _close(found: Recovered, text: str) -> None:
    found.answers.append(RecoveredAnswer(tuple(sorted(found.begun)), text))
    found.begun.clear()


def _prompt_id(record: dict[str, Any]) -> str:
    """The id that whoever sent a prompt gave it: its record's own, or, where it came in the middle of a turn, the one
    that the attachment names."""
    attachment = record.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return str(attachment.get("source_uuid"))
    return str(record.get("uuid")) if record.get("type") == "user" else ""


def _is_final(record: dict[str, Any], message: dict[str, Any]) -> bool:
    is_the_models = not record.get("isSidechain") and not record.get("isApiErrorMessage")
    return is_the_models and message.get("model") != "<synthetic>" and message.get("stop_reason") not in _GOES_ON


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    return "\n\n".join([text for text in texts if isinstance(text, str)])


def _records(transcript: str) -> Iterator[dict[str, Any]]:
    try:
        descriptor = open_regular(transcript)
    except OSError:
        return
    try:
        for _, line in lines_forward(descriptor, 0, os.fstat(descriptor).st_size):
            if b'"type":"assistant"' in line or b'"type":"user"' in line or b'"queued_command"' in line:
                yield from (record for record in decode_line(line)[0] if isinstance(record, dict))
    finally:
        os.close(descriptor)
