"""The records of each runtime except Claude Code.

A turn consists of a question, uses of tools, and an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from .author import Author, Record
from .tools import Call, call


class Format:
    """How a runtime's records are made, continued and told apart."""

    ID = "id"  # of a record, by which the next one names it
    CALL_ID = "call_"

    def records(self, author: Author) -> Iterator[Record]:
        """Yield the endless records of a session, or the ones after `author.parent_id`."""
        if author.parent_id is None:
            yield from self.opening(author)
        while True:
            yield from self.turn(author)

    def take_up(self, author: Author, record: Record) -> bool:
        """Let `author` go on behind `record`; False if nothing can follow it."""
        author.parent_id = record[self.ID]
        return True

    def kind(self, record: Record) -> str:
        """Return what a record is, for a tally: `user`, `tool_result`, ..."""
        return str(record.get("type"))

    def turn(self, author: Author) -> Iterator[Record]:
        """Yield a prompt and all that follows until the agent has answered it."""
        yield from self.question(author, author.prose(200))
        for _ in range(int(author.random.expovariate(1 / 8)) + 1):
            used, call_id = call(author), author.token(self.CALL_ID)
            yield from self.use(
                author, used, call_id, used.result if isinstance(used.result, str) else "image"
            )
        yield from self.answer(author, author.prose(700))

    def opening(self, author: Author) -> Iterator[Record]:
        """Yield what a session begins with."""
        yield from ()

    def question(self, author: Author, text: str) -> Iterator[Record]:
        raise NotImplementedError

    def use(self, author: Author, used: Call, call_id: str, output: str) -> Iterator[Record]:
        """Yield a call of a tool and what the tool gave."""
        raise NotImplementedError

    def answer(self, author: Author, text: str) -> Iterator[Record]:
        raise NotImplementedError


class Codex(Format):
    """The model's view of a turn and the person's: the output of a tool is recorded twice."""

    ID = "timestamp"

    def kind(self, record: Record) -> str:
        payload = record["payload"]
        return str(payload.get("item", payload).get("type", record["type"]))

    def opening(self, author: Author) -> Iterator[Record]:
        header = {"id": author.session_id, "session_id": author.session_id, "cwd": author.cwd}
        yield self._line(
            author,
            "session_meta",
            {**header, "originator": "codex-tui", "base": author.prose(20_000)},
        )

    def turn(self, author: Author) -> Iterator[Record]:
        author.turn_id = author.uuid()
        yield self._line(author, "turn_context", {"turn_id": author.turn_id, "cwd": author.cwd})
        yield from super().turn(author)

    def question(self, author: Author, text: str) -> Iterator[Record]:
        yield self._item(author, "UserMessage", content=[{"type": "text", "text": text}])
        yield self._message(author, "user", "input_text", text)

    def use(self, author: Author, used: Call, call_id: str, output: str) -> Iterator[Record]:
        command = str(used.arguments.get("command", "cat src/main.py"))
        called = {"type": "custom_tool_call", "name": "exec", "call_id": call_id, "input": command}
        yield self._line(author, "response_item", called)
        ran = {"command": ["bash", "-lc", command], "cwd": f"file://{author.cwd}", "exit_code": 0}
        yield self._item(
            author, "CommandExecution", **ran, status="completed", aggregated_output=output
        )
        given = {"type": "custom_tool_call_output", "call_id": call_id, "output": output}
        yield self._line(author, "response_item", given)

    def answer(self, author: Author, text: str) -> Iterator[Record]:
        yield self._item(author, "AgentMessage", content=[{"type": "Text", "text": text}])
        yield self._message(author, "assistant", "output_text", text)

    def _message(self, author: Author, role: str, kind: str, text: str) -> Record:
        message = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return self._line(author, "response_item", message)

    def _item(self, author: Author, kind: str, **item: object) -> Record:
        shown = {"type": kind, "id": author.uuid(), **item}
        return self._line(
            author,
            "event_msg",
            {"type": "item_completed", "turn_id": author.turn_id, "item": shown},
        )

    def _line(self, author: Author, kind: str, payload: Record) -> Record:
        return {
            "timestamp": author.timestamp(),
            "ordinal": author.written,
            "type": kind,
            "payload": payload,
        }


