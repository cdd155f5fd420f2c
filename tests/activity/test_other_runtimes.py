"""What was done in one runtime is told in every other that the same person uses on the same project."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from git_scene import git, repository
from hooks_scene import run, told
from opencode_scene import OpenCodeDatabase, tool
from records import (
    append,
    codex_exchange,
    codex_item,
    codex_line,
    codex_message,
    copilot_exchange,
    copilot_message,
    copilot_start,
    exchange,
    gemini_exchange,
    gemini_message,
    lines,
    new_id,
    qwen_exchange,
    qwen_record,
    write,
)

from session_memory.runtimes.claude.files import encode_cwd


class Person:
    """Somebody with a repository, who uses several runtimes in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.app = repository(root / "src" / "app", src__app="1\n")
        self.ids = {"claude": new_id(), "codex": new_id(), "qwen": new_id(), "copilot": new_id(), "gemini": new_id()}
        for directory in (".claude", ".codex", ".qwen", ".copilot"):
            (root / directory).mkdir()
        self.opencode = OpenCodeDatabase(root / ".local" / "share" / "opencode")
        self.opencode_id = self.opencode.session(self.app)

    def claude_session(self, directory: Path, question: str) -> Path:
        path = self.root / ".claude" / "projects" / encode_cwd(str(directory)) / f"{new_id()}.jsonl"
        return write(path, *exchange(question, "Done.", cwd=str(directory)))

    def codex_session(self, directory: Path, question: str, *, session_id: str = "", parent: str = "") -> Path:
        session_id = session_id or new_id()
        header = {"id": session_id, "session_id": parent or session_id, "cwd": str(directory)}
        header["thread_source"] = "subagent" if parent else "user"
        path = self.rollout(session_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        at = time.time() - 60
        append(path, codex_line("session_meta", header, at=at))
        append(path, *codex_exchange(question, "It is done.", cwd=str(directory), at=at))
        return path

    def rollout(self, session_id: str) -> Path:
        day = datetime.now().strftime("%Y/%m/%d")
        return self.root / ".codex" / "sessions" / day / f"rollout-2026-11-20T10-00-00-{session_id}.jsonl"

    def read_in_claude(self) -> None:
        """A session of Claude Code has read `src/app.py`, which was changed since."""
        own = self.root / ".claude" / "projects" / encode_cwd(str(self.app)) / f"{self.ids['claude']}.jsonl"
        read = ("Read", {"file_path": self.edited})
        write(own, *exchange("look at it", read, cwd=str(self.app), at=time.time() - 600))
        Path(self.edited).write_text("2\n")

    @property
    def edited(self) -> str:
        """A file of the repository."""
        return str(self.app / "src" / "app.py")

    def prompt_in_claude(self, directory: Path) -> str:
        folder = self.root / ".claude" / "projects" / encode_cwd(str(directory))
        event = {
            "session_id": self.ids["claude"],
            "transcript_path": str(folder / f"{self.ids['claude']}.jsonl"),
            "cwd": str(directory),
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hi",
        }
        return text_in(run(event, self.root))

    def prompt_in_codex(self, directory: Path, **fields: str) -> str:
        event = {
            "session_id": self.ids["codex"],
            "turn_id": new_id(),
            "transcript_path": str(self.rollout(self.ids["codex"])),
            "cwd": str(directory),
            "hook_event_name": "UserPromptSubmit",
            "model": "gpt-6.1-sol",
            "permission_mode": "default",
            "prompt": "hi",
            **fields,
        }
        self.rollout(self.ids["codex"]).parent.mkdir(parents=True, exist_ok=True)
        text = text_in(run(event, self.root, arguments=["codex"]))
        if text:
            write(self.rollout(self.ids["codex"]), codex_message("developer", text))
        return text

    def qwen_session(self, directory: Path, question: str) -> Path:
        path = self.chats(directory) / f"{new_id()}.jsonl"
        return write(path, *qwen_exchange(question, "Done.", cwd=str(directory), at=time.time() - 60))

    def chats(self, directory: Path) -> Path:
        return self.root / ".qwen" / "projects" / encode_cwd(str(directory)) / "chats"

    def prompt_in_qwen(self, directory: Path, prompt: str = "hi") -> str:
        own = self.chats(directory) / f"{self.ids['qwen']}.jsonl"
        event = {
            "session_id": self.ids["qwen"],
            "transcript_path": str(own),
            "cwd": str(directory),
            "hook_event_name": "UserPromptSubmit",
            "prompt_id": new_id(),
            "prompt": prompt,
        }
        text = text_in(run(event, self.root))
        if text:
            write(own, *qwen_exchange("hi", "ok"))
            own.write_bytes(
                own.read_bytes().replace(b'"message"', b'"systemPayload":' + payload(text) + b',"message"', 1)
            )
        return text

    def copilot_session(self, directory: Path, question: str, *, session_id: str = "") -> Path:
        session_id = session_id or new_id()
        start = copilot_start(session_id, str(directory), at=time.time() - 61)
        return write(self.events(session_id), start, *copilot_exchange(question, "Done.", at=time.time() - 60))

    def events(self, session_id: str) -> Path:
        return self.root / ".copilot" / "session-state" / session_id / "events.jsonl"

    def prompt_in_copilot(self, directory: Path, *arguments: str, at: str = "", **fields: str) -> str:
        """What a prompt is told by our hook for Copilot, which has the argument `copilot`; without any by that in the
        settings of Claude Code."""
        event = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": self.ids["copilot"],
            "timestamp": at or new_id(),
            "cwd": str(directory),
            "prompt": "hi",
            **fields,
        }
        output = run(event, self.root, arguments=list(arguments), COPILOT_CLI="1")
        text = json.loads(output)["additionalContext"] if output else ""
        if text:
            told = [copilot_message("user", "hi", told=text), copilot_message("assistant", "ok")]
            write(self.events(self.ids["copilot"]), copilot_start("", str(directory), at=time.time()), *told)
        return text

    def prompt_in_opencode(self, prompt: str = "hi") -> str:
        """What our plugin file is given for a prompt, which OpenCode then writes down with it."""
        event = {
            "hook_event_name": "chat.message",
            "runtime": "opencode",
            "session_id": self.opencode_id,
            "cwd": str(self.app),
            "prompt": prompt,
        }
        output = run(event, self.root)
        text = str(json.loads(output)["text"]) if output else ""
        self.opencode.turn(self.opencode_id, prompt, "ok", told=text)
        return text

    def gemini_chat(self, directory: Path, session_id: str, *records: dict[str, Any]) -> Path:
        """Adds to a chat of Gemini, which names its directory beside it."""
        project = self.root / ".gemini" / "tmp" / directory.name
        chat = project / "chats" / f"session-2026-11-20T10-00-{session_id[9:23]}.jsonl"
        if not chat.exists():
            chat.parent.mkdir(parents=True, exist_ok=True)
            (project / ".project_root").write_text(str(directory))
            header = {"sessionId": session_id, "projectHash": "0" * 64, "startTime": "", "kind": "main"}
            chat.write_bytes(lines(header))
        with chat.open("ab") as file:
            file.write(lines(*records))
        return chat

    def gemini_session(self, directory: Path, question: str) -> Path:
        return self.gemini_chat(directory, new_id(), *gemini_exchange(question, "Done.", at=time.time() - 60))

    def prompt_in_gemini(self, directory: Path) -> str:
        chat = self.gemini_chat(directory, self.ids["gemini"])
        event = {
            "session_id": self.ids["gemini"],
            "transcript_path": str(chat),
            "cwd": str(directory),
            "hook_event_name": "BeforeAgent",
            "timestamp": new_id(),
            "prompt": "hi",
        }
        output = run(event, self.root, arguments=["gemini"], GEMINI_SESSION_ID=self.ids["gemini"])
        text = json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""
        answered = [gemini_message("user", "hi", told=text), gemini_message("gemini", "ok")]
        self.gemini_chat(directory, self.ids["gemini"], *answered)
        return text

    def rules(self, text: str) -> None:
        (self.root / ".session-memory").mkdir(exist_ok=True)
        (self.root / ".session-memory" / "config.yaml").write_text(text)


