"""A sub-agent gets facts at its start, without taking any from its session."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from hooks_scene import run
from memories_scene import MemoryDirectory, conversation
from records import append, assistant, user, write
from tool_call_scene import Project

from session_memory.awareness.events._sub_agent import CHARACTERS
from session_memory.memory.strategy import Memory
from session_memory.sessions.transcripts.entries import INTRODUCTION

LINE = '! app: edited just now by "discord"'


class Delegating(Project):
    """The project; its session starts sub-agents."""

    def delegates(self, *prompts: str, kind: str = "general-purpose") -> None:
        """The session calls for sub-agents, all at once."""
        calls = [
            ("Agent", {"prompt": prompt, "description": "x", "subagent_type": kind})
            for prompt in prompts
        ]
        append(self.own, assistant(*calls, cwd=self.cwd))

    def started(self, agent: str = "a1", kind: str = "general-purpose") -> str:
        """What a sub-agent is told as it starts, which its transcript then shows; '' for nothing."""
        event = self.user.event(
            hook_event_name="SubagentStart",
            agent_id=agent,
            agent_type=kind,
            cwd=self.cwd,
            prompt_id="p1",
        )
        del event["prompt"]
        output = run({**event}, self.user.root, "subagent_start")
        if not output:
            return ""
        answer = json.loads(output)["hookSpecificOutput"]
        assert answer["hookEventName"] == "SubagentStart"
        text = str(answer["additionalContext"])
        assert len(text) <= CHARACTERS
        attachment = {
            "type": "hook_additional_context",
            "content": [text],
            "hookName": "SubagentStart",
        }
        self.of(
            agent, user("go on", agentId=agent), {"type": "attachment", "attachment": attachment}
        )
        return text.partition("\n")[2]

    def of(self, agent: str, *records: dict[str, Any]) -> None:
        write(self.own.with_suffix("") / "subagents" / f"agent-{agent}.jsonl", *records)


@pytest.fixture
def project(tmp_path: Path) -> Delegating:
    return Delegating(tmp_path)


def test_it_is_told_collisions_over_files_that_its_task_names(project):
    project.edited()
    project.delegates("Look at ./app", "Look at ./db")
    project.delegates("Look at ./db")
    assert project.started("a1") == ""
    project.delegates("Rename the port in ./app, please.")
    assert project.started("a2") == LINE
    assert project.user.log() == []


def test_of_several_that_start_at_once_each_is_told_what_concerns_any(project):
    project.edited()
    project.delegates("Look at ./db", "Look at ./app")
    assert [project.started(agent) for agent in ("a1", "a2")] == [LINE, LINE]


def test_it_is_told_also_what_its_session_was_told_with_a_prompt_before(project):
    project.edited()
    assert "edited app" in project.user.run(cwd=project.cwd).decode()
    project.delegates("Look at ./app")
    assert project.started() == LINE


def test_a_call_that_is_written_after_the_start_counts_and_one_with_a_result_does_not(project):
    project.edited()
    call = {
        "type": "tool_use",
        "id": "toolu_db",
        "name": "Agent",
        "input": {"prompt": "Look at ./app"},
    }
    result = {"type": "tool_result", "tool_use_id": "toolu_db", "content": "Done."}
    append(project.own, assistant(call, cwd=project.cwd), user([result], cwd=project.cwd))
    assert project.started("a1") == ""
    late = Timer(0.15, project.delegates, ["Look at ./app"])
    late.start()
    assert project.started("a2") == LINE


def test_each_kind_of_agent_has_its_own_task(project):
    project.edited()
    project.delegates("Look at ./db")
    project.delegates("Look at ./app", kind="Explore")
    assert project.started("a2", "Explore") == LINE
    assert project.started("a1") == ""


def test_a_session_whose_id_has_that_of_the_agent_in_it_is_not_taken_for_the_agent(project):
    project.edited()
    project.delegates("Look at ./app")
    agent = project.user.session_id[9:16]
    attachment = {
        "type": "hook_additional_context",
        "content": [INTRODUCTION],
        "hookName": "UserPromptSubmit",
    }
    append(project.own, user("go on"), {"type": "attachment", "attachment": attachment})
    assert project.started(agent) == LINE


def test_one_that_goes_on_is_told_nothing_again_that_its_transcript_shows(project):
    project.edited()
    project.delegates("Look at ./app")
    assert project.started() == LINE
    project.delegates("Look at ./app")
    assert project.started() == ""


def test_it_is_not_told_the_same_again_with_its_own_call(project):
    project.edited()
    project.delegates("Look at ./app")
    assert project.started() == LINE
    assert project.told(agent_id="a1") == ""


def test_the_session_is_not_told_it_with_a_prompt_but_of_the_others_work_as_before(project):
    append(project.own, assistant(("Read", {"file_path": f"{project.cwd}/app"}), cwd=project.cwd))
    project.edited()
    project.delegates("Look at ./app")
    assert project.started() == LINE
    prompted = project.user.run(cwd=project.cwd).decode()
    assert "edited app" in prompted
    assert "!" not in prompted


def test_the_session_is_told_it_all_the_same_as_it_edits_the_file_itself(project):
    project.edited()
    project.delegates("Look at ./app")
    assert project.started() == LINE
    assert LINE in project.told()


def test_it_is_told_memories_of_the_words_of_its_task_and_the_session_is_not_told_them_with_a_prompt(
    project,
):
    of = conversation()._replace(cwd=project.cwd)
    text = "The JWT expiry of the login service is 3600 seconds"
    MemoryDirectory(project.user.place).keep(Memory("fact", text, "", "auth"), of=of)
    asked = "Why does the login JWT have such a short expiry?"
    project.delegates(asked)
    assert "3600 seconds" in project.started()
    assert b"3600" not in project.user.run(cwd=project.cwd, prompt=asked)


def test_it_is_told_what_was_decided_about_a_file_of_its_task(project):
    of = conversation()._replace(cwd=project.cwd)
    (project.directory / "x.py").write_text("1\n")
    kept = Memory("decision", "We never cache in x.py", "", quote="We never cache in x.py")
    MemoryDirectory(project.user.place).keep(kept, of=of)
    project.delegates("Make x.py quicker")
    assert "never cache" in project.started()


def test_a_task_about_nothing_that_is_known_is_told_nothing(project):
    project.edited()
    project.delegates("Count to ten")
    assert project.started() == ""


def test_with_collisions_off_none_are_told(project):
    project.user.config("collisions: off\n")
    project.edited()
    project.delegates("Look at ./app")
    assert project.started() == ""
