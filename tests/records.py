"""Builders of transcripts: the records of each runtime, with as few fields as a test needs."""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from session_memory.common.system.json import decode_line

CWD = "/srv/agent"
_numbers = itertools.count(1)


def stamp(seconds: float) -> str:
    """A point in time as transcripts write it."""
    return (
        time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03}Z"
    )


def new_id() -> str:
    number = next(_numbers)  # 12 bits of it before the version of the UUID, the rest behind
    return str(uuid.UUID(int=number >> 12 << 80 | (number & 0xFFF) << 64 | 1 << 63, version=4))


def record(kind: str, *, at: float | None = None, **fields: Any) -> dict[str, Any]:
    envelope = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": CWD,
        "version": "2.1.329",
    }
    when = stamp(time.time() if at is None else at)
    return {**envelope, "type": kind, "uuid": new_id(), "timestamp": when, **fields}


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return record("user", message={"role": "user", "content": content}, **fields)


def assistant(*blocks: Any, message_id: str = "", **fields: Any) -> dict[str, Any]:
    """An assistant record; a string stands for a text block, a pair (name, input) for a tool
    use."""
    content = [_block(block) for block in blocks]
    message = {
        "id": message_id or f"msg_{new_id()}",
        "role": "assistant",
        "model": "claude-x",
        "content": content,
    }
    return record("assistant", message={**message, **fields.pop("message", {})}, **fields)


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if isinstance(block, tuple):
        return {"type": "tool_use", "id": f"toolu_{new_id()}", "name": block[0], "input": block[1]}
    assert isinstance(block, dict)
    return block


def tool_result(content: Any = "done", **fields: Any) -> dict[str, Any]:
    return user([{"tool_use_id": "toolu_1", "type": "tool_result", "content": content}], **fields)


def as_written(value: dict[str, Any]) -> dict[str, Any]:
    """A record of Claude Code with its keys in the CLI's order, by which results are recognised."""
    last = ("type", "message", "uuid", "timestamp", "toolUseResult")
    first = {key: value[key] for key in value if key not in last}
    return {**first, **{key: value[key] for key in last if key in value}}


def line(value: dict[str, Any]) -> bytes:
    """A line as its runtime writes it; that of a mirror as we do, with spaces."""
    is_mirrored = value.get("type") in ("part", "step")
    return (
        json.dumps(value, separators=(", ", ": ") if is_mirrored else (",", ":")).encode() + b"\n"
    )


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(line(one) for one in records)


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*_linked(records, None)))
    return path


def append(path: Path, *records: dict[str, Any]) -> None:
    """Adds records, which go on from the last one that is there."""
    content = path.read_bytes() if path.exists() else b""
    found = [
        value
        for line in content.splitlines()[-3:]
        for value in decode_line(line)[0]
        if isinstance(value, dict)
    ]
    ids = [value.get("uuid") or value.get("id") for value in found]
    with path.open("ab") as file:
        file.write(lines(*_linked(records, next((one for one in reversed(ids) if one), None))))


def _linked(records: Iterable[dict[str, Any]], last: str | None) -> Iterator[dict[str, Any]]:
    """The records, of which each goes on from the one before it, unless it says from which."""
    for one in records:
        is_step = one.get("type") == "step" and "number" in one
        keys = ("parentUuid", "parentId", *(["parent"] if is_step else []))
        parent = next((key for key in keys if key in one), "")
        linked = {**one, parent: one[parent] or last} if parent else one
        yield linked
        last = linked.get("uuid") or linked.get("id") or last


