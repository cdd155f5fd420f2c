"""Recovers from a killed host: finds answers to its prompts in a transcript, and ends runtimes.

A runtime that was left running finishes its turn, then ends by itself. Until then its session must
not be resumed, or two processes would write one transcript. The runtime lists its processes in its
configuration directory, which belongs to one group.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ...common.system.files import Opened
from ...common.system.processes import is_alive
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.records import TURNS, PromptId, Reply
from ...sessions.transcripts.lines import first_line, lines_forward
from ...sessions.transcripts.reader import TranscriptReader


class Recovered(NamedTuple):
    """The replies, each with the ids of the answered prompts, and the ids of unanswered prompts.

    The runtime had received the unanswered ones."""

    answers: list[tuple[tuple[str, ...], str]]
    begun: set[str]


def recover(runtime: Runtime, transcript: str, prompt_ids: Collection[str]) -> Recovered:
    """Return the state of the prompts with these ids; nothing without a transcript."""
    recovered = Recovered([], set())
    final_id, text = "", ""
    message_id, parts = "", list[str]()  # of a message whose end may be a record without text
    for record in _records(runtime, transcript, prompt_ids):
        turn = runtime.records.events(record, 0, TURNS)
        prompt_id = next((event.id for event in turn if isinstance(event, PromptId)), "")
        reply = next((event for event in turn if isinstance(event, Reply)), None)
        if final_id and (reply is None or reply.message_id != final_id):
            _close(recovered, text)
            final_id, text = "", ""
        if prompt_id in prompt_ids:
            recovered.begun.add(prompt_id)
        elif reply is not None and recovered.begun:
            if reply.message_id != message_id:
                message_id, parts = reply.message_id, []
            if reply.ends_turn:
                final_id = message_id
                parts = [reply.text] if reply.text else parts
                text, parts = "\n\n".join([part for part in (text, *parts) if part]), []
            else:
                parts.append(reply.text)
    if final_id:
        _close(recovered, text)
    return recovered


def _close(recovered: Recovered, text: str) -> None:
    recovered.answers.append((tuple(sorted(recovered.begun)), text))
    recovered.begun.clear()


def _records(
    runtime: Runtime, transcript: str, prompt_ids: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield the records from the first one that names one of the prompts."""
    wanted = [prompt_id.encode() for prompt_id in prompt_ids]
    is_begun = False
    if not os.path.isfile(transcript):
        return
    with Opened(transcript) as descriptor:
        reader = TranscriptReader(runtime, first_line(descriptor))
        for _, line in lines_forward(descriptor, 0, os.fstat(descriptor).st_size):
            is_begun = is_begun or any(prompt_id in line for prompt_id in wanted)
            if is_begun:
                yield from reader.records(line)


POLL_SECONDS = 0.05
TERMINATE_SECONDS = 3.0


async def wait_for_end(runtime: Runtime, config_dir: str, timeout_seconds: float) -> None:
    """Wait until no runtime runs on `config_dir`; kill those that exceed `timeout_seconds`."""
    deadline = time.monotonic() + timeout_seconds
    while pids := _running_pids(runtime, config_dir):
        now = time.monotonic()
        number = signal.SIGKILL if now > deadline + TERMINATE_SECONDS else signal.SIGTERM
        if now > deadline:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        await asyncio.sleep(POLL_SECONDS)


def _running_pids(runtime: Runtime, config_dir: str) -> list[int]:
    """Return the ids of the running processes that the runtime has listed in `config_dir`."""
    noted = runtime.live_processes(config_dir)
    return [
        process.pid
        for process in noted
        if process.pid > 1 and is_alive(process.pid, process.started, runtime.PROGRAM)
    ]
