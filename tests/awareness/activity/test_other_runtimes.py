"""Work in one runtime is reported in every other one of the same person and project."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from git_scene import git, repository
from hooks_scene import run
from opencode_scene import tool
from records import (
    append,
    codex_exchange,
    copilot_message,
    gemini_exchange,
    new_id,
    stamp,
)
from runtimes_scene import Person, patch

from session_memory.sessions.runtimes.claude import encode_cwd


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_claude_code_hears_of_a_session_of_codex_by_its_runtime_and_only_once(person):
    person.codex_session(person.app, "fix the flaky test")
    assert '- "fix the flaky test" (Codex, ' in person.prompt_in_claude(person.app)
    assert person.prompt_in_claude(person.app) == ""


def test_codex_hears_of_a_session_of_claude_code_by_its_runtime_and_only_once(person):
    person.claude_session(person.app, "tidy the docs")
    assert '- "tidy the docs" (Claude Code, ' in person.prompt_in_codex(person.app)
    assert person.prompt_in_codex(person.app) == ""


@pytest.mark.parametrize(
    ("name", "title"), [("qwen", "Qwen Code"), ("copilot", "Copilot CLI"), ("gemini", "Gemini CLI")]
)
def test_a_runtime_hears_of_the_others_and_they_of_it(person, name, title):
    person.claude_session(person.app, "tidy the docs")
    person.codex_session(person.app, "fix the flaky test")
    getattr(person, f"{name}_session")(person.app, "write the tests")
    own = [person.app, "copilot"] if name == "copilot" else [person.app]
    text = getattr(person, f"prompt_in_{name}")(*own)
    assert '- "tidy the docs" (Claude Code, ' in text
    assert '- "fix the flaky test" (Codex, ' in text
    assert '- "write the tests" (' in text
    assert getattr(person, f"prompt_in_{name}")(*own) == ""
    assert f'- "write the tests" ({title}, ' in person.prompt_in_claude(person.app)


def test_qwen_code_is_told_nothing_where_no_prompt_was_typed(person):
    """In print mode its hook is started again after every tool."""
    person.claude_session(person.app, "tidy the docs")
    assert person.prompt_in_qwen(person.app, "") == ""
    assert "tidy the docs" in person.prompt_in_qwen(person.app)


def test_what_is_added_to_a_chat_of_gemini_is_told_once(person):
    chat = person.gemini_session(person.app, "write the tests")
    assert "write the tests" in person.prompt_in_claude(person.app)
    person.gemini_chat(
        person.app,
        json.loads(chat.read_text().split("\n")[0])["sessionId"],
        *gemini_exchange("more", "ok"),
    )
    assert "more" in person.prompt_in_claude(person.app)
    assert person.prompt_in_claude(person.app) == ""


def test_a_chat_that_gemini_deleted_is_told_all_the_same(person):
    """As it does with one that it has resumed."""
    chat = person.gemini_session(person.app, "write the tests")
    person.prompt_in_gemini(person.app)
    chat.unlink()
    assert '- "write the tests" (Gemini CLI, ' in person.prompt_in_claude(person.app)


def test_rules_hold_for_gemini_too(person):
    person.gemini_session(person.app, "the secret plan")
    person.rules(f"projects: {{{person.app}: {{text: false}}}}\n")
    assert "plan" not in person.prompt_in_claude(person.app)


@pytest.mark.parametrize("was_written", [True, False])
def test_a_call_of_copilot_that_a_resume_closed_counts_if_the_file_was_written_since_it_began(
    person, was_written
):
    person.read_in_claude()
    began = time.time() - 50
    os.utime(person.edited, (began + 1,) * 2 if was_written else (began - 100,) * 2)
    path = person.copilot_session(person.app, "change it")
    call = {
        "toolCallId": "c1",
        "name": "bash",
        "arguments": {"command": "sed -i s/1/2/ src/app.py; sleep 50"},
    }
    closed = {
        "toolCallId": "c1",
        "success": False,
        "model": "resumed",
        "error": {"message": "Interrupted"},
    }
    done = {
        "type": "tool.execution_complete",
        "data": closed,
        "id": "e9",
        "timestamp": stamp(time.time()),
        "parentId": None,
    }
    append(path, copilot_message("assistant", "", toolRequests=[call], at=began), done)
    told = person.prompt_in_claude(person.app)
    assert ("! src/app.py: edited" in told) is was_written


def test_copilot_is_told_once_where_it_runs_the_hook_of_claude_code_too(person):
    """As where the repository's `.claude/settings.json` has it. Hooks of one prompt get the same time."""
    person.claude_session(person.app, "tidy the docs")
    for first, second in (((), ("copilot",)), (("copilot",), ())):
        assert "tidy the docs" in person.prompt_in_copilot(
            person.app, *first, at="2026-11-22T15:20:53.199Z"
        )
        assert person.prompt_in_copilot(person.app, *second, at="2026-11-22T15:20:53.199Z") == ""
        person.ids["copilot"] = new_id()


def test_what_another_hook_of_copilot_outdid_is_told_again(person):
    """Of the hooks of a prompt it hears the last one that says something."""
    person.claude_session(person.app, "tidy the docs")
    assert "tidy the docs" in person.prompt_in_copilot(person.app, "copilot")
    path = person.events(person.ids["copilot"])
    path.write_bytes(
        path.read_bytes().replace(b"A record of your other sessions", b"Something else")
    )
    assert "tidy the docs" in person.prompt_in_copilot(person.app, "copilot")