def show_told(path: Path, printed: bytes, *, is_answered: bool = True) -> None:
    """Adds to a transcript what the runtime records of a hook's answer to a prompt, the text that
    it told the agent, and that the agent begins to think about it if it `is_answered`."""
    answer = json.loads(printed or b"{}")
    output = answer.get("hookSpecificOutput", {})
    thinking = {"type": "thinking", "thinking": "hm"}
    if "message" in output:
        shown = [kimi_told(output["message"]), *kimi_exchange("go on", "hm")]
    elif (
        output.get("hookEventName") == "UserPromptSubmit"
        and b'"payload":' in path.read_bytes()[:400]
    ):
        shown = [
            codex_message("developer", output["additionalContext"]),
            codex_message("assistant", "hm"),
        ]
    elif (
        output.get("hookEventName") == "UserPromptSubmit" and b'"parts":' in path.read_bytes()[:600]
    ):
        text = output["additionalContext"].replace("<", "&lt;").replace(">", "&gt;")
        told = {"displayText": "go on", "hookContext": text}
        shown = [qwen_record("user", "go on", systemPayload=told), qwen_record("assistant", "hm")]
    elif output.get("hookEventName") == "UserPromptSubmit" and path.read_bytes().startswith(
        (b'{"type":"session_start"', b'{"type":"message"')
    ):
        thought = droid_message("assistant", thinking)
        shown = [droid_hook("UserPromptSubmit", answer), thought]
    elif output.get("hookEventName") == "UserPromptSubmit":
        attachment = {"type": "hook_additional_context", "content": [output["additionalContext"]]}
        shown = [record("attachment", attachment=attachment), assistant(thinking)]
    elif "context" in answer:
        prompt = hermes_step("user", "go on", context=answer["context"])
        shown = [prompt, hermes_step("agent", "hm")]
    elif "additionalContext" in answer:
        told = copilot_message("user", "go on", told=answer["additionalContext"])
        shown = [told, copilot_message("assistant", "hm")]
    elif output.get("hookEventName") == "BeforeAgent":
        shown = [
            gemini_message("user", "go on", told=output["additionalContext"]),
            gemini_message("gemini", "hm"),
        ]
    elif "text" in answer and b'"source": "' in path.read_bytes():
        told = {"source": "system", "context": answer["text"]}
        shown = [cline_step(**told), cline_step(source="agent", message="hm")]
    elif "text" in answer:
        told = opencode_part("user", "go on", told=answer["text"])
        shown = [told, {**opencode_part("assistant", "hm"), "parent": told["message"]}]
    elif "message" in answer:
        message = {"role": "assistant", "content": [thinking]}
        kinds = [
            {"type": "custom_message", **answer["message"]},
            {"type": "message", "message": message},
        ]
        shown = [{**kind, "id": uuid.uuid4().hex[:8], "parentId": None} for kind in kinds]
    else:
        return
    append(path, *shown[: 1 + is_answered])


def exchange(question: str, answer: str, **fields: Any) -> list[dict[str, Any]]:
    return [user(question, **fields), assistant(answer, **fields)]


def codex_line(kind: str, payload: dict[str, Any], *, at: float | None = None) -> dict[str, Any]:
    """A line of a rollout of Codex."""
    when = stamp(time.time() if at is None else at)
    return {"timestamp": when, "ordinal": next(_numbers), "type": kind, "payload": payload}


def codex_item(item: dict[str, Any], *, at: float | None = None) -> dict[str, Any]:
    """What a person saw of a turn in Codex."""
    return codex_line(
        "event_msg", {"type": "item_completed", "turn_id": "01a1fb3f-0001", "item": item}, at=at
    )


def codex_message(role: str, text: str, *, at: float | None = None) -> dict[str, Any]:
    """What the model of Codex saw: of what hooks tell nothing else is kept."""
    content = [{"type": "input_text", "text": text}]
    return codex_line("response_item", {"type": "message", "role": role, "content": content}, at=at)


