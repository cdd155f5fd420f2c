"""An edit in any runtime, by tool or shell, is reported in every other runtime.

It comes with the next prompt, and before an edit of the same file.
tests/sessions/runtimes/test_all_pairs.py has the same pairs with the real clients.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cline_scene import ClineSession, lists_of
from hermes_scene import HermesDatabase
from openclaw_scene import OpenClawDatabase
from opencode_scene import tool
from records import (
    OmpSession,
    PiSession,
    append,
    assistant,
    atif_exchange,
    codex_exchange,
    codex_item,
    codex_line,
    copilot_exchange,
    copilot_message,
    copilot_start,
    droid_exchange,
    droid_message,
    droid_start,
    exchange,
    gemini_exchange,
    gemini_message,
    kimi_event,
    kimi_exchange,
    kimi_start,
    new_id,
    qwen_exchange,
    qwen_record,
    show_told,
    stamp,
    user,
    write,
)
from runtimes_scene import EDIT, READ, SHELL, TOOLS, WAYS, Person, row_of

from session_memory.awareness.events import prompt, tool_call
from session_memory.awareness.events.context import Context, context_of, home_of
from session_memory.common.system import files
from session_memory.common.system.deadline import Deadline
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import all_runtimes, sender_of
from session_memory.sessions.settings.homes import environment

# When the records of a call say that it was made and that it ended, in milliseconds after the mtime
# of the file: the latest begin and the earliest end of five runs of each real client with no hook,
# on ext4, 2026-11-23 (Codex 0.169.0, OpenCode 1.18.33, Gemini CLI 0.61.0, Pi 0.87.1, Copilot CLI
# 1.0.102, Qwen Code 0.24.4; Droid 0.225.2, Kimi Code 2.1.0 and omp 18.2.3 on 2026-11-30, and OpenClaw 2026.9.2 on a busy machine). The shell's are those of a command that writes at once. Of Codex the
# latest end: the item, by which the call is known, has no other time. Claude Code was not measured:
# its records come in the same order.
STAMPS = {
    "atif": {EDIT: (-1, 1), SHELL: (-1, 1)},
    "claude-code": {EDIT: (-5, 2), SHELL: (-5, 2)},
    "codex": {EDIT: (-29, 8), SHELL: (-35, 25)},
    "copilot": {EDIT: (0, 2), SHELL: (-18, 3)},
    "droid": {EDIT: (-60, 4), SHELL: (-43, 12)},
    "gemini": {EDIT: (0, 2), SHELL: (-7, 1)},
    "cline": {EDIT: (-42, 104), SHELL: (-419, 34)},
    "openclaw": {EDIT: (-42, 104), SHELL: (-419, 34)},
    "hermes": {EDIT: (-42, 104), SHELL: (-419, 34)},
    "kimi": {EDIT: (4, 6), SHELL: (-8, 2)},
    "omp": {EDIT: (-1, 0), SHELL: (-4, 0)},
    "opencode": {EDIT: (-5, 6), SHELL: (-5, 10)},
    "pi": {EDIT: (1, 1), SHELL: (-3, 0)},
    "qwen-code": {EDIT: (-7, 2), SHELL: (-11, 1)},
}
# what its item calls the start: a quick command has ended by then
CODEX_STARTED = {EDIT: -24, SHELL: 23}
SCRIPT = "script"  # a way to edit beside those of TOOLS
WITHOUT_END = (
    "atif",
)  # runtimes whose records do not say when a call ended: only the words of a command show its files
WRITES = "python3 - <<'EOF'\nopen('{}', 'w').write('2')\nEOF"
PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-1\n+2\n*** End Patch\n"


class Session:
    """A session of one runtime in the person's repository, which begins with a question."""

    def __init__(self, person: Person, runtime: Runtime, question: str, at: float) -> None:
        self.person = person
        self.runtime = runtime
        self.cwd = str(person.app)
        self.id = new_id()
        self.begin(question, at)

    def begin(self, question: str, at: float) -> None:
        raise NotImplementedError

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        """Adds a call and its result to the transcript."""
        raise NotImplementedError

    def used(self, kind: str, given: str) -> tuple[str, dict[str, str], str]:
        """The name of the tool, what it is given, and an id for the call."""
        name, key = row_of(TOOLS, self.runtime)[kind]
        return name, {key: given}, f"call_{new_id()}"

    def event(self, **fields: Any) -> dict[str, Any]:
        path = str(self.path) if self.path else None
        return {"session_id": self.id, "transcript_path": path, "cwd": self.cwd, **fields}

    @property
    def path(self) -> Path | None:
        """Where its transcript lies, if the runtime has a file for it."""
        return None

    def environ(self) -> dict[str, str]:
        """What the runtime puts into the environment of its hooks."""
        return {}

    def prompts(self) -> str:
        """What the agent is told with a prompt, which its transcript then shows."""
        event = self.event(
            hook_event_name=self.runtime.PROMPT_EVENT, prompt="go on", prompt_id=new_id()
        )
        printed = self.answered({**event, "timestamp": stamp(time.time())}, prompt.answer)
        self.show(printed)
        return str(printed)

    def edits(self, path: Path) -> str:
        """What the agent is told before it edits a file."""
        name, (_, key) = next(one for one in self.runtime.TOOLS.items() if one[1][0] == EDIT)
        given = PATCH.format(path) if name == "apply_patch" else str(path)
        event = self.event(
            hook_event_name=self.runtime.TOOL_EVENT, tool_name=name, tool_input={key: given}
        )
        return str(self.answered({**event, "tool_use_id": new_id()}, tool_call.answer))

    def answered(
        self, event: dict[str, Any], answer: Callable[[Context, Any], None]
    ) -> dict[str, Any]:
        environ = {**environment(), **self.environ()}
        sender = sender_of(event, environ, self.runtime)
        assert sender is self.runtime
        deadline, printed = Deadline(), list[dict[str, Any]]()
        context = context_of(event, environ, sender, home_of(event, environ, sender), deadline)
        answer(context, printed.append)
        assert deadline.notes == []
        return printed[0] if printed else {}

    def show(self, printed: dict[str, Any]) -> None:
        assert self.path
        show_told(self.path, json.dumps(printed).encode())


