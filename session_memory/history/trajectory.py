"""A session as a trajectory in ATIF 1.7, the format of Harbor.

It is made from the session's transcript through the gate, or from the store if the transcript is
gone.
"""

import os
import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from typing import Any

from ..common.system.files import Closing, Opened, read_at
from ..common.system.quick_json import decode_line
from ..common.text.sanitize import for_people, name_for_people
from ..common.text.timestamps import iso_time
from ..sessions.runtimes.base import Runtime
from ..sessions.runtimes.records import CallResult, Compaction
from ..sessions.runtimes.table import all_runtimes
from ..sessions.transcripts.entries import Entry
from ..sessions.transcripts.gate import Gate
from ..sessions.transcripts.lines import first_line, lines_forward
from ..sessions.transcripts.mirror import copies_of
from ..sessions.transcripts.reader import HEAD_BYTES, TranscriptReader
from ..sessions.transcripts.usage import ModelUsage
from .costs import answers_in
from .store.ingest.extract import result_text
from .store.location import StoreLocation
from .store.sqlite.engine import SqliteStore
from .store.values import TOOL_ROLE, Conversation, RuleSubject, StoredEntry

Record = dict[str, Any]

VERSION = "ATIF-v1.7"
_SUMMED = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
_AGENT_VERSION = re.compile(rb'"(?:version|cli_version|copilotVersion)":\s?"(\d[\w.+-]{0,40})"')


def trajectory_of(
    location: StoreLocation,
    store: SqliteStore,
    conversations: list[Conversation],
    with_private: bool = False,
) -> Record | None:
    """Return the trajectory of the session with these conversations, or None.

    It is None if the rules hide its text. Raises OSError, SessionMemoryError."""
    last = conversations[-1]
    runtime = next((each for each in all_runtimes() if each.name == last.runtime), None)
    file = location.transcript_of(last)
    if runtime is None or file is None:
        document = _from_store(
            last, [item for part in conversations for item in store.entries(part.id)]
        )
        return document if document["steps"] else None
    rules = location.rules(with_private)
    subject = RuleSubject(0, last.home, last.session_id, last.title, last.cwd, last.source_file)
    with Closing(file.open()) as descriptor:
        gate = rules.gate(subject, runtime, file.path)
        document = _from_transcript(last, runtime, descriptor, file.path, gate)
    return document if document["steps"] else None


def _from_transcript(
    conversation: Conversation, runtime: Runtime, descriptor: int, path: str, gate: Gate
) -> Record:
    """Return the trajectory of a session with its sub-agents' trajectories.

    The session's transcript is open and is at `path`. Raises OSError."""
    transcript = _Steps(runtime, descriptor, gate)
    document = _document(conversation, transcript.steps, read_at(descriptor, 0, HEAD_BYTES))
    inner = []
    for number, sub_agent in enumerate(
        [each for each in runtime.sub_agents(path) if each != path], 1
    ):
        with Opened(sub_agent) as of_sub_agent:
            steps = _Steps(runtime, of_sub_agent, gate, of_sub_agents=True).steps
            name = f"{number}-{runtime.session_id_of(sub_agent)}"
            if steps:
                inner.append({**_document(conversation, steps, b""), "trajectory_id": name})
                _refer(transcript.steps, name, steps[0].get("timestamp", ""))
    return {**document, "subagent_trajectories": inner} if inner else document


def _from_store(conversation: Conversation, items: Iterable[StoredEntry]) -> Record:
    """Return the trajectory of a session without a transcript, from the store.

    A call has only its main argument, and the line of the result that names the error."""
    steps: list[Record] = []
    for item in items:
        step = _step(item.role, item.timestamp and item.timestamp / 1000, for_people(item.text))
        if item.role == TOOL_ROLE:
            call = {
                "tool_call_id": f"item-{item.number}",
                "function_name": item.tool,
                "arguments": {},
            }
            step["message"], step["tool_calls"] = (
                "",
                [{**call, "extra": _told(item.kind, item.text)}],
            )
            result = {"source_call_id": call["tool_call_id"], "content": for_people(item.error)}
            step["observation"] = {
                "results": [{**result, "extra": {"is_error": item.outcome == "error"}}]
            }
        steps.append(step)
    notes = "The transcript is gone, so arguments and results are as short as the store keeps them."
    return {**_document(conversation, steps, b""), "notes": notes}


def _document(conversation: Conversation, steps: list[Record], head: bytes) -> Record:
    version = _AGENT_VERSION.search(head)
    models = [step["model_name"] for step in steps if "model_name" in step]
    agent = {"name": conversation.runtime, "version": version[1].decode() if version else "unknown"}
    metrics = [step["metrics"] for step in steps if "metrics" in step]
    totals = {
        f"total_{key}": sum(metric.get(key, 0) for metric in metrics) for key in _SUMMED if metrics
    }
    cwd, title = for_people(conversation.cwd), for_people(conversation.title)
    return {
        "schema_version": VERSION,
        "session_id": name_for_people(conversation.session_id),
        "agent": {**agent, **({"model_name": models[-1]} if models else {}), "extra": {"cwd": cwd}},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {**totals, "total_steps": len(steps)},
        "extra": {"title": title},
    }