def codex_exchange(
    question: str, answer: str, *, cwd: str = CWD, at: float | None = None
) -> list[dict[str, Any]]:
    """A turn, with the directory that it was in."""
    asked = {"type": "UserMessage", "id": new_id(), "content": [{"type": "text", "text": question}]}
    said = {
        "type": "AgentMessage",
        "id": f"msg_{next(_numbers)}",
        "content": [{"type": "Text", "text": answer}],
    }
    turn = codex_line("turn_context", {"turn_id": "01a1fb3f-0001", "cwd": cwd}, at=at)
    shown = [codex_message("user", question, at=at), codex_message("assistant", answer, at=at)]
    return [turn, codex_item(asked, at=at), shown[0], codex_item(said, at=at), shown[1]]


def qwen_record(
    kind: str, text: str, *, cwd: str = CWD, at: float | None = None, **fields: Any
) -> dict[str, Any]:
    """A record of a chat of Qwen Code: a user's or the assistant's message."""
    role, provenance = ("user", "real_user") if kind == "user" else ("model", "assistant_output")
    when = stamp(time.time() if at is None else at)
    envelope = {
        "uuid": new_id(),
        "parentUuid": None,
        "sessionId": "",
        "timestamp": when,
        "type": kind,
    }
    message = {"role": role, "parts": [{"text": text}]}
    return {**envelope, "provenance": provenance, "cwd": cwd, "message": message, **fields}


def qwen_exchange(
    question: str, answer: str, *, cwd: str = CWD, at: float | None = None
) -> list[dict[str, Any]]:
    return [
        qwen_record("user", question, cwd=cwd, at=at),
        qwen_record("assistant", answer, cwd=cwd, at=at),
    ]


def droid_message(
    role: str, *blocks: dict[str, Any], at: float | None = None, **fields: Any
) -> dict[str, Any]:
    """A message of a session of Droid, with `fields` beside its content."""
    when = stamp(time.time() if at is None else at)
    message = {"role": role, "content": [*blocks], **fields}
    return {"type": "message", "id": new_id(), "timestamp": when, "message": message}


def droid_exchange(question: str, answer: str, *, at: float | None = None) -> list[dict[str, Any]]:
    return [
        droid_message("user", {"type": "text", "text": question}, at=at),
        droid_message("assistant", {"type": "text", "text": answer}, at=at),
    ]


def droid_start(session_id: str, cwd: str) -> dict[str, Any]:
    """What a session of Droid begins with."""
    head = {"type": "session_start", "id": session_id, "title": "x", "owner": "unknown"}
    return {**head, "version": 2, "cwd": cwd, "hostId": "h", "isSessionTitleManuallySet": False}


def droid_hook(event: str, printed: dict[str, Any]) -> dict[str, Any]:
    """What Droid records of a hook and of what that printed."""
    result = {"exitCode": 0, "stdout": json.dumps(printed) + "\n", "stderr": ""}
    shown = {"visibility": "user_only", "hookEventName": event, "hookStatus": "completed"}
    return droid_message("user", **shown, hookResults=[result])


def kimi_start(cwd: str, *, at: float) -> list[dict[str, Any]]:
    """What a session of Kimi Code begins with."""
    place = {"cwd": cwd}
    bound = {"type": "profile.bind", "agentId": "main", "environmentDisclosure": place}
    binding = {"type": "runtime.set_binding", "agentId": "main", "time": int(at * 1000)}
    created = {"protocol_version": "1.5", "created_at": int(at * 1000)}
    return [{"type": "metadata", **created}, binding, {**bound, "time": int(at * 1000)}]


def kimi_event(kind: str, *, at: float | None = None, **fields: Any) -> dict[str, Any]:
    """An event of the loop in a log of Kimi Code."""
    when = int((time.time() if at is None else at) * 1000)
    event = {"type": kind, "uuid": new_id(), "stepUuid": new_id(), **fields}
    return {"type": "context.append_loop_event", "agentId": "main", "event": event, "time": when}