class Copilot(Format):
    """Events, each of which names the one before it."""

    def opening(self, author: Author) -> Iterator[Record]:
        context = {"cwd": author.cwd, "branch": "main"}
        yield self._event(author, "session.start", sessionId=author.session_id, context=context)
        yield self._event(author, "system.message", role="system", content=author.prose(20_000))

    def question(self, author: Author, text: str) -> Iterator[Record]:
        yield self._event(author, "user.message", content=text, transformedContent=text)

    def use(self, author: Author, used: Call, call_id: str, output: str) -> Iterator[Record]:
        name = used.name.lower()
        request = {"toolCallId": call_id, "name": name, "arguments": used.arguments}
        yield self._event(
            author, "assistant.message", messageId=author.uuid(), content="", toolRequests=[request]
        )
        begun = {"toolCallId": call_id, "toolName": name, "arguments": used.arguments}
        yield self._event(author, "tool.execution_start", **begun)
        result = {"content": output, "detailedContent": output}
        yield self._event(
            author, "tool.execution_complete", toolCallId=call_id, success=True, result=result
        )

    def answer(self, author: Author, text: str) -> Iterator[Record]:
        yield self._event(
            author, "assistant.message", messageId=author.uuid(), content=text, toolRequests=[]
        )

    def _event(self, author: Author, kind: str, **data: object) -> Record:
        parent, author.parent_id = author.parent_id, author.uuid()
        return {
            "type": kind,
            "data": data,
            "id": author.parent_id,
            "timestamp": author.timestamp(),
            "parentId": parent,
        }


class Pi(Format):
    """Session format 3: a tree of entries, several content blocks to a message."""

    CALL_ID = "toolu_01"

    def kind(self, record: Record) -> str:
        name = str(record["message"]["role"] if record["type"] == "message" else record["type"])
        return "tool_result" if name == "toolResult" else name

    def opening(self, author: Author) -> Iterator[Record]:
        time = author.timestamp()
        yield {
            "type": "session",
            "version": 3,
            "id": author.session_id,
            "timestamp": time,
            "cwd": author.cwd,
        }
        yield self._entry(author, "model_change", provider="anthropic", modelId="claude-opus-4-5")

    def question(self, author: Author, text: str) -> Iterator[Record]:
        yield self._message(author, "user", content=[{"type": "text", "text": text}])

    def use(self, author: Author, used: Call, call_id: str, output: str) -> Iterator[Record]:
        content: list[Record] = []
        name = used.name.lower()
        if author.chance(0.35):
            content.append(
                {"type": "thinking", "thinking": author.prose(500), "thinkingSignature": "x" * 300}
            )
        if author.chance(0.4):
            content.append({"type": "text", "text": author.prose(120)})
        content.append(
            {"type": "toolCall", "id": call_id, "name": name, "arguments": used.arguments}
        )
        yield self._assistant(author, content, "toolUse")
        fields: Record = {
            "toolCallId": call_id,
            "toolName": name,
            "content": [{"type": "text", "text": output}],
        }
        fields["details"] = {"diff": author.text("diff", 600)} if used.name == "Edit" else None
        yield self._message(author, "toolResult", **fields, isError=False)

    def answer(self, author: Author, text: str) -> Iterator[Record]:
        yield self._assistant(author, [{"type": "text", "text": text}], "stop")

    def _assistant(self, author: Author, content: list[Record], stop_reason: str) -> Record:
        random = author.random
        model = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-5"}
        usage = {
            "input": random.randrange(9_000),
            "output": random.randrange(900),
            "cacheRead": random.randrange(99_999),
            "cacheWrite": random.randrange(9_000),
            "totalTokens": 9_000,
            "cost": {
                "input": 0.013875,
                "output": 0.003525,
                "cacheRead": 0.1,
                "cacheWrite": 0,
                "total": 0.1174,
            },
        }
        return self._message(
            author, "assistant", content=content, **model, usage=usage, stopReason=stop_reason
        )

    def _message(self, author: Author, role: str, **fields: object) -> Record:
        return self._entry(
            author,
            "message",
            message={"role": role, **fields, "timestamp": int(author.now() * 1000)},
        )

    def _entry(self, author: Author, type: str, **fields: object) -> Record:
        parent, author.parent_id = author.parent_id, f"{author.random.getrandbits(32):08x}"
        link = {"id": author.parent_id, "parentId": parent, "timestamp": author.timestamp()}
        return {"type": type, **link, **fields}