def payload(text: str) -> bytes:
    """What Qwen Code keeps of a prompt and what a hook told with it."""
    return json.dumps({"displayText": "hi", "hookContext": text}, separators=(",", ":")).encode()


def text_in(output: bytes) -> str:
    return told(output) if output else ""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_claude_code_hears_of_a_session_of_codex_by_its_runtime_and_only_once(person):
    person.codex_session(person.app, "fix the flaky test")
    assert '- codex: "fix the flaky test" (' in person.prompt_in_claude(person.app)
    assert person.prompt_in_claude(person.app) == ""


def test_codex_hears_of_a_session_of_claude_code_by_its_runtime_and_only_once(person):
    person.claude_session(person.app, "tidy the docs")
    assert '- claude-code: "tidy the docs" (' in person.prompt_in_codex(person.app)
    assert person.prompt_in_codex(person.app) == ""


def test_qwen_code_hears_of_the_others_and_they_of_it(person):
    person.claude_session(person.app, "tidy the docs")
    person.codex_session(person.app, "fix the flaky test")
    person.qwen_session(person.app, "write the tests")
    text = person.prompt_in_qwen(person.app)
    assert '- claude-code: "tidy the docs" (' in text
    assert '- codex: "fix the flaky test" (' in text
    assert '- "write the tests" (' in text
    assert person.prompt_in_qwen(person.app) == ""
    assert '- qwen-code: "write the tests" (' in person.prompt_in_claude(person.app)