class Claude(Session):
    @property
    def path(self) -> Path:
        return Path(
            self.runtime.project_dir(str(self.person.root / ".claude"), self.cwd),
            f"{self.id}.jsonl",
        )

    def begin(self, question: str, at: float) -> None:
        write(self.path, *exchange(question, "Yes.", cwd=self.cwd, at=at))

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        call = assistant(
            {"type": "tool_use", "id": id, "name": name, "input": arguments}, cwd=self.cwd, at=began
        )
        result = {"tool_use_id": id, "type": "tool_result", "content": "ok"}
        append(self.path, call, user([result], cwd=self.cwd, at=ended))


class Codex(Session):
    """Codex in code mode, where a script calls the tools and an item then describes the work."""

    @property
    def path(self) -> Path:
        return self.person.rollout(self.id)

    def begin(self, question: str, at: float) -> None:
        head = codex_line(
            "session_meta", {"id": self.id, "session_id": self.id, "cwd": self.cwd}, at=at
        )
        write(self.path, head, *codex_exchange(question, "Yes.", cwd=self.cwd, at=at))

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        id = new_id()
        item: dict[str, Any] = {"id": f"exec-{id}", "status": "completed"}
        if kind == EDIT:
            change = {"type": "update", "unified_diff": "@@ -1 +1 @@\n-1\n+2\n"}
            item |= {"type": "FileChange", "changes": {given: change}}
        else:
            command = f"cat {given}" if kind == READ else given
            parsed = {"type": "read", "path": given} if kind == READ else {"type": "unknown"}
            item |= {
                "type": "CommandExecution",
                "command": ["/bin/bash", "-lc", command],
                "cwd": f"file://{self.cwd}",
            }
            item |= {
                "parsed_cmd": [{**parsed, "cmd": command}],
                "aggregated_output": "",
                "exit_code": 0,
            }
        modified = began - STAMPS["codex"][kind][0] / 1000 if kind in WAYS else began
        shown = codex_item(item, at=ended)
        shown["payload"]["started_at_ms"] = int(
            (modified + CODEX_STARTED.get(kind, 0) / 1000) * 1000
        )
        shown["payload"]["completed_at_ms"] = int(ended * 1000)
        call = {
            "type": "custom_tool_call",
            "call_id": id,
            "name": "exec",
            "input": "await tools.run()",
        }
        output = {"type": "custom_tool_call_output", "call_id": id, "output": []}
        behind = codex_line("response_item", output, at=ended + 0.02)
        append(self.path, codex_line("response_item", call, at=began), shown, behind)


