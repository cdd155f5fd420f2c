"""Find answers in a transcript to prompts that a host sent before it was killed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ..runtimes import Runtime
from ..runtimes.records import TURNS, PromptId, Reply
from ..system.files import open_regular
from ..transcripts.lines import first_line, lines_forward
from ..transcripts.reader import TranscriptReader


class RecoveredAnswer(NamedTuple):
    """The reply in a transcript to the prompts with these ids."""

    uuids: tuple[str, ...]
    text: str


class Recovered(NamedTuple):
    """The answered prompts, and the ids of those that the runtime had received but not answered."""

    answers: list[RecoveredAnswer]
    begun: set[str]


def recover(runtime: Runtime, transcript: str, prompt_ids: Collection[str]) -> Recovered:
    """Return the state of the prompts with these ids; nothing without a transcript."""
    found = Recovered([], set())
    final_id, text = "", ""
    for record in _records(runtime, transcript, prompt_ids):
        turn = runtime.records.events(record, 0, TURNS)
        prompt_id = next((one.id for one in turn if isinstance(one, PromptId)), "")
        reply = next((one for one in turn if isinstance(one, Reply)), None)
        if final_id and (reply is None or reply.message_id != final_id):
            _close(found, text)
            final_id, text = "", ""
        if prompt_id in prompt_ids:
            found.begun.add(prompt_id)
        elif reply is not None and reply.ends_turn and found.begun:
            final_id = reply.message_id
            text = "\n\n".join([part for part in (text, reply.text) if part])
    if final_id:
        _close(found, text)
    return found


def _close(found: Recovered, text: str) -> None:
    found.answers.append(RecoveredAnswer(tuple(sorted(found.begun)), text))
    found.begun.clear()


def _records(runtime: Runtime, transcript: str, prompt_ids: Collection[str]) -> Iterator[dict[str, Any]]:
    """Return the records from the first one that names one of the prompts."""
    wanted = [prompt_id.encode() for prompt_id in prompt_ids]
    try:
        descriptor = open_regular(transcript)
    except OSError:
        return
    try:
        reader = TranscriptReader(runtime, first_line(descriptor))
        is_begun = False
        for _, line in lines_forward(descriptor, 0, os.fstat(descriptor).st_size):
            is_begun = is_begun or any(prompt_id in line for prompt_id in wanted)
            if is_begun:
                yield from reader.records(line)
    finally:
        os.close(descriptor)