def test_qwen_code_is_told_nothing_where_no_prompt_was_typed(person):
    """In print mode its hook is started again after every tool."""
    person.claude_session(person.app, "tidy the docs")
    assert person.prompt_in_qwen(person.app, "") == ""
    assert "tidy the docs" in person.prompt_in_qwen(person.app)


def test_copilot_hears_of_the_others_and_they_of_it(person):
    person.claude_session(person.app, "tidy the docs")
    person.codex_session(person.app, "fix the flaky test")
    person.copilot_session(person.app, "write the tests")
    text = person.prompt_in_copilot(person.app, "copilot")
    assert '- claude-code: "tidy the docs" (' in text
    assert '- codex: "fix the flaky test" (' in text
    assert '- "write the tests" (' in text
    assert person.prompt_in_copilot(person.app, "copilot") == ""
    assert '- copilot: "write the tests" (' in person.prompt_in_claude(person.app)


def test_gemini_hears_of_the_others_and_they_of_it(person):
    person.claude_session(person.app, "tidy the docs")
    person.codex_session(person.app, "fix the flaky test")
    chat = person.gemini_session(person.app, "write the tests")
    text = person.prompt_in_gemini(person.app)
    assert '- claude-code: "tidy the docs" (' in text
    assert '- codex: "fix the flaky test" (' in text
    assert '- "write the tests" (' in text
    assert person.prompt_in_gemini(person.app) == ""
    assert '- gemini: "write the tests" (' in person.prompt_in_claude(person.app)
    person.gemini_chat(
        person.app, json.loads(chat.read_text().split("\n")[0])["sessionId"], *gemini_exchange("more", "ok")
    )
    assert "more" in person.prompt_in_claude(person.app)
    assert person.prompt_in_claude(person.app) == ""


def test_a_chat_that_gemini_deleted_is_told_all_the_same(person):
    """As it does with one that it has resumed."""
    chat = person.gemini_session(person.app, "write the tests")
    person.prompt_in_gemini(person.app)
    chat.unlink()
    assert '- gemini: "write the tests" (' in person.prompt_in_claude(person.app)