class Copilot(Session):
    def environ(self) -> dict[str, str]:
        return {"COPILOT_CLI": "1"}

    @property
    def path(self) -> Path:
        return self.person.events(self.id)

    def event(self, **fields: Any) -> dict[str, Any]:
        return {
            key: value for key, value in super().event(**fields).items() if key != "transcript_path"
        }

    def begin(self, question: str, at: float) -> None:
        write(
            self.path,
            copilot_start(self.id, self.cwd, at=at),
            *copilot_exchange(question, "Yes.", at=at),
        )

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        request = {"toolCallId": id, "name": name, "arguments": arguments, "type": "function"}
        asked = copilot_message("assistant", "", at=began, toolRequests=[request])
        shell = {"shellExecution": {"exitCode": 0}} if kind == SHELL else {}
        data = {"toolCallId": id, "success": True, "result": {"content": "ok"}, **shell}
        ends = {"id": new_id(), "timestamp": stamp(ended), "parentId": None}
        append(self.path, asked, {"type": "tool.execution_complete", "data": data, **ends})


class Droid(Session):
    def environ(self) -> dict[str, str]:
        return {"FACTORY_PROJECT_DIR": self.cwd}

    @property
    def path(self) -> Path:
        return self.person.droid_file(self.person.app, self.id)

    def begin(self, question: str, at: float) -> None:
        write(self.path, droid_start(self.id, self.cwd), *droid_exchange(question, "Yes.", at=at))

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        call = {"type": "tool_use", "id": id, "name": name, "input": arguments}
        result = {"type": "tool_result", "tool_use_id": id, "is_error": False, "content": "ok"}
        append(
            self.path,
            droid_message("assistant", call, at=began),
            droid_message("user", result, at=ended),
        )


class Kimi(Session):
    @property
    def path(self) -> Path:
        return self.person.kimi_file(self.id)

    def event(self, *, prompt: str = "", **fields: Any) -> dict[str, Any]:
        parts = [{"type": "text", "text": prompt}]
        event = {"session_id": self.id, "cwd": self.cwd, "client_type": "kimi_code_cli"}
        return {**event, **fields, **({"prompt": parts} if prompt else {})}

    def begin(self, question: str, at: float) -> None:
        self.id = f"session_{self.id}"
        self.path.parent.mkdir(parents=True)
        start = kimi_start(self.cwd, at=at)
        write(self.path, *start, *kimi_exchange(question, "Yes.", at=at))

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        call = kimi_event("tool.call", at=began, toolCallId=id, name=name, args=arguments)
        result = kimi_event("tool.result", at=ended, toolCallId=id, result={"output": "ok"})
        append(self.path, call, result)


class Gemini(Session):
    @property
    def path(self) -> Path:
        return self.person.gemini_chat(self.person.app, self.id)

    def environ(self) -> dict[str, str]:
        return {"GEMINI_SESSION_ID": self.id}

    def begin(self, question: str, at: float) -> None:
        self.person.gemini_chat(self.person.app, self.id, *gemini_exchange(question, "Yes.", at=at))

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        response = [{"functionResponse": {"id": id, "name": name, "response": {"output": "ok"}}}]
        call = {"id": id, "name": name, "args": arguments, "result": response, "status": "success"}
        said = gemini_message("gemini", "", at=began)
        result = gemini_message("user", "", at=ended)
        lines = [
            said,
            {**said, "toolCalls": [{**call, "timestamp": stamp(ended)}]},
            {**result, "content": response},
        ]
        self.person.gemini_chat(self.person.app, self.id, *lines)