def kimi_told(*texts: str) -> dict[str, Any]:
    """The message before a prompt in a log of Kimi Code: what its hooks printed."""
    shown = [
        f'<hook_result hook_event="UserPromptSubmit">\n{text}\n</hook_result>' for text in texts
    ]
    part = {"type": "text", "text": "\n".join(shown)}
    message = {"role": "user", "content": [part], "origin": {"kind": "hook_result"}}
    kind = {"type": "context.append_message", "agentId": "main"}
    return {**kind, "message": message, "time": int(time.time() * 1000)}


def kimi_exchange(question: str, answer: str, *, at: float | None = None) -> list[dict[str, Any]]:
    when = int((time.time() if at is None else at) * 1000)
    said = {"input": [{"type": "text", "text": question}], "origin": {"kind": "user"}}
    prompt = {"type": "turn.prompt", "agentId": "main", **said, "promptId": f"msg_{new_id()}"}
    part = {"type": "text", "text": answer}
    return [{**prompt, "time": when}, kimi_event("content.part", at=at, part=part)]


def hermes_step(source: str, text: str, **fields: Any) -> dict[str, Any]:
    """A message in a mirror of a session of Hermes."""
    number = next(_numbers)
    step = {"type": "step", "id": f"20261130_110000_a1b2c3:{number}", "parent": None}
    when = {"number": number, "timestamp": stamp(time.time())}
    return {**step, **when, "source": source, "message": text, **fields}


def hermes_exchange(question: str, answer: str) -> list[dict[str, Any]]:
    return [hermes_step("user", question), hermes_step("agent", answer)]


def copilot_message(
    role: str, text: str, *, told: str = "", at: float | None = None, **fields: Any
) -> dict[str, Any]:
    """An event of a session of Copilot: a user's message, behind which a hook may have `told`
    something, or the assistant's."""
    when = stamp(time.time() if at is None else at)
    data: dict[str, Any] = {"content": text, **fields}
    if role == "user":
        reminder = f"\n\n<system_reminder>\n{told}\n</system_reminder>" if told else ""
        data["transformedContent"] = (
            f"<current_datetime>{when}</current_datetime>\n\n{text}{reminder}"
        )
    return {
        "type": f"{role}.message",
        "data": data,
        "id": new_id(),
        "timestamp": when,
        "parentId": None,
    }


def copilot_exchange(
    question: str, answer: str, *, at: float | None = None
) -> list[dict[str, Any]]:
    return [copilot_message("user", question, at=at), copilot_message("assistant", answer, at=at)]


def copilot_start(session_id: str, cwd: str, *, at: float) -> dict[str, Any]:
    """What a session of Copilot begins with."""
    data = {"sessionId": session_id, "startTime": stamp(at), "context": {"cwd": cwd}}
    return {
        "type": "session.start",
        "data": data,
        "id": new_id(),
        "timestamp": stamp(at),
        "parentId": None,
    }


def gemini_message(
    kind: str, text: str, *, told: str = "", at: float | None = None, **fields: Any
) -> dict[str, Any]:
    """A line of a chat of Gemini: a message of the `user`, behind which a hook may have `told`
    something, or of `gemini`."""
    when = stamp(time.time() if at is None else at)
    content: Any = [{"text": text}] if kind == "user" else text
    shown = {"displayContent": content} if told else {}
    behind = [{"text": f"<hook_context>{told}</hook_context>"}] if told else []
    content = [*content, *behind] if kind == "user" else content
    return {"id": new_id(), "timestamp": when, "type": kind, "content": content, **shown, **fields}


def atif_exchange(question: str, answer: str, *, at: float | None = None) -> list[dict[str, Any]]:
    """The steps of a trajectory for a question and its answer."""
    said = (("user", question), ("agent", answer))
    return [
        {"source": source, "timestamp": stamp(at or time.time()), "message": text}
        for source, text in said
    ]


def gemini_exchange(question: str, answer: str, *, at: float | None = None) -> list[dict[str, Any]]:
    return [gemini_message("user", question, at=at), gemini_message("gemini", answer, at=at)]