class _Steps:
    """The `steps` of a transcript, one for each entry.

    A step has the results of its calls and the model's preceding thoughts. An answer's first step
    also has its usage."""

    def __init__(
        self, runtime: Runtime, descriptor: int, gate: Gate, *, of_sub_agents: bool = False
    ) -> None:
        self.steps: list[Record] = []
        self._runtime = runtime
        self._gate = gate
        self._thoughts: list[str] = []
        self._offsets: list[int] = []
        self._by_call: dict[str, tuple[str, Record]] = {}  # the id here of a call, and its step
        size = os.fstat(descriptor).st_size
        reader = TranscriptReader(
            runtime, first_line(descriptor), decode_line, of_sub_agents=of_sub_agents
        )
        left_out = reader.offsets_off_branch(descriptor, size)
        lines = self._noted(lines_forward(descriptor, 0, size), left_out)
        ids = set[str]()
        for event in reader.forward(lines, with_results=True, left_out=left_out):
            if isinstance(event, CallResult):
                self._add_result(event)
            elif isinstance(event, Compaction):
                self._append(
                    _step("system", None, "The conversation was compacted."), reader.reached
                )
                self.steps[-1]["extra"] = {
                    "context_management": {"type": "compaction", "boundary": "replace"}
                }
            elif isinstance(event, Entry) and not (event.id and event.id in ids):
                ids.add(event.id)
                self._add(event, reader.record)
        self._add_usage(descriptor)

    def _noted(
        self, lines: Iterable[tuple[int, bytes]], left_out: set[int]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the lines, and note what the model thought in them."""
        for offset, line in lines:
            if offset not in left_out:
                self._thoughts += self._runtime.records.thoughts_in(line, decode_line)
            yield offset, line

    def _append(self, step: Record, offset: int) -> None:
        self.steps.append(step)
        self._offsets.append(offset)

    def _add(self, entry: Entry, record: Record) -> None:
        thoughts, self._thoughts = self._thoughts, []
        for visible in self._gate.told([entry]):
            if not visible.text and not visible.tools:
                continue
            step = _step(visible.role, visible.timestamp, for_people(visible.text).strip())
            extra = {
                "entry_id": visible.id,
                "message_id": visible.message_id,
                "cwd": for_people(visible.cwd),
            }
            step["extra"] = {key: value for key, value in extra.items() if value}
            if visible.role == "user" and visible.tools:  # a command that the user ran
                step["source"], step["extra"]["role"] = "agent", "user"
            if visible.is_copy:
                step["is_copied_context"] = True
            if visible.role == "assistant" and thoughts:
                step["reasoning_content"] = for_people("\n\n".join(thoughts))
            for number, tool in enumerate(visible.tools):
                call_id = tool.call_id or f"unnamed-{len(self.steps)}-{number}"
                given = self._runtime.records.arguments(record, call_id)
                key = next((key for key, value in given.items() if value == tool.argument), "")
                extra_facts = (
                    {"kind": tool.kind, "argument_key": key}
                    if key
                    else _told(tool.kind, tool.argument)
                )
                call: dict[str, object] = {
                    "tool_call_id": call_id,
                    "function_name": for_people(tool.name),
                }
                call["arguments"] = copies_of([given], False)[0]
                step.setdefault("tool_calls", []).append({**call, "extra": extra_facts})
                self._by_call[tool.call_id] = call_id, step
            self._append(step, visible.offset)

    def _add_result(self, result: CallResult) -> None:
        """Add a result to the step of its call, unless the call read our own memory."""
        if result.call_id not in self._by_call:
            return
        call_id, step = self._by_call[result.call_id]
        extra = {"is_error": result.has_failed, **({} if result.has_run else {"has_run": False})}
        result_step = {
            "source_call_id": call_id,
            "content": for_people(result_text(result.content)),
            "extra": extra,
        }
        step.setdefault("observation", {"results": []})["results"].append(result_step)

    def _add_usage(self, descriptor: int) -> None:
        """Add the usage of each answer to the agent's step nearest to its record.

        If that step has a usage already, the answer gets a step of its own."""
        agents = [number for number, step in enumerate(self.steps) if step["source"] == "agent"]
        offsets = [self._offsets[number] for number in agents]
        further: list[tuple[int, Record]] = []
        for offset, usage, at in answers_in(self._runtime, descriptor) if self.steps else ():
            is_told = self._gate.until is None or at is None or at > self._gate.until
            if is_told and not usage.is_copy:
                behind = bisect(offsets, offset)
                near = agents[max(0, behind - 1) : behind + 1] or [len(self.steps) - 1]
                nearest = min(
                    near, key=lambda step_number: abs(self._offsets[step_number] - offset)
                )
                step = self.steps[nearest]
                if step["source"] != "agent" or "metrics" in step:
                    step = _step("agent", None if at is None else at / 1000, "")
                    further.append((nearest, step))
                step["metrics"] = _metrics(usage)
                step.update({"model_name": usage.model} if usage.model else {})
        for number, step in reversed(further):
            self.steps.insert(number + 1, step)


def _metrics(usage: ModelUsage) -> Record:
    written = usage.written + usage.written_for_an_hour
    prompt = usage.input + usage.cached + written
    metrics: Record = {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cached,
    }
    metrics |= {} if usage.dollars is None else {"cost_usd": usage.dollars}
    caches = {
        "cache_creation_input_tokens": written,
        "cache_creation_1h_tokens": usage.written_for_an_hour,
    }
    return {**metrics, "extra": {"answer_id": usage.id, **caches}}


def _step(role: str, at: float | None, text: str) -> Record:
    source = role if role in ("user", "system") else "agent"
    return {
        **({"timestamp": iso_time(at)} if at is not None else {}),
        "source": source,
        "message": text,
    }


def _told(kind: str, argument: str) -> Record:
    return {"kind": kind, "argument": for_people(argument)}


def _refer(steps: list[Record], name: str, began: str) -> None:
    """Refer to a sub-agent from the step with the last call before the sub-agent began."""
    before = [step for step in steps if "tool_calls" in step and step.get("timestamp", "") <= began]
    if before:
        results = before[-1].setdefault("observation", {"results": []})["results"]
        results.append({"subagent_trajectory_ref": [{"trajectory_id": name}]})