class OpenCode(Session):
    """OpenCode or a fork."""

    def begin(self, question: str, at: float) -> None:
        self.database = self.person.database_of(self.runtime)
        self.id = self.database.session(self.person.app, at=at)
        self.database.turn(self.id, question, "Yes.", at=at)

    def event(self, **fields: Any) -> dict[str, Any]:
        return super().event(runtime=self.runtime.name, **fields)

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        code = 0 if kind == SHELL else None
        done = tool(name, arguments, call_id=id, exit_code=code, at=began, took=ended - began)
        self.database.turn(self.id, "", "Done.", done, at=began)

    def show(self, printed: dict[str, Any]) -> None:
        self.database.turn(self.id, "go on", "hm", told=printed.get("text", ""))


class Pi(Session):
    def begin(self, question: str, at: float) -> None:
        self.session = PiSession(cwd=self.cwd, at=at)
        self.id = self.session.id
        self.session.exchange(question, "Yes.", at=at)
        self.session.write(self.folder)

    @property
    def folder(self) -> Path:
        return Path(self.runtime.project_dir(str(self.person.root / ".pi" / "agent"), self.cwd))

    @property
    def path(self) -> Path:
        return next(self.folder.glob(f"*{self.id}.jsonl"))

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        content = [{"type": "text", "text": "ok"}]
        self.session.assistant(
            {"type": "toolCall", "id": id, "name": name, "arguments": arguments}, at=began
        )
        self.session.message(
            "toolResult", at=ended, toolCallId=id, toolName=name, content=content, isError=False
        )
        append(self.path, *self.session.records[-2:])


class Omp(Pi):
    def begin(self, question: str, at: float) -> None:
        self.session = OmpSession(cwd=self.cwd, at=at)
        self.id = self.session.id
        self.session.exchange(question, "Yes.", at=at)
        self.session.write(self.folder)

    def event(self, **fields: Any) -> dict[str, Any]:
        return super().event(runtime="omp", **fields)

    @property
    def folder(self) -> Path:
        return Path(self.runtime.project_dir(str(self.person.root / ".omp" / "agent"), self.cwd))


class Qwen(Session):
    @property
    def path(self) -> Path:
        return self.person.chats(self.person.app) / f"{self.id}.jsonl"

    def begin(self, question: str, at: float) -> None:
        write(self.path, *qwen_exchange(question, "Yes.", cwd=self.cwd, at=at))

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        call = {
            "role": "model",
            "parts": [{"functionCall": {"id": id, "name": name, "args": arguments}}],
        }
        response = {"functionResponse": {"id": id, "name": name, "response": {"output": "ok"}}}
        result = {"message": {"role": "user", "parts": [response]}, "provenance": "tool_result"}
        said = qwen_record("assistant", "", cwd=self.cwd, at=began, message=call)
        append(
            self.path, said, {**qwen_record("tool_result", "", cwd=self.cwd, at=ended), **result}
        )


class Cline(Session):
    def event(self, **fields: Any) -> dict[str, Any]:
        return super().event(runtime="cline", **fields)

    def show(self, printed: dict[str, Any]) -> None:
        self.session.exchange("go on", "hm", told=printed.get("text", ""))

    def begin(self, question: str, at: float) -> None:
        self.session = ClineSession(self.person.root / ".cline" / "data", self.cwd, at=at)
        self.id = self.session.id
        self.session.exchange(question, "Yes.", at=at)

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, key = TOOLS[self.runtime.name][kind]
        self.session.call(name, lists_of(key, given), began, ended)


