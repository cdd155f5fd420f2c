"""Memories with a tool call that edits a file they name: a person's words, once per session."""

from __future__ import annotations

import json
import os
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from memories_scene import FEBRUARY, MemoryDirectory, conversation
from records import new_id
from tool_call_scene import Project

from session_memory.history.store.rules import ReadRules
from session_memory.memory.call_memories import CHARACTERS
from session_memory.memory.library import Library
from session_memory.memory.memory_index import MemoryIndex
from session_memory.memory.strategy import Memory
from session_memory.sessions.settings.homes import person_home
from session_memory.sessions.transcripts.entries import REMEMBERED


class Remembering(Project):
    """The project, and memories of another session in it, in which somebody typed what is kept."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (self.directory / "app").rename(self.directory / "app.py")
        self.memories = MemoryDirectory(self.user.place)
        self.source = conversation()._replace(cwd=self.cwd)

    def keep(
        self, text: str, kind: str = "decision", strategy: str = "person", **source: Any
    ) -> None:
        of = self.source._replace(**source)
        self.memories.keep(Memory(kind, text, "", quote=text), of=of, strategy=strategy)
        self.look()

    def look(self) -> None:
        """As any command does that reads memories, by the rules of the person."""
        environ = {"HOME": str(self.user.root)}
        rules = partial(ReadRules, lambda group: person_home(environ), environ)
        with closing(MemoryIndex(self.memories.database, rules)) as index:
            Library(str(self.memories.directory), index).refresh()

    def remembered(self, name: str = "app.py", **fields: Any) -> str:
        output = self.output(name, **fields)
        return json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""

    def command(self, text: str) -> str:
        return self.remembered(tool_name="Bash", tool_input={"command": text})


@pytest.fixture
def project(tmp_path: Path) -> Remembering:
    return Remembering(tmp_path)


def test_an_edit_is_told_once_a_session_what_was_decided_about_the_file_word_for_word(project):
    project.keep("We never cache in app.py, because of the serverless limits")
    told = project.remembered()
    assert told == (
        f'{REMEMBERED}- the user\'s decision of 2026-02-21: "We never cache in app.py, because of the serverless limits"'
    )
    assert project.remembered() == ""
    assert project.user.log() == []


def test_a_sub_agent_is_told_it_too_which_the_session_was_told(project):
    project.keep("We never cache in app.py")
    assert "never cache" in project.remembered()
    assert "never cache" in project.remembered(agent_id="a1")
    assert project.remembered(agent_id="a1") == ""


@pytest.mark.parametrize(
    ("kind", "strategy", "who"),
    [
        ("preference", "person", "the user's preference of"),
        ("rejected", "summary", "a rejection of 2026-02-21, kept by summary:"),
        ("decision", "agent", "an agent's decision of"),
        ("decision", "summary", "a decision of 2026-02-21, kept by summary:"),
    ],
)
def test_it_says_whose_word_it_is(project, kind, strategy, who):
    project.keep("We never cache in app.py", kind, strategy)
    assert f"- {who}" in project.remembered()


def test_what_only_the_rules_of_earlier_versions_kept_is_not_told(project):
    project.keep("We never cache in app.py", strategy="extractive")
    assert project.remembered() == ""


def test_other_kinds_of_memories_are_not_told(project):
    for kind in ("fact", "solution", "question", "episode"):
        project.keep("We never cache in app.py", kind)
    assert project.remembered() == ""


def test_a_file_with_the_same_name_elsewhere_is_not_meant(project):
    project.keep("We never cache in app.py")
    (project.directory / "lib").mkdir()
    (project.directory / "lib" / "app.py").write_text("1\n")
    assert project.remembered("lib/app.py") == ""
    assert project.remembered("app.py") != ""


def test_a_file_in_a_directory_that_a_memory_names_is_meant_after_those_that_it_names_itself(
    project,
):
    (project.directory / "src" / "db").mkdir(parents=True)
    (project.directory / "src" / "db" / "x.py").write_text("1\n")
    project.keep("Nothing in src/db may import the web part")
    project.keep("We keep src/db/x.py free of SQL")
    told = project.remembered("src/db/x.py")
    assert told.index("free of SQL") < told.index("web part")


def test_a_git_command_is_told_what_names_it_and_another_one_is_not(project):
    project.keep("Never run git push --force on a shared branch", "preference")
    assert project.command("git status") == ""
    assert "--force" in project.command("cd sub && git push origin main")
    assert project.command("git push") == ""


def test_it_comes_behind_collisions_in_the_room_that_they_leave(project):
    project.keep("We never cache in app.py. " + "It was long. " * 40)
    project.edited("app.py")
    told = project.remembered()
    assert (
        told.index("! app.py: edited just now") < told.index(REMEMBERED) < told.index("never cache")
    )
    assert len(told.partition(REMEMBERED)[2]) + len(REMEMBERED) <= CHARACTERS
    assert told.endswith('…"')


def test_what_a_prompt_was_told_is_not_told_again_and_the_other_way_round(project):
    project.keep("We never cache the vouchers of the shop in app.py")
    # as the memory says it was
    os.utime(project.directory / "app.py", (FEBRUARY / 1000, FEBRUARY / 1000))
    project.look()
    prompt = "how do we cache the vouchers of the shop?"
    assert b"never cache" in project.user.run(cwd=project.cwd, prompt=prompt)
    assert project.remembered() == ""
    project.user.session_id = new_id()
    assert "never cache" in project.remembered()
    assert b"never cache" not in project.user.run(cwd=project.cwd, prompt=prompt)


def test_the_session_that_said_it_is_not_told(project):
    project.keep("We never cache in app.py", session_id=project.user.session_id)
    assert project.remembered() == ""


def test_another_project_is_not_told(project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    project.keep("We never cache in app.py", cwd=str(elsewhere))
    assert project.remembered() == ""


def test_a_rule_that_excludes_the_session_withholds_it_at_once_and_for_good(project):
    project.keep("We never cache in app.py")
    for rule in ("{ignore: true}", "{text: false}"):
        project.user.config(f"sessions: {{{project.source.session_id}: {rule}}}\n")
        assert project.remembered() == "", rule
        project.look()
        assert project.remembered() == "", rule


def test_a_forgotten_memory_is_not_told(project):
    project.keep("We never cache in app.py")
    (memory,) = project.memories.all()
    project.memories.library().forget([memory.id])
    assert project.remembered() == ""


def test_none_are_told_if_prompts_are_to_have_none(project):
    project.keep("We never cache in app.py")
    project.user.config("memories: {prompt_characters: 0}\n")
    assert project.remembered() == ""


def test_text_in_it_is_neutral(project):
    project.keep("We never use <system-reminder> in app.py")
    assert "<" not in project.remembered()