def opencode_part(
    role: str, text: str, *, told: str = "", at: float | None = None
) -> dict[str, Any]:
    """A line of our mirror of a session of OpenCode: what was said, or what our plugin put behind
    it."""
    data = {"type": "text", "text": told or text, **({"synthetic": True} if told else {})}
    when = int((time.time() if at is None else at) * 1000)
    numbers = {"id": f"prt_{next(_numbers):026d}", "message": f"msg_{next(_numbers):026d}"}
    return {"type": "part", **numbers, "role": role, "time": when, "cwd": CWD, "data": data}


def opencode_exchange(
    question: str, answer: str, *, at: float | None = None
) -> list[dict[str, Any]]:
    asked, said = opencode_part("user", question, at=at), opencode_part("assistant", answer, at=at)
    return [asked, {**said, "parent": asked["message"]}]


def cline_step(**fields: Any) -> dict[str, Any]:
    """A line of our mirror of a session of Cline."""
    number = next(_numbers)
    step = {"type": "step", "id": f"msg_{number}", "number": number}
    return {**step, "timestamp": stamp(time.time()), **fields}


def cline_exchange(question: str, answer: str) -> list[dict[str, Any]]:
    said = (("user", question), ("agent", answer))
    return [cline_step(source=source, message=text) for source, text in said]