class OpenClaw(Session):
    def event(self, **fields: Any) -> dict[str, Any]:
        return {"runtime": "openclaw", "session_id": self.id, "cwd": self.cwd, **fields}

    def show(self, printed: dict[str, Any]) -> None:
        """It shows nothing of it."""

    def begin(self, question: str, at: float) -> None:
        self.database = OpenClawDatabase(self.person.root / ".openclaw")
        self.id = self.database.session(self.cwd, at=at)
        self.database.exchange(self.id, question, "Yes.", at=at)

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, _ = self.used(kind, given)
        self.database.call(self.id, name, arguments, began, ended)


class Hermes(Session):
    def begin(self, question: str, at: float) -> None:
        self.database = HermesDatabase(self.person.root / ".hermes")
        self.id = self.database.session(self.cwd, at=at)
        self.database.exchange(self.id, question, "Yes.", at=at)

    def event(self, *, prompt: str = "", prompt_id: str = "", **fields: Any) -> dict[str, Any]:
        extra = {"user_message": prompt, "turn_id": prompt_id}
        return {"session_id": self.id, "cwd": self.cwd, **fields, "extra": extra}

    def show(self, printed: dict[str, Any]) -> None:
        sent = f"go on\n\n{printed['context']}" if printed else None
        self.database.message(self.id, "user", "go on", api_content=sent)
        self.database.message(self.id, "assistant", "Yes.", finish_reason="stop")

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, _ = self.used(kind, given)
        self.database.call(self.id, name, arguments, began, ended)


class Atif(Session):
    """An agent of its own, which writes its trajectory anew with every step."""

    def begin(self, question: str, at: float) -> None:
        self.steps = atif_exchange(question, "Yes.", at=at)
        self.write()

    def write(self) -> None:
        self.person.trajectory(self.person.app, *self.steps, name=self.id)

    def calls(self, kind: str, given: str, began: float, ended: float) -> None:
        name, arguments, id = self.used(kind, given)
        call = {"tool_call_id": id, "function_name": name, "arguments": arguments}
        step = {"source": "agent", "timestamp": stamp(began), "message": "", "tool_calls": [call]}
        self.steps.append(
            {**step, "observation": {"results": [{"source_call_id": id, "content": "ok"}]}}
        )
        self.write()


SESSIONS = {
    "atif": Atif,
    "cline": Cline,
    "openclaw": OpenClaw,
    "claude-code": Claude,
    "codex": Codex,
    "copilot": Copilot,
    "droid": Droid,
    "gemini": Gemini,
    "hermes": Hermes,
    "kimi": Kimi,
    "omp": Omp,
    "opencode": OpenCode,
    "pi": Pi,
    "qwen-code": Qwen,
}


def session(person: Person, runtime: Runtime, question: str, at: float) -> Session:
    """A session of the runtime."""
    return row_of(SESSIONS, runtime)(person, runtime, question, at)