def test_rules_hold_for_gemini_too(person):
    person.gemini_session(person.app, "the secret plan")
    person.rules(f"projects: {{{person.app}: {{text: false}}}}\n")
    text = person.prompt_in_claude(person.app)
    assert "gemini:" in text
    assert "plan" not in text


def test_copilot_is_told_once_where_it_runs_the_hook_of_claude_code_too(person):
    """As where the repository's `.claude/settings.json` has it. Hooks of one prompt get the same time."""
    person.claude_session(person.app, "tidy the docs")
    for first, second in (((), ("copilot",)), (("copilot",), ())):
        assert "tidy the docs" in person.prompt_in_copilot(person.app, *first, at="2026-11-22T15:20:53.199Z")
        assert person.prompt_in_copilot(person.app, *second, at="2026-11-22T15:20:53.199Z") == ""
        person.ids["copilot"] = new_id()


def test_what_another_hook_of_copilot_outdid_is_told_again(person):
    """Of the hooks of a prompt it hears the last one that says something."""
    person.claude_session(person.app, "tidy the docs")
    assert "tidy the docs" in person.prompt_in_copilot(person.app, "copilot")
    path = person.events(person.ids["copilot"])
    path.write_bytes(path.read_bytes().replace(b"A record of your other sessions", b"Something else"))
    assert "tidy the docs" in person.prompt_in_copilot(person.app, "copilot")


def test_a_sub_agent_of_copilot_is_not_answered(person):
    person.claude_session(person.app, "tidy the docs")
    child = {"session_id": new_id(), "agent_id": "a-child", "parent_agent_id": person.ids["copilot"]}
    assert person.prompt_in_copilot(person.app, "copilot", **child) == ""
    assert person.prompt_in_copilot(person.app, **child) == ""
    assert "tidy the docs" in person.prompt_in_copilot(person.app, "copilot")


def test_the_name_that_its_user_gave_a_session_of_copilot_is_told(person):
    path = person.copilot_session(person.app, "fix the flaky test")
    for named, name in (("false", '"fix the flaky test"'), ("true", "it's flaky")):
        path.with_name("workspace.yaml").write_text(f"cwd: /srv\nname: 'it''s flaky'\nuser_named: {named}\n")
        person.ids["claude"] = new_id()
        assert f"- copilot: {name} (" in person.prompt_in_claude(person.app)


def test_cursor_is_told_nothing(person):
    """It runs the hooks in the settings of Claude Code, with events of its own."""
    person.claude_session(person.app, "tidy the docs")
    event = {
        "conversation_id": new_id(),
        "generation_id": new_id(),
        "session_id": person.ids["claude"],
        "hook_event_name": "UserPromptSubmit",
        "cursor_version": "3.18.2",
        "workspace_roots": [str(person.app)],
        "cwd": str(person.app),
        "transcript_path": None,
        "prompt": "hi",
    }
    transcripts = person.root / ".cursor" / "projects" / "app" / "agent-transcripts"
    for path in (None, str(transcripts / "x.jsonl"), str(transcripts / "x" / "x.jsonl")):
        assert run({**event, "transcript_path": path}, person.root) == b""
    assert not (person.root / ".session-memory").exists()


def test_opencode_hears_of_the_others_and_they_of_it(person):
    person.claude_session(person.app, "tidy the docs")
    person.codex_session(person.app, "fix the flaky test")
    person.qwen_session(person.app, "write the tests")
    text = person.prompt_in_opencode("paint the door")
    for said in ('claude-code: "tidy the docs"', 'codex: "fix the flaky test"', 'qwen-code: "write the tests"'):
        assert f"- {said} (" in text
    assert person.prompt_in_opencode() == ""
    for prompt in (person.prompt_in_claude, person.prompt_in_codex, person.prompt_in_qwen):
        assert '- opencode: "paint the door" (' in prompt(person.app)
        assert prompt(person.app) == ""


