"""What was done in one runtime is told in every other that the same person uses on the same project."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path

import pytest
from git_scene import git, repository
from hooks_scene import run, told
from records import (
    append,
    codex_exchange,
    codex_item,
    codex_line,
    codex_message,
    exchange,
    new_id,
    qwen_exchange,
    write,
)

from session_memory.runtimes.claude.files import encode_cwd


class Person:
    """Somebody with a repository, who uses Claude Code and Codex in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.app = repository(root / "src" / "app", src__app="1\n")
        self.ids = {"claude": new_id(), "codex": new_id(), "qwen": new_id()}
        for directory in (".claude", ".codex", ".qwen"):
            (root / directory).mkdir()

    def claude_session(self, directory: Path, question: str) -> Path:
        path = self.root / ".claude" / "projects" / encode_cwd(str(directory)) / f"{new_id()}.jsonl"
        return write(path, *exchange(question, "Done.", cwd=str(directory)))

    def codex_session(self, directory: Path, question: str, *, session_id: str = "", subagent: bool = False) -> Path:
        session_id = session_id or new_id()
        header = {"id": session_id, "cwd": str(directory), "thread_source": "subagent" if subagent else "user"}
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
    person.codex_session(person.app, "count the lines", subagent=True)
    assert person.prompt_in_claude(person.app) == ""
    person.claude_session(person.app, "tidy the docs")
    assert person.prompt_in_codex(person.app, agent_id="a-child") == ""
    assert "tidy the docs" in person.prompt_in_codex(person.app)


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
    read = ("Read", {"file_path": str(person.app / "src" / "app.py")})
    own = person.root / ".claude" / "projects" / encode_cwd(str(person.app)) / f"{person.ids['claude']}.jsonl"
    write(own, *exchange("look at it", read, cwd=str(person.app), at=time.time() - 600))
    path = person.codex_session(person.app, "mend it")
    (person.app / "src" / "app.py").write_text("2\n")
    item = {
        "type": "FileChange", "id": "exec-1", "status": "completed",
        "changes": {
            str(person.app / "README"): {"type": "add", "content": ""},
            str(person.app / "src" / "app.py"): {"type": "update", "unified_diff": ""},
        },
    }  # fmt: skip
    append(path, codex_item(item, at=time.time() - 60))
    assert "! src/app.py: codex: mend it edited it 1m ago, after you read it" in person.prompt_in_claude(person.app)