@pytest.mark.parametrize(
    "runtime", [one for one in all_runtimes() if one.PROMPT_EVENT], ids=lambda one: one.name
)
def test_every_runtime_is_told_what_any_other_edits_by_its_edit_tool_its_shell_and_a_script(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    person, began = Person(tmp_path), time.time() - 600
    others = [one for one in all_runtimes() if one is not runtime]
    ways = [
        (one, way)
        for one in others
        for way in (*WAYS, SCRIPT)
        if way != SCRIPT or one.name not in WITHOUT_END
    ]
    writers = [(session(person, one, f"mend {way} {one.name}", began), way) for one, way in ways]
    paths = [person.app / f"{number}.txt" for number in range(len(writers))]
    at_prompt, at_edit = (
        session(person, runtime, f"read on {number}", began) for number in range(2)
    )
    for path in paths:
        path.write_text("1\n")
        os.utime(path, (began - 60, began - 60))
        for reader in (at_prompt, at_edit):
            reader.calls(READ, str(path), began, began)
    for reader in (at_prompt, at_edit):
        reader.prompts()
    edits = list(zip(writers, paths))
    missed = []
    for other in others:
        done = [(writer, way, path) for (writer, way), path in edits if writer.runtime is other]
        for edit in done:
            edited_by(*edit)
        told = at_prompt.prompts()
        for _, way, path in done:
            how = "changed just now during a command of" if way == SCRIPT else "edited just now by"
            title = f'"mend {way} {other.name}" ({other.TITLE})'
            line = f"! {path.name}: {how} {title}, after you read it"
            heard = {"prompt": told}
            if runtime.TOOLS:
                heard["edit"] = at_edit.edits(path)
            missed += [
                (other.name, way, when, text) for when, text in heard.items() if line not in text
            ]
    assert missed == []


@pytest.mark.parametrize("way", [EDIT, SCRIPT])
@pytest.mark.parametrize("name", ["claude-code", "gemini", "qwen-code"])
def test_an_edit_by_any_other_runtime_is_told_with_the_next_prompt_while_eight_sessions_of_two_are_at_work(
    name: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    person, began = Person(tmp_path), time.time() - 600
    runtimes = {one.name: one for one in all_runtimes()}
    others = [
        one
        for one in runtimes.values()
        if one.name != name and (way == EDIT or one.name not in WITHOUT_END)
    ]
    writers = [session(person, one, f"mend {one.name}", began) for one in others]
    busy = [session(person, runtimes[one], "go on", began) for one in ("claude-code", "codex") * 4]
    reader = session(person, runtimes[name], "read on", began)
    missed = []
    for number, writer in enumerate(writers):
        path = person.app / f"{number}.txt"
        path.write_text("1\n")
        os.utime(path, (began - 60, began - 60))
        reader.calls(READ, str(path), began, began)
        reader.prompts()
        edited_by(writer, way, path)
        done = "edited just now by" if way == EDIT else "changed just now during a command of"
        for one in busy:
            one.calls(READ, str(person.app / "src" / "app"), time.time(), time.time())
        if f"! {path.name}: {done}" not in reader.prompts():
            missed.append(writer.runtime.name)
    assert missed == []


@pytest.mark.parametrize("is_first", [True, False])
def test_of_the_commands_in_a_call_of_cline_each_has_its_own_result(
    is_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mirror has the results in a line each."""
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    person, began = Person(tmp_path), time.time() - 600
    runtimes = {one.name: one for one in all_runtimes()}
    writer = Cline(person, runtimes["cline"], "mend it", began)
    reader = session(person, runtimes["claude-code"], "read on", began)
    path = person.app / "a.txt"
    path.write_text("1\n")
    reader.calls(EDIT, str(path), began, began)
    reader.prompts()
    path.unlink()
    ends = [("git clean -f", True), ("cat b.txt", False)][:: 1 if is_first else -1]
    given = {"commands": [command for command, _ in ends]}
    call = {"type": "tool_use", "id": "c1", "name": "run_commands", "input": given}
    content = [{"query": command, "result": "x", "success": good} for command, good in ends]
    writer.session.add("assistant", call)
    writer.session.add("user", {"type": "tool_result", "tool_use_id": "c1", "content": content})
    assert "! a.txt: `git clean -f` run just now by" in reader.prompts()


def edited_by(session: Session, way: str, path: Path) -> None:
    """The session edits a file: its records have the times that its runtime gives them."""
    if way == SCRIPT:
        # else the time of the file lies in the last command before, which may be `sed -i` of any
        # file
        time.sleep(0.05)
    modified = int(time.time() * 1000) / 1000 + 0.0005  # records are cut to the millisecond
    path.write_text("2\n")
    os.utime(path, (modified, modified))
    kind = EDIT if way == EDIT else SHELL
    began, ended = (modified + offset / 1000 for offset in row_of(STAMPS, session.runtime)[kind])
    given = {
        EDIT: str(path),
        SHELL: f"sed -i s/1/2/ {path.name}",
        SCRIPT: WRITES.format(path.name),
    }[way]
    session.calls(kind, given, began, ended)