def test_opencode_hears_of_other_sessions_of_its_own_and_of_what_is_new_in_them(person):
    session = person.opencode.exchange(person.app, "paint the door", "Done.")
    assert '- "paint the door" (' in person.prompt_in_opencode()
    person.opencode.turn(session, "and the window", "Done.")
    assert "and the window" in person.prompt_in_opencode()


def test_what_a_prompt_of_opencode_was_told_and_never_wrote_down_is_told_again(person):
    person.claude_session(person.app, "tidy the docs")
    person.opencode.turn(person.opencode_id, "one", "first")
    event = {
        "hook_event_name": "chat.message", "runtime": "opencode", "session_id": person.opencode_id,
        "cwd": str(person.app), "prompt": "two",
    }  # fmt: skip
    assert b"tidy the docs" in run(event, person.root)
    assert "tidy the docs" in person.prompt_in_opencode("two")
    assert person.prompt_in_opencode("three") == ""


def test_of_opencode_a_sub_agent_is_not_told_of_and_a_fork_without_what_it_copied(person):
    session = person.opencode.exchange(person.app, "paint the door", "Done.")
    child = person.opencode.session(person.app, title="count (@general subagent)", parent=session)
    person.opencode.turn(child, "count the doors", "Two.")
    text = person.prompt_in_claude(person.app)
    assert "paint the door" in text
    assert "count" not in text
    fork = person.opencode.fork(session, "door (fork #1)")
    assert person.prompt_in_claude(person.app) == ""
    person.opencode.turn(fork, "and in green", "Done.")
    text = person.prompt_in_claude(person.app)
    assert "and in green" in text
    assert "paint the door" not in text


def test_a_database_of_opencode_that_cannot_be_read_keeps_nothing_of_the_others_from_being_told(person):
    person.codex_session(person.app, "fix the flaky test")
    person.opencode.path.write_bytes(b"no database")
    assert "fix the flaky test" in person.prompt_in_claude(person.app)


def test_a_file_that_opencode_edited_after_claude_code_read_it_is_a_collision(person):
    person.read_in_claude()
    edit = tool("edit", {"filePath": person.edited}, at=time.time() - 60)
    person.opencode.exchange(person.app, "mend it", "Done.", edit)
    assert "! src/app.py: opencode: mend it edited it 1m ago, after you read it" in person.prompt_in_claude(person.app)


def test_codex_hears_of_other_sessions_of_its_own(person):
    person.codex_session(person.app, "fix the flaky test")
    assert '- "fix the flaky test" (' in person.prompt_in_codex(person.app)


def test_what_is_new_in_a_known_session_is_told_next(person):
    path = person.codex_session(person.app, "fix the flaky test")
    person.prompt_in_claude(person.app)
    person.codex_session(person.app, "now the other one", session_id=path.stem[-36:])
    assert "now the other one" in person.prompt_in_claude(person.app)


def test_a_session_of_another_project_is_not_told(person):
    other = repository(person.root / "src" / "other")
    person.codex_session(other, "elsewhere")
    person.claude_session(other, "elsewhere too")
    assert person.prompt_in_claude(person.app) == ""
    assert person.prompt_in_codex(person.app) == ""


def test_a_session_in_another_worktree_is_named_with_it(person):
    git(person.app, "worktree", "add", "-q", "../app-login", "-b", "fix/login")
    person.codex_session(person.app.parent / "app-login", "fix the login")
    assert '- codex: "fix the login", in worktree app-login (' in person.prompt_in_claude(person.app)


def test_without_a_repository_the_directory_is_the_project(person):
    notes = person.root / "notes"
    (notes / "deep").mkdir(parents=True)
    person.codex_session(notes, "write it down")
    person.codex_session(notes / "deep", "somewhere below")
    text = person.prompt_in_claude(notes)
    assert "write it down" in text
    assert "somewhere below" not in text