class Qwen(Format):
    """Messages in parts, and as much again of telemetry."""

    ID = "uuid"

    def kind(self, record: Record) -> str:
        return str(record.get("subtype", record["type"]))

    def question(self, author: Author, text: str) -> Iterator[Record]:
        yield self._record(author, "user", "user", "real_user", {"text": text})

    def use(self, author: Author, used: Call, call_id: str, output: str) -> Iterator[Record]:
        called = {
            "functionCall": {"id": call_id, "name": used.name.lower(), "args": used.arguments}
        }
        yield self._record(author, "assistant", "model", "assistant_output", called)
        yield self._telemetry(author)
        yield self._record(
            author, "tool_result", "user", "tool_output", _response(used, call_id, output)
        )

    def answer(self, author: Author, text: str) -> Iterator[Record]:
        yield self._record(author, "assistant", "model", "assistant_output", {"text": text})
        yield self._telemetry(author)

    def _telemetry(self, author: Author) -> Record:
        event = {
            "event.name": "qwen-code.api_response",
            "duration_ms": 812,
            "response_text": author.text("json", 400),
        }
        return {
            **self._envelope(author, "system"),
            "subtype": "ui_telemetry",
            "systemPayload": {"uiEvent": event},
        }

    def _record(
        self, author: Author, kind: str, role: str, provenance: str, part: Record
    ) -> Record:
        message = {"role": role, "parts": [part]}
        return {**self._envelope(author, kind), "provenance": provenance, "message": message}

    def _envelope(self, author: Author, kind: str) -> Record:
        parent, author.parent_id = author.parent_id, author.uuid()
        link = {"uuid": author.parent_id, "parentUuid": parent, "sessionId": author.session_id}
        return {
            **link,
            "timestamp": author.timestamp(),
            "type": kind,
            "cwd": author.cwd,
            "version": "0.24.4",
        }


class Gemini(Format):
    """Messages of a chat, behind a line that says nothing of its directory."""

    def opening(self, author: Author) -> Iterator[Record]:
        checksum = sha256(author.cwd.encode()).hexdigest()
        header = {
            "sessionId": author.session_id,
            "projectHash": checksum,
            "startTime": author.timestamp(),
        }
        yield {**header, "kind": "main"}

    def question(self, author: Author, text: str) -> Iterator[Record]:
        yield self._message(author, "user", content=[{"text": text}])

    def use(self, author: Author, used: Call, call_id: str, output: str) -> Iterator[Record]:
        done = {"id": call_id, "name": used.name.lower(), "args": used.arguments}
        shown = {**done, "result": [_response(used, call_id, output)], "status": "success"}
        yield self._message(author, "gemini", content="", toolCalls=[shown])

    def answer(self, author: Author, text: str) -> Iterator[Record]:
        yield self._message(author, "gemini", content=text)

    def _message(self, author: Author, kind: str, **fields: object) -> Record:
        return {"id": author.uuid(), "timestamp": author.timestamp(), "type": kind, **fields}


class OpenCode(Format):
    """Messages, each with its parts, which are separate rows of its database."""

    _SAID = {"role": "assistant", "modelID": "big-1", "providerID": "p"}

    def question(self, author: Author, text: str) -> Iterator[Record]:
        yield {
            "message": {"role": "user", "agent": "build"},
            "parts": [{"type": "text", "text": text}],
        }

    def use(self, author: Author, used: Call, call_id: str, output: str) -> Iterator[Record]:
        state = {
            "status": "completed",
            "input": used.arguments,
            "output": output,
            "title": used.name,
            "metadata": {},
        }
        part = {"type": "tool", "tool": used.name.lower(), "callID": call_id, "state": state}
        yield {"message": {**self._SAID, "finish": "tool-calls"}, "parts": [part]}

    def answer(self, author: Author, text: str) -> Iterator[Record]:
        said = {"type": "text", "text": text, "time": {"start": 1, "end": 2}}
        yield {"message": {**self._SAID, "finish": "stop"}, "parts": [said]}


def _response(used: Call, call_id: str, output: str) -> Record:
    return {
        "functionResponse": {
            "id": call_id,
            "name": used.name.lower(),
            "response": {"output": output},
        }
    }