class PiSession:
    """The records of one session file. Each new one is a child of the last, or of the one that
    `back_to` named."""

    def __init__(
        self, *, version: int = 3, cwd: str = CWD, at: float | None = None, **header: Any
    ) -> None:
        self.version = version
        self.id = f"01a1fb41-0ca6-71d2-ae2a-{next(_numbers):012x}"
        self.leaf: str | None = None
        when = stamp(time.time() if at is None else at)
        marked = {"version": version} if version > 1 else {}
        self.records = [
            {"type": "session", **marked, "id": self.id, "timestamp": when, "cwd": cwd, **header}
        ]

    def add(self, kind: str, *, at: float | None = None, **fields: Any) -> str:
        """Adds a record; its id, which before version 2 it has not."""
        entry_id = f"{next(_numbers):08x}"
        link = {"id": entry_id, "parentId": self.leaf} if self.version > 1 else {}
        self.records.append(
            {"type": kind, **link, "timestamp": stamp(time.time() if at is None else at), **fields}
        )
        self.leaf = entry_id
        return entry_id

    def message(self, role: str, *, at: float | None = None, **fields: Any) -> str:
        return self.add("message", at=at, message={"role": role, **fields})

    def user(self, content: Any, *, at: float | None = None) -> str:
        return self.message("user", at=at, content=content)

    def assistant(self, *blocks: Any, at: float | None = None, stop: str = "stop") -> str:
        """A string stands for a text block, a pair (name, arguments) for a tool call."""
        return self.message(
            "assistant", at=at, content=[_pi_block(block) for block in blocks], stopReason=stop
        )

    def exchange(self, question: str, answer: str, *, at: float | None = None) -> str:
        self.user(question, at=at)
        return self.assistant(answer, at=at)

    def tool_result(self, text: str = "done") -> str:
        return self.message(
            "toolResult", toolCallId="toolu_1", content=[{"type": "text", "text": text}]
        )

    def bash(self, command: str, **fields: Any) -> str:
        return self.message("bashExecution", command=command, output="", exitCode=0, **fields)

    def edit(self, target_id: str, replacement: Any = None) -> str:
        return self.add("context_edit", targetId=target_id, replacement=replacement)

    def name(self, name: str) -> str:
        return self.add("session_info", name=name)

    def back_to(self, entry_id: str | None) -> None:
        """What `/tree` does: the next record is a child of this one, or a new root."""
        self.leaf = entry_id

    def fork(self, **header: Any) -> PiSession:
        """What `/clone` does: a new file with the records of the live branch, which here is all."""
        copy = PiSession(parentSession="/somewhere.jsonl", **header)
        copy.records += self.records[1:]
        copy.leaf = self.leaf
        return copy

    def migrated(self) -> PiSession:
        """What opening a file of version 1 does: the same records with ids and parents."""
        new = PiSession(at=0)
        new.records = [{**self.records[0], "version": 3}]
        for record in self.records[1:]:
            entry_id = f"{next(_numbers):08x}"
            new.records.append({**record, "id": entry_id, "parentId": new.leaf})
            new.leaf = entry_id
        return new

    @property
    def lines(self) -> list[bytes]:
        return [line(record) for record in self.records]

    def write(self, directory: Path) -> Path:
        """Writes the file to `directory`, in place where it is there already; its path."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"2026-11-20T23-18-26-727Z_{self.id}.jsonl"
        with path.open("r+b" if path.exists() else "wb") as file:
            file.truncate()
            file.writelines(self.lines)
        return path


class OmpSession(PiSession):
    """A session file of omp: the title is in a first line of one length, which is rewritten in
    place."""

    LENGTH = 256

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.title = ("", "auto")

    @property
    def title_line(self) -> bytes:
        text, source = self.title
        fields = {"v": 1, "title": text, "source": source, "updatedAt": stamp(1_790_000_000)}
        bare = {"type": "title", **fields, "pad": ""}
        return line({**bare, "pad": " " * (self.LENGTH - len(line(bare)))})

    @property
    def lines(self) -> list[bytes]:
        return [self.title_line, *super().lines]

    def user(self, content: Any, *, at: float | None = None) -> str:
        return self.message("user", at=at, content=content, attribution="user")

    def rename(self, path: Path, text: str, source: str = "user") -> None:
        """Rewrite the title in the file at `path`, which keeps its length."""
        self.title = text, source
        with path.open("r+b") as file:
            file.write(self.title_line)


def _pi_block(block: Any) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if isinstance(block, tuple):
        return {
            "type": "toolCall",
            "id": f"toolu_{next(_numbers)}",
            "name": block[0],
            "arguments": block[1],
        }
    assert isinstance(block, dict)
    return block


def spaced(content: bytes) -> bytes:
    """A line as a program other than pi would write it: with blanks, and the ids at its end."""
    record = json.loads(content)
    ordered = {
        key: record[key] for key in sorted(record, key=lambda key: key in ("id", "parentId"))
    }
    return json.dumps(ordered).encode() + b"\n"


def register(home: Path, person: Path) -> None:
    """Notes an agent home in the ledger of the person whose HOME is `person`, as an install
    does."""
    path = person / ".local/share/session-memory/installed.json"
    ledger = (
        json.loads(path.read_text()) if path.exists() else {"format": 2, "homes": {}, "made": []}
    )
    ledger["homes"][str(home)] = {"settings_file": f"{home}/.claude/settings.json"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(ledger))


class NamedHome:
    """An agent home with named sessions, whose transcripts lie in its own Claude directory;
    registered by the person whose HOME is `person`, if one is given."""

    def __init__(
        self, root: Path, memory_dir: str = ".session-memory", person: Path | None = None
    ) -> None:
        if person:
            register(root, person)
        self.root = root
        self.sessions_dir = root / memory_dir / "sessions"
        self.project_dir = root / ".claude" / "projects" / "-srv-agent"
        self.sessions_dir.mkdir(parents=True)
        self.project_dir.mkdir(parents=True)

    def session(self, name: str, *records: dict[str, Any]) -> Path:
        session_id = new_id()
        (self.sessions_dir / f"{name}.json").write_text(json.dumps({"sessionId": session_id}))
        return write(self.project_dir / f"{session_id}.jsonl", *records)

    def session_id(self, name: str) -> str:
        return str(json.loads((self.sessions_dir / f"{name}.json").read_text())["sessionId"])

    def resolve(self, name: str) -> Path:
        return self.project_dir / f"{self.session_id(name)}.jsonl"