def test_a_session_that_begins_later_is_found(person):
    assert person.prompt_in_claude(person.app) == ""
    person.codex_session(person.app, "fix the flaky test")
    assert "fix the flaky test" in person.prompt_in_claude(person.app)


def test_a_sub_agent_of_codex_is_neither_told_of_nor_answered(person):
    person.codex_session(person.app, "count the lines", parent=new_id())
    assert person.prompt_in_claude(person.app) == ""
    person.claude_session(person.app, "tidy the docs")
    assert person.prompt_in_codex(person.app, agent_id="a-child") == ""
    assert "tidy the docs" in person.prompt_in_codex(person.app)


def test_a_session_of_codex_that_was_archived_is_not_told(person):
    path = person.codex_session(person.app, "fix the flaky test")
    (person.root / ".codex" / "archived_sessions").mkdir()
    path.rename(person.root / ".codex" / "archived_sessions" / path.name)
    assert person.prompt_in_claude(person.app) == ""
    assert person.prompt_in_codex(person.app) == ""


def test_the_name_that_its_user_gave_a_session_is_told(person):
    path = person.codex_session(person.app, "fix the flaky test")
    line = {"id": path.stem[-36:], "thread_name": "flaky", "updated_at": "2026-11-20T10:00:00Z"}
    (person.root / ".codex" / "session_index.jsonl").write_text(json.dumps(line) + "\n")
    assert "- codex: flaky (" in person.prompt_in_claude(person.app)


def test_rules_hold_for_every_runtime(person):
    person.codex_session(person.app, "the secret plan")
    person.rules(f"projects: {{{person.app}: {{text: false}}}}\n")
    text = person.prompt_in_claude(person.app)
    assert "codex:" in text
    assert "plan" not in text
    person.rules(f"projects: {{{person.app}: {{ignore: true}}}}\n")
    person.codex_session(person.app, "another secret plan")
    assert person.prompt_in_claude(person.app) == ""


def test_a_directory_of_claude_code_of_its_own_knows_no_other_runtime(person):
    person.codex_session(person.app, "fix the flaky test")
    moved = person.root / "other-claude"
    event = {
        "session_id": new_id(),
        "transcript_path": str(moved / "projects" / encode_cwd(str(person.app)) / f"{new_id()}.jsonl"),
        "cwd": str(person.app),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "hi",
    }
    assert run(event, person.root, CLAUDE_CONFIG_DIR=str(moved)) == b""


def test_a_file_that_codex_edited_after_claude_code_read_it_is_a_collision(person):
    person.read_in_claude()
    append(person.codex_session(person.app, "mend it"), patch(person.app / "README", Path(person.edited)))
    assert "! src/app.py: codex: mend it edited it 1m ago, after you read it" in person.prompt_in_claude(person.app)


def patch(*paths: Path) -> dict[str, Any]:
    """What a person saw of a patch of Codex, a minute ago."""
    changes = {str(path): {"type": "update", "unified_diff": ""} for path in paths}
    item = {"type": "FileChange", "id": "exec-1", "status": "completed", "changes": changes}
    return codex_item(item, at=time.time() - 60)


def sub_agent_of_codex(person: Person) -> None:
    path = person.codex_session(person.app, "mend it")
    append(person.codex_session(person.app, "Edit it.", parent=path.stem[-36:]), patch(Path(person.edited)))


def sub_agent_of_copilot(person: Person) -> None:
    """It writes into the session's own events."""
    path = person.copilot_session(person.app, "mend it")
    asked = {"toolCallId": "call_1", "name": "edit", "arguments": {"path": person.edited}}
    edit = copilot_message("assistant", "I edited it.", at=time.time() - 60, toolRequests=[asked])
    done = {**edit, "type": "tool.execution_complete", "data": {"toolCallId": "call_1", "success": True}}
    append(path, {**edit, "agentId": "a-child"}, {**done, "id": new_id(), "agentId": "a-child"})


