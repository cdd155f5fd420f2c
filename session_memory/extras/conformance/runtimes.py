"""Checks every runtime: the places of its sessions, its events and answers, its install."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ...common.system.files import path_stamp
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.program import source_dir
from .fixture import Fixture


class TestSessions:
    def test_a_transcript_is_recognised_as_its_own_runtime_s(self, fixture: Fixture) -> None:
        candidates = [*others(fixture), fixture.runtime]
        for path in fixture.folder.glob("*.jsonl"):
            lines = fixture.lines(path.name)
            telling = (
                runtime
                for line in lines
                for runtime in candidates
                if runtime.records.recognises(line)
            )
            assert next(telling) is fixture.runtime

    def test_a_session_is_found_in_its_folder_and_in_its_project_as_soon_as_it_is_there(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        runtime = fixture.runtime
        before = [path_stamp(path) for path in runtime.listed_dirs(str(tmp_path))]
        path = fixture.laid_out(tmp_path)
        assert [path_stamp(path) for path in runtime.listed_dirs(str(tmp_path))] != before
        assert path.is_relative_to(runtime.transcripts_dir(str(tmp_path)))
        assert (
            len(path.relative_to(runtime.transcripts_dir(str(tmp_path))).parts) == runtime.DEEPEST
        )
        assert runtime.session_id_of(str(path)) == fixture.own["session_id"]
        assert [session.path for session in runtime.sessions_in(str(path.parent))] == [str(path)]
        for directory, scope, expected in (
            (fixture.own["cwd"], "project", [(str(path), False)]),
            (fixture.own["cwd"], "all", [(str(path), False)]),
            ("/elsewhere", "project", []),
            ("/elsewhere", "all", [(str(path), True)]),
        ):
            sessions = fixture.of_project(tmp_path, directory, scope)
            assert [(session.path, session.is_elsewhere) for session in sessions] == expected
        by_id = runtime.project_sessions(
            str(tmp_path), fixture.own["session_id"], "/elsewhere", "project"
        )
        assert [session.path for session in by_id] == (
            [str(path)] if runtime.HAS_PROJECT_FOLDERS else []
        )

    def test_the_folders_of_a_directory_and_of_those_below_it_are_found(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        runtime = fixture.runtime
        if runtime.HAS_PROJECT_FOLDERS:
            inside = [
                Path(runtime.project_dir(str(tmp_path), f"/srv/app{below}"))
                for below in ("", "/src", "/a/b")
            ]
            for folder in (
                *inside,
                Path(runtime.project_dir(str(tmp_path), "/srv/apple")),
                tmp_path / "other",
            ):
                folder.mkdir(parents=True)
        else:
            inside = [fixture.laid_out(tmp_path)]
        assert sorted(runtime.folders_below(str(tmp_path), "/srv/app")) == sorted(map(str, inside))
        assert runtime.folders_below(str(tmp_path / "gone"), "/srv/app") == []

    def test_the_sessions_in_further_folders_of_the_project_are_named_with_their_worktree(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        path, runtime = fixture.laid_out(tmp_path), fixture.runtime
        own_path = f"{runtime.project_dir(str(tmp_path), '/srv/other')}/own.jsonl"
        folders = [(str(path.parent if runtime.HAS_PROJECT_FOLDERS else path), "fix-login")]
        for sessions in (
            runtime.other_sessions("", str(tmp_path), own_path, "project", folders),
            runtime.other_sessions("", str(tmp_path), own_path, "all", folders),
            runtime.project_sessions(str(tmp_path), "", "/srv/other", "project", folders),
        ):
            assert [
                (session.path, session.worktree, session.is_elsewhere) for session in sessions
            ] == [(str(path), "fix-login", False)]

    def test_where_there_are_no_sessions_none_are_found(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        runtime = fixture.runtime
        assert runtime.sessions_in(str(tmp_path / "gone")) == []
        assert runtime.session_names(str(tmp_path / "gone")) == []
        assert runtime.other_sessions("", str(tmp_path), f"{tmp_path}/x/y.jsonl", "all") == []
        assert runtime.project_sessions(str(tmp_path), "an-id", "/srv", "all") == []
        assert runtime.live_session_id(str(tmp_path), 1) == ""

    def test_its_directory_is_the_usual_one_or_what_the_environment_names(
        self, fixture: Fixture
    ) -> None:
        runtime = fixture.runtime
        assert runtime.config_dir({"HOME": "/home/dev"}) == f"/home/dev/{runtime.USUAL_DIR}"
        moved = {"HOME": "/home/dev", fixture.own["config_variable"]: "/srv/runtime/"}
        assert runtime.config_dir(moved) == fixture.own.get("moved_dir", "/srv/runtime")


def skip_without_hooks(runtime: Runtime) -> None:
    """Skip a check of hooks for a runtime that starts none."""
    if not runtime.PROMPT_EVENT:
        assert not runtime.is_own({"session_id": "one", "transcript_path": "/x/one.jsonl"}, {})
        pytest.skip("it does not start hooks, so it gets no updates; other sessions get its news")


class TestHooks:
    @pytest.fixture(autouse=True)
    def _has_hooks(self, fixture: Fixture) -> None:
        skip_without_hooks(fixture.runtime)

    def test_an_event_tells_whose_session_it_is_and_where_its_transcript_lies(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        directory = tmp_path / Path(fixture.own.get("moved_dir", "/srv/runtime")).name
        path, runtime = fixture.laid_out(directory), fixture.runtime
        event = fixture.event(path)
        environ = fixture.environ(directory)
        config_dir = runtime.event_config_dir(event, environ)
        assert runtime.is_own(event, environ)
        assert not [runtime for runtime in others(fixture) if runtime.is_own(event, environ)]
        assert config_dir == str(directory)
        assert runtime.own_path(event, fixture.own["cwd"], config_dir) == str(path)
        assert runtime.start_dir(event, {}) in (fixture.own["cwd"], str(path.parent))
        assert runtime.project_start({**event, "cwd": "/srv/app"}, {}) == "/srv/app"
        bare = {**event, "transcript_path": None, "session_dir": None}  # it will lie there
        assert (
            Path(runtime.own_path(bare, fixture.own["cwd"], str(directory))).parent == path.parent
        )

    def test_of_no_kind_is_a_value_in_an_event_that_an_exception_comes_of(
        self, fixture: Fixture
    ) -> None:
        runtime = fixture.runtime
        values: tuple[Any, ...] = (None, 7, [], {}, True)
        for value in values:
            event = dict.fromkeys(fixture.own["event"], value)
            runtime.is_own(event, {"HOME": "/home/dev"})
            runtime.prompt_id(event)
            runtime.event_config_dir(event, {"HOME": "/home/dev"})
            runtime.own_path(event, "/srv", "/home/dev")
            assert runtime.own_name(event, "/srv/sessions", []) == ""

    def test_only_what_a_person_typed_is_answered(self, fixture: Fixture) -> None:
        runtime = fixture.runtime
        assert runtime.is_from_a_person(runtime.prompt(fixture.own["event"]))
        assert not any(runtime.is_from_a_person(prompt) for prompt in fixture.own["not_typed"])

    def test_a_tool_call_says_what_it_edits_or_runs_and_any_other_is_none(
        self, fixture: Fixture
    ) -> None:
        runtime, event = fixture.runtime, {**fixture.own["event"], "tool_use_id": "toolu_1"}
        for call, kind, argument in fixture.own["calls"]:
            [call_seen] = runtime.tool_calls({**event, **call})
            assert (call_seen.kind, call_seen.argument, call_seen.call_id) == (
                kind,
                argument,
                "toolu_1",
            )
            assert runtime.tool_calls({**event, **call, "tool_input": "odd"}) == ()
        assert (
            runtime.tool_calls({**event, "tool_name": "WebSearch", "tool_input": {"query": "git"}})
            == ()
        )
        assert runtime.tool_calls(event) == ()
        assert runtime.sub_agent(event) == ""

    def test_an_answer_is_json_that_carries_the_text(self, fixture: Fixture) -> None:
        runtime, text = fixture.runtime, 'line\n"quoted" \u2028 <b>'
        answer = json.loads(json.dumps(runtime.context_output(text)))
        assert text in str(answer) or repr(text)[1:-1] in str(answer)
        assert "told" in str(runtime.context_output("told", runtime.TOOL_EVENT))
        assert "told" in str(runtime.held_output("because", "told"))
        assert ("because" in str(runtime.held_output("because", ""))) == bool(
            runtime.held_output("because", "")
        )


class TestInstall:
    def test_its_directory_lies_in_the_folder_that_homes_have_too_and_what_a_user_types_names_the_session(
        self, fixture: Fixture
    ) -> None:
        install = fixture.runtime.install
        assert install.RENAME.format(name="deploys").endswith("deploys")
        assert install.RESUME.format(id="an-id").endswith("an-id")
        assert install.CLEAR.startswith("/")
        folder = fixture.own.get("home_folder") or fixture.runtime.USUAL_DIR.split("/")[0]
        assert folder == install.HOME_FOLDER
        assert fixture.runtime.TITLE

    def test_what_an_install_puts_there_runs_our_entries_with_the_interpreter_that_it_found(
        self, fixture: Fixture
    ) -> None:
        skip_without_hooks(fixture.runtime)
        install = fixture.runtime.install
        declared = Path(source_dir(), "hooks", "hooks.json").read_text()
        hooks = install.wanted_hooks(declared, "/env/python", "/app")
        settings = fixture.own.get("settings_dir", install.HOME_FOLDER)
        assert install.settings_dir({"HOME": "/home/anna"}).startswith(f"/home/anna/{settings}")
        assert bool(hooks) == bool(install.SETTINGS_FILE)
        files = install.wanted_files(declared, "/env/python", "/app").values()
        texts = [hook.command for hook in hooks] or [text for text in files if "/app/" in text]
        assert texts
        assert all("/env/python" in text and "/app/hooks/" in text for text in texts)
        assert (
            install.untrusted_hooks("/nowhere", [])
            == install.plugins_named("/nowhere", "session-memory")
            == []
        )


def others(fixture: Fixture) -> list[Runtime]:
    """Return the runtimes that the pack knows beside this one."""
    return [runtime for runtime in all_runtimes() if runtime is not fixture.runtime]