def test_a_sub_agent_of_copilot_is_not_answered(person):
    person.claude_session(person.app, "tidy the docs")
    child = {
        "session_id": new_id(),
        "agent_id": "a-child",
        "parent_agent_id": person.ids["copilot"],
    }
    assert person.prompt_in_copilot(person.app, "copilot", **child) == ""
    assert person.prompt_in_copilot(person.app, **child) == ""
    assert "tidy the docs" in person.prompt_in_copilot(person.app, "copilot")


def test_the_name_that_its_user_gave_a_session_of_copilot_is_told(person):
    path = person.copilot_session(person.app, "fix the flaky test")
    for named, name in (("false", "fix the flaky test"), ("true", "it's flaky")):
        path.with_name("workspace.yaml").write_text(
            f"cwd: /srv\nname: 'it''s flaky'\nuser_named: {named}\n"
        )
        person.ids["claude"] = new_id()
        assert f'- "{name}" (Copilot CLI, ' in person.prompt_in_claude(person.app)


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
    for said in (
        '"tidy the docs" (Claude Code, ',
        '"fix the flaky test" (Codex, ',
        '"write the tests" (Qwen Code, ',
    ):
        assert f"- {said}" in text
    assert person.prompt_in_opencode() == ""
    person.opencode.turn(person.opencode_id, "and the window", "Done.")
    for prompt in (person.prompt_in_claude, person.prompt_in_codex, person.prompt_in_qwen):
        assert '- "paint the door" (OpenCode, ' in prompt(person.app)
        assert prompt(person.app) == ""  # the fourth session had no room


def test_opencode_hears_of_other_sessions_of_its_own_and_of_what_is_new_in_them(person):
    session = person.opencode.exchange(person.app, "paint the door", "Done.")
    assert '- "paint the door" (' in person.prompt_in_opencode()
    person.opencode.turn(session, "and the window", "Done.")
    assert "and the window" in person.prompt_in_opencode()


def test_what_a_prompt_of_opencode_was_told_and_never_wrote_down_is_told_again(person):
    person.claude_session(person.app, "tidy the docs")
    person.opencode.turn(person.opencode_id, "one", "first")
    event = {
        "hook_event_name": "chat.message",
        "runtime": "opencode",
        "session_id": person.opencode_id,
        "cwd": str(person.app),
        "prompt": "two",
    }
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


def test_a_database_of_opencode_that_cannot_be_read_keeps_nothing_of_the_others_from_being_told(
    person,
):
    person.codex_session(person.app, "fix the flaky test")
    person.opencode.path.write_bytes(b"no database")
    assert "fix the flaky test" in person.prompt_in_claude(person.app)


def test_a_file_that_opencode_edited_after_claude_code_read_it_is_a_collision(person):
    person.read_in_claude()
    edit = tool("edit", {"filePath": person.edited}, at=time.time() - 61)
    person.opencode.exchange(person.app, "mend it", "Done.", edit)
    assert (
        '! src/app.py: edited 1m ago by "mend it" (OpenCode), after you read it'
        in person.prompt_in_claude(person.app)
    )


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
    assert '- "fix the login", in worktree app-login (Codex, ' in person.prompt_in_claude(
        person.app
    )


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
    assert '- "flaky" (Codex, ' in person.prompt_in_claude(person.app)


def test_rules_hold_for_every_runtime(person):
    person.codex_session(person.app, "the secret plan")
    person.rules(f"projects: {{{person.app}: {{text: false}}}}\n")
    assert "plan" not in person.prompt_in_claude(person.app)
    person.rules(f"projects: {{{person.app}: {{ignore: true}}}}\n")
    person.codex_session(person.app, "another secret plan")
    assert person.prompt_in_claude(person.app) == ""


@pytest.mark.parametrize("is_excluded", [False, True])
def test_a_long_turn_of_codex_in_an_excluded_directory_is_not_told(person, is_excluded):
    """Only the first line of the turn names the directory."""
    person.rules("projects: {/srv/private: {ignore: true}}\n" if is_excluded else "")
    path = person.codex_session(person.app, "paint the door")
    assert "paint the door" in person.prompt_in_claude(person.app)
    turn = codex_exchange("paint it in secret", "The hinges go on. " * 400, cwd="/srv/private")
    append(path, *turn, *turn[3:] * 600)
    told = person.prompt_in_claude(person.app)
    assert ("The hinges" in told) is not is_excluded


def test_a_directory_of_claude_code_of_its_own_knows_no_other_runtime(person):
    person.codex_session(person.app, "fix the flaky test")
    moved = person.root / "other-claude"
    event = {
        "session_id": new_id(),
        "transcript_path": str(
            moved / "projects" / encode_cwd(str(person.app)) / f"{new_id()}.jsonl"
        ),
        "cwd": str(person.app),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "hi",
    }
    assert run(event, person.root, CLAUDE_CONFIG_DIR=str(moved)) == b""


def test_a_file_that_codex_edited_after_claude_code_read_it_is_a_collision(person):
    person.read_in_claude()
    append(
        person.codex_session(person.app, "mend it"),
        patch(person.app / "README", Path(person.edited)),
    )
    assert (
        '! src/app.py: edited 1m ago by "mend it" (Codex), after you read it'
        in person.prompt_in_claude(person.app)
    )


def test_without_a_repository_too_an_index_that_one_runtime_made_tells_another_of_it(
    person, tmp_path
):
    place = tmp_path / "plain"
    place.mkdir()
    person.qwen_session(place, "write the tests")
    person.claude_session(place, "tidy the docs")
    person.prompt_in_qwen(place)
    person.prompt_in_claude(place)
    long_ago = time.time() - 3600  # what has changed a moment ago is looked at again
    for path in tmp_path.rglob("*"):
        os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    person.prompt_in_claude(place)
    person.claude_session(place, "water the plants")
    assert '- "water the plants" (Claude Code, ' in person.prompt_in_qwen(place)