def sub_agent_of_opencode(person: Person) -> None:
    session = person.opencode.exchange(person.app, "mend it", "Done.")
    title, at = "edit (@general subagent)", time.time() - 60
    child = person.opencode.session(person.app, title=title, parent=session, at=at)
    edit = tool("edit", {"filePath": person.edited}, at=time.time() - 60)
    person.opencode.turn(child, "Edit it.", "Done.", edit, at=time.time() - 60)


def sub_agent_of_gemini(person: Person) -> None:
    session_id = new_id()
    chat = person.gemini_chat(person.app, session_id, *gemini_exchange("mend it", "Done.", at=time.time() - 60))
    call = {"id": "call_1", "name": "replace", "args": {"file_path": person.edited}, "status": "success", "result": []}
    header = {"sessionId": new_id(), "projectHash": "0" * 64, "startTime": "", "kind": "subagent"}
    edit = gemini_message("gemini", "", at=time.time() - 60, toolCalls=[call])
    path = chat.parent / session_id / f"{header['sessionId']}.jsonl"
    path.parent.mkdir()
    path.write_bytes(lines(header, gemini_message("user", "Edit it.", at=time.time() - 60), edit))


def sub_agent_of_qwen_code(person: Person) -> None:
    path = person.qwen_session(person.app, "mend it")
    child = path.parent.parent / "subagents" / path.stem / "agent-1.jsonl"
    call = {"functionCall": {"id": "call_1", "name": "edit", "args": {"file_path": person.edited}}}
    answer = {"functionResponse": {"id": "call_1", "name": "edit", "response": {"output": "ok"}}}
    fields = {"cwd": str(person.app), "at": time.time() - 60, "isSidechain": True}
    edit = qwen_record("assistant", "", **fields, message={"role": "model", "parts": [call]})
    write(child, edit, qwen_record("tool_result", "", **fields, message={"role": "user", "parts": [answer]}))


@pytest.mark.parametrize(
    "edited_by",
    [sub_agent_of_codex, sub_agent_of_copilot, sub_agent_of_opencode, sub_agent_of_gemini, sub_agent_of_qwen_code],
)
def test_what_a_sub_agent_edits_its_session_has_edited(person, edited_by):
    person.read_in_claude()
    edited_by(person)
    text = person.prompt_in_claude(person.app)
    assert ": mend it edited it 1m ago, after you read it" in text
    assert "dit it." not in text
    assert person.prompt_in_claude(person.app) == ""


def test_a_sub_agent_of_codex_that_begins_later_is_found(person):
    person.read_in_claude()
    path = person.codex_session(person.app, "mend it")
    assert "! " not in person.prompt_in_claude(person.app)
    append(person.codex_session(person.app, "Edit it.", parent=path.stem[-36:]), patch(Path(person.edited)))
    append(path, *codex_exchange("go on", "It is done.", cwd=str(person.app), at=time.time() - 50))
    assert "! src/app.py: codex: mend it edited it 1m ago, after you read it" in person.prompt_in_claude(person.app)


def test_what_a_sub_agent_of_codex_edited_its_own_session_has_in_hand(person):
    own = person.codex_session(person.app, "mend it", session_id=person.ids["codex"])
    append(person.codex_session(person.app, "Edit it.", parent=own.stem[-36:]), patch(Path(person.edited)))
    edit = ("Edit", {"file_path": person.edited, "old_string": "", "new_string": "2"})
    Path(person.edited).write_text("2\n")
    folder = person.claude_session(person.app, "tidy the docs").parent
    write(folder / f"{new_id()}.jsonl", *exchange("mend it too", edit, cwd=str(person.app), at=time.time() - 30))
    text = person.prompt_in_codex(person.app)
    assert "! src/app.py: claude-code: mend it too edited it just now, after you edited it" in text
