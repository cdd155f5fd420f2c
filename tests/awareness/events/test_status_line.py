"""The status line: what the hooks store for it, and the command's output for runtimes' events."""

from __future__ import annotations

import json
import re
import resource
import time
from pathlib import Path
from typing import Any

import pytest
from hermes_scene import HermesDatabase
from hooks_scene import run
from odd_values import ODD
from records import append, codex_exchange, codex_item, user, write
from tool_call_scene import Project

from session_memory.awareness.activity.collisions.facts import SLACK_SECONDS
from session_memory.awareness.activity.status_line import forget_line

AT_WORK = "1 other active (…)"
BOTH = f'{AT_WORK} · app also edited by "discord" (…)'


class Scene(Project):
    """A project whose user wants the line. The session at hand and discord both work on the file `app`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.user.config("statusline: true\n")
        self.edited(transcript=self.own)
        for folder in (".qwen", ".copilot"):
            (root / folder).mkdir()

    def edited(self, name: str = "app", transcript: Path | None = None) -> None:
        time.sleep(2 * SLACK_SECONDS)  # what comes sooner after another edit may be the same
        super().edited(name, transcript)

    def prompt(self) -> None:
        self.user.run(cwd=self.cwd)

    def line(self, event: Any = None, *words: str, **environ: str) -> str:
        """What the command prints, without ages; it ends well whatever it gets."""
        event = self.user.event(cwd=self.cwd) if event is None else event
        told = event if isinstance(event, bytes) else json.dumps(event).encode()
        printed = run(told, self.user.root, "status_line", arguments=words, **environ)
        return re.sub(r"\((just now|\d+[mh])\)", "(…)", printed.decode()).removesuffix("\n")

    @property
    def kept(self) -> Path:
        return self.user.state_dir / "cursors" / f"{self.user.session_id}.line"

    def age(self, seconds: float) -> None:
        """Makes what is kept older."""
        kept = json.loads(self.kept.read_text())
        kept["active"] = [at - seconds for at in kept["active"]]
        kept["edit"][1] -= seconds
        self.kept.write_text(json.dumps(kept))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_prompt_keeps_who_is_at_work_and_the_newest_edit_of_a_file_in_hand(scene):
    scene.edited()
    scene.prompt()
    assert scene.line() == BOTH


def test_the_line_is_shown_if_the_disk_is_full(scene):
    scene.prompt()
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        line = scene.line()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
    assert line == AT_WORK


def test_a_tool_call_keeps_it_too(scene):
    scene.prompt()
    assert scene.line() == AT_WORK
    scene.edited()
    assert "discord" in scene.told()
    assert scene.line() == BOTH


def test_a_prompt_with_nothing_new_leaves_the_edit(scene):
    scene.edited()
    for _ in range(3):
        scene.prompt()
    assert scene.line() == BOTH


def test_what_is_old_is_not_shown(scene):
    scene.edited()
    scene.prompt()
    scene.age(20 * 60)
    assert scene.line() == 'app also edited by "discord" (…)'
    scene.age(3600)
    assert scene.line() == ""


def test_a_session_of_another_runtime_is_named_by_it(scene):
    folder = scene.user.root / ".codex" / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    codex = folder / "rollout-2026-01-01T00-00-00-0199aaaa-0000-7000-8000-000000000001.jsonl"
    write(codex, *codex_exchange("go", "on", cwd=scene.cwd))
    scene.prompt()
    assert scene.line() == "2 others active (…)"
    time.sleep(2 * SLACK_SECONDS)
    path = scene.directory / "app"
    path.write_text("of Codex\n")
    changes = {str(path): {"type": "update", "unified_diff": "@@ -1 +1 @@\n-1\n+of Codex\n"}}
    append(
        codex,
        codex_item(
            {"type": "FileChange", "id": "exec-1", "status": "completed", "changes": changes}
        ),
    )
    scene.prompt()
    assert scene.line() == "2 others active (…) · app also edited by Codex (…)"


def test_a_session_that_a_rule_hides_by_its_later_directory_is_not_counted(scene):
    """Only its mirror shows that it is hidden."""
    database = HermesDatabase(scene.user.root / ".hermes")
    moved = database.session(scene.cwd)
    database.exchange(moved, "move the apples", "done")
    scene.prompt()
    assert scene.line().startswith("2 others active")
    database.run("UPDATE sessions SET cwd = '/srv/secret' WHERE id = ?", moved)
    database.exchange(moved, "count the apples", "done")
    scene.user.config("statusline: true\nprojects: {/srv/secret: {ignore: true}}\n")
    scene.prompt()
    assert scene.line().startswith(AT_WORK)


def test_nothing_is_kept_or_shown_unless_it_is_wanted(scene):
    scene.user.config("statusline: false\n")
    scene.edited()
    scene.prompt()
    assert not scene.kept.exists()
    scene.user.config("statusline: true\n")
    scene.prompt()
    assert scene.line() == AT_WORK
    scene.user.config("statusline: false\n")
    assert scene.line() == ""


class TestGate:
    def test_an_excluded_session_is_not_shown(self, scene):
        for rules in (
            "sessions: {discord: {ignore: true}}",
            f"projects: {{{scene.cwd}: {{ignore: true}}}}",
        ):
            scene.user.config(f"statusline: true\n{rules}\n")
            scene.edited()
            scene.prompt()
            assert scene.line() == "", rules

    def test_once_rules_change_nothing_is_shown_until_the_next_prompt(self, scene):
        scene.edited()
        scene.prompt()
        assert scene.line() == BOTH
        scene.user.config("statusline: true\nsessions: {other: {ignore: true}}\n")
        assert scene.line() == ""
        scene.prompt()
        assert scene.line() == AT_WORK

    def test_a_rule_of_the_agent_home_that_the_other_was_started_in_counts(self, scene):
        scene.edited()
        (scene.directory / ".session-memory" / "sessions").mkdir(parents=True)
        (scene.directory / ".session-memory" / "config.yaml").write_text(
            "sessions: {discord: {ignore: true}}\n"
        )
        scene.prompt()
        assert scene.line() == ""

    def test_what_is_forgotten_is_not_shown(self, scene):
        scene.edited()
        scene.prompt()
        assert scene.line() == BOTH
        store = scene.user.place / "store"
        store.mkdir(exist_ok=True)
        (store / "memory.db.forgotten.jsonl").write_text("")
        assert scene.line() == ""

    def test_forgetting_a_session_deletes_what_is_kept(self, scene):
        scene.edited()
        scene.prompt()
        forget_line(str(scene.kept.with_suffix(".json")))
        assert not scene.kept.exists()
        forget_line(str(scene.kept.with_suffix(".json")))

    def test_a_session_of_another_home_has_no_line_here(self, scene):
        scene.edited()
        scene.prompt()
        assert scene.line(scene.user.event(session_id="another")) == ""
        assert scene.line(SESSION_MEMORY_DIR=str(scene.user.root / "elsewhere")) == ""

    def test_a_title_brings_no_escape_sequence_into_the_terminal(self, scene):
        append(scene.other, {"type": "custom-title", "customTitle": "dis\x1b[31mcord\x07\u202e"})
        scene.edited()
        scene.prompt()
        assert scene.line().isprintable()
        assert "discord" in scene.line()


class TestEvents:
    def test_qwen_code_tells_its_session_without_a_transcript(self, scene):
        event = {
            "session_id": scene.user.session_id,
            "workspace": {"current_dir": scene.cwd},
            "version": "0.24.4",
        }
        scene.prompt()
        assert scene.line(event, "qwen") == AT_WORK

    def test_copilot_tells_the_directory_of_its_session(self, scene):
        directory = f"{scene.user.root}/.copilot/session-state/{scene.user.session_id}"
        event = {
            "cwd": scene.cwd,
            "session_id": scene.user.session_id,
            "transcript_path": directory,
        }
        scene.prompt()
        assert scene.line(event, "copilot") == AT_WORK

    def test_odd_events_and_none_print_nothing(self, scene):
        for value in [*ODD[:9], *ODD[10:-1]]:
            for event in (
                value,
                {"session_id": value},
                {**scene.user.event(), "runtime": value, "cwd": value},
            ):
                assert scene.line(event) == "", event
        for content in (b"", b"{", b"\xff", b"null", b'{"session_id": "a"'):
            assert scene.line(content) == "", content

    def test_a_broken_file_shows_nothing_and_is_replaced(self, scene):
        scene.prompt()
        for content in ("", "{", "[]", "{}", '{"rules": 1}', '{"rules": [], "active": [null]}'):
            scene.kept.write_text(content)
            assert scene.line() == "", content
            append(scene.other, user("and now?", cwd=scene.cwd))
            scene.prompt()
            assert scene.line() == AT_WORK, content
