"""A project is a repository with all its worktrees and subdirectories, whatever its folders."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from git_scene import git, repository
from hooks_scene import run, told
from records import (
    append,
    codex_exchange,
    codex_line,
    exchange,
    new_id,
    tool_result,
    write,
)

from session_memory.common.system.deadline import DeadlineError
from session_memory.common.system.files import os as plain_os
from session_memory.common.system.json import sealed, unsealed
from session_memory.sessions.runtimes.claude import encode_cwd
from session_memory.sessions.runtimes.pi import RUNTIME as PI
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts import project_folders, sessions
from session_memory.sessions.transcripts.reader import HEAD_BYTES, TranscriptReader
from session_memory.sessions.transcripts.sessions import find_sessions


class Person:
    """Somebody with a repository, and sessions of Claude Code in directories of theirs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.app = repository(root / "src" / "app", src__app="1\n")
        self.projects = root / ".claude" / "projects"
        self.session_id = new_id()
        git(self.app, "worktree", "add", "-q", "../app-login", "-b", "fix/login")

    def session(self, directory: Path, question: str, *, at: float | None = None) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        path = self.projects / encode_cwd(str(directory)) / f"{new_id()}.jsonl"
        return write(path, *exchange(question, "Done.", cwd=str(directory), at=at))

    def prompt(self, directory: Path) -> str:
        event = {
            "session_id": self.session_id,
            "transcript_path": str(
                self.projects / encode_cwd(str(directory)) / f"{self.session_id}.jsonl"
            ),
            "cwd": str(directory / "src"),
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hi",
        }
        output = run(event, self.root, CLAUDE_PROJECT_DIR=str(directory))
        return told(output) if output else ""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


class TestOnAPrompt:
    def test_sessions_in_other_worktrees_and_subdirectories_are_of_the_project(self, person):
        person.session(person.app / "src", "in a subdirectory")
        person.session(person.app.parent / "app-login" / "src", "in a worktree")
        text = person.prompt(person.app)
        assert '"in a subdirectory"' in text
        assert '"in a worktree"' in text

    def test_a_session_in_another_worktree_is_named_with_it(self, person):
        person.session(person.app.parent / "app-login", "from elsewhere")
        person.session(person.app / "src", "from here")
        lines = person.prompt(person.app).splitlines()
        assert [", in worktree app-login (" in line for line in lines if "from" in line].count(
            True
        ) == 1
        assert any(
            ", in worktree app-login (" in line and "from elsewhere" in line for line in lines
        )

    def test_in_the_worktree_the_sessions_of_the_main_one_are_named_with_that(self, person):
        person.session(person.app, "from the main one")
        assert ", in worktree app (" in person.prompt(person.app.parent / "app-login")

    def test_a_repository_whose_path_begins_alike_is_another_project(self, person):
        other = repository(person.root / "src" / "app-old")
        person.session(other, "in another repository")
        person.session(person.root / "src" / "app.x", "beside it")
        assert person.prompt(person.app) == ""

    def test_a_submodule_is_another_project(self, person):
        part = repository(person.root / "part")
        git(person.app, "submodule", "--quiet", "add", str(part), "vendor/part")
        person.session(person.app / "vendor" / "part", "in the submodule")
        assert person.prompt(person.app) == ""

    def test_without_a_repository_the_directory_alone_is_the_project(self, person):
        plain = person.root / "notes"
        person.session(plain / "sub", "below")
        person.session(plain, "right here")
        assert '"right here"' in (text := person.prompt(plain))
        assert "below" not in text

    def test_a_repository_at_the_persons_home_makes_no_project_of_what_lies_in_it(self, person):
        git(person.root, "init", "-q", "-b", "main")
        person.session(person.root / "other", "elsewhere at home")
        assert person.prompt(person.root / "notes") == ""

    def test_a_worktree_that_comes_later_is_of_it_too(self, person):
        person.session(person.app, "at first")
        person.prompt(person.app)
        git(person.app, "worktree", "add", "-q", "../third")
        person.session(person.root / "src" / "third", "in the third")
        person.session_id = new_id()
        assert '"in the third"' in person.prompt(person.app)

    def test_a_session_that_has_not_said_where_it_is_is_found_as_soon_as_it_does(self, person):
        path = person.session(person.app / "src", "later")
        content = path.read_bytes()
        path.write_bytes(b'{"type":"queue-operation"}\n')
        settle(person)
        assert person.prompt(person.app) == ""
        path.write_bytes(content)
        assert '"later"' in person.prompt(person.app)

    def test_a_worktree_that_was_removed_is_remembered(self, person):
        path = person.session(person.app.parent / "app-login", "before")
        assert "before" in person.prompt(person.app)
        git(person.app, "worktree", "remove", "--force", "../app-login")
        person.session_id = new_id()
        with path.open("ab") as file:
            file.write(
                path.read_bytes().replace(b"before", b"after").replace(b'"uuid":"', b'"uuid":"x')
            )
        assert "after" in person.prompt(person.app)

    def test_where_nothing_changed_no_transcript_is_opened_for_it(self, person):
        person.session(person.app.parent / "app-login", "once")
        settle(person)
        person.prompt(person.app)
        index = next((person.root / ".session-memory" / "state" / "projects").iterdir())
        kept = unsealed(index.read_bytes())
        assert [os.path.basename(folder) for folder, _ in kept["folders"]["claude-code"]] == [
            encode_cwd(str(person.app.parent / "app-login"))
        ]
        index.write_bytes(sealed({**kept, "folders": {}}))
        assert "app-login" not in person.prompt(person.app)  # what is kept is believed
        person.session(person.app / "src", "something new")
        assert "something new" in person.prompt(person.app)  # until a directory changes

    def test_a_kept_index_that_cannot_be_read_is_made_anew(self, person):
        person.session(person.app / "src", "hello")
        person.prompt(person.app)
        index = next((person.root / ".session-memory" / "state" / "projects").iterdir())
        index.write_text("{")
        person.session(person.app / "src", "again")
        assert '"again"' in person.prompt(person.app)

    def test_long_paths_are_told_apart_though_their_names_are_shortened(self, person):
        deep = person.app / ("a" * 120) / ("b" * 120)
        person.session(deep / "one", "deep down")
        other = person.root / "src" / "app-x" / ("a" * 120) / ("b" * 120)
        person.session(other, "deep elsewhere")
        text = person.prompt(person.app)
        assert "deep down" in text
        assert "deep elsewhere" not in text


class TestForReaders:
    def test_a_script_finds_the_sessions_of_all_worktrees(self, person):
        person.session(person.app, "in the main one")
        person.session(person.app.parent / "app-login" / "src", "in a worktree")
        person.session(person.root / "notes", "elsewhere")
        environ = {"HOME": str(person.root), "SESSION_MEMORY_HOME": str(person.app / "src")}
        found = find_sessions(None, False, environ)
        assert sorted(one.name for one in found) == ["in a worktree", "in the main one"]

    def test_of_thousands_of_sessions_only_the_latest_that_may_be_shown_are_read(
        self, person, monkeypatch
    ):
        paths = [person.session(person.app, f"number {number}") for number in range(12)]
        for number, path in enumerate(paths):
            os.utime(path, (time.time() - number * 60,) * 2)
        (person.root / ".session-memory").mkdir(exist_ok=True)
        (person.root / ".session-memory" / "config.yaml").write_text(
            f"sessions: {{{paths[1].stem}: {{ignore: true}}}}\n"
        )
        read, describe = [], sessions.describe

        def noted(runtime, path, rules):
            read.append(path)
            return describe(runtime, path, rules)

        monkeypatch.setattr(sessions, "describe", noted)
        environ = {"HOME": str(person.root), "SESSION_MEMORY_HOME": str(person.app)}
        found = find_sessions(None, False, environ, most=3)
        assert [one.name for one in found] == ["number 0", "number 2", "number 3"]
        assert len(read) == 6
        everything = find_sessions(None, False, environ)
        assert [one.name for one in everything[:3]] == [one.name for one in found]
        assert len(everything) == 11

    def test_in_a_copied_home_the_latest_messages_come_first(self, person):
        """All files have the time of the copy."""
        now = time.time()
        paths = [
            person.session(person.app, f"{days} days", at=now - days * 86_400) for days in range(9)
        ]
        for number, path in enumerate(paths):
            os.utime(path, (now - 9 + number,) * 2)
        environ = {"HOME": str(person.root), "SESSION_MEMORY_HOME": str(person.app)}
        for most in (2, None):
            found = find_sessions(None, False, environ, most=most)
            assert [one.name for one in found] == [f"{days} days" for days in range(most or 9)]
            assert [round((now - one.last_at) / 86_400) for one in found] == [*range(most or 9)]

    def test_a_session_without_times_has_the_time_of_its_file(self, person):
        path = person.session(person.app, "no times")
        path.write_text(path.read_text().replace('"timestamp"', '"at"'))
        os.utime(path, (1_000_000_000, 1_000_000_000))
        environ = {"HOME": str(person.root), "SESSION_MEMORY_HOME": str(person.app)}
        [found] = find_sessions(None, False, environ)
        assert found.last_at == 1_000_000_000

    def test_long_results_at_the_end_do_not_hide_the_time_of_the_last_message(self, person):
        asked_at = round(time.time() - 86_400)
        path = person.session(person.app, "long", at=asked_at)
        append(path, *[tool_result("x" * (HEAD_BYTES - 1000), at=asked_at)] * 2)
        environ = {"HOME": str(person.root), "SESSION_MEMORY_HOME": str(person.app)}
        [found] = find_sessions(None, False, environ)
        assert found.last_at == asked_at

    def test_a_message_from_the_future_makes_no_session_the_latest(self, person):
        """A clock was wrong."""
        now = round(time.time())
        ahead = person.session(person.app, "my clock is wrong", at=now + 9 * 86_400)
        os.utime(ahead, (now - 86_400,) * 2)
        person.session(person.app, "my clock is right")
        environ = {"HOME": str(person.root), "SESSION_MEMORY_HOME": str(person.app)}
        found = find_sessions(None, False, environ)
        assert [one.name for one in found] == ["my clock is right", "my clock is wrong"]
        assert found[1].last_at == now - 86_400

    def test_the_beginning_of_a_long_turn_is_only_searched_for_if_there_are_rules(
        self, person, monkeypatch
    ):
        searched = []
        begin_at = TranscriptReader.begin_at

        def noted(reader, descriptor, offset):
            searched.append(offset)
            begin_at(reader, descriptor, offset)

        monkeypatch.setattr(TranscriptReader, "begin_at", noted)
        id, app = "01a1fb3f-0000-7000-8000-000000000001", str(person.app)
        path = person.root / ".codex" / "sessions" / "2026" / "11" / "30" / f"rollout-{id}.jsonl"
        start = codex_line("session_meta", {"id": id, "cwd": app, "thread_source": "user"})
        turn = codex_exchange("go", "I go on. " * 200, cwd=app)
        write(path, start, *turn, *turn[3:] * 50)
        environ = {"HOME": str(person.root), "SESSION_MEMORY_HOME": str(person.app)}
        assert find_sessions(None, False, environ)
        assert not searched
        config = person.root / ".session-memory" / "config.yaml"
        config.parent.mkdir()
        config.write_text("projects: {/srv/private: {ignore: true}}\n")
        assert find_sessions(None, False, environ)
        assert searched


def test_folders_of_pi_are_found_below_a_directory(tmp_path):
    for name in ("--srv-app--", "--srv-app-src--", "--srv-apple--"):
        (tmp_path / "sessions" / name).mkdir(parents=True)
    found = PI.folders_below(str(tmp_path), "/srv/app")
    assert sorted(os.path.basename(folder) for folder in found) == [
        "--srv-app--",
        "--srv-app-src--",
    ]


def settle(person: Person) -> None:
    """Makes what is there older than what is looked at twice."""
    then = time.time() - 60
    for directory, _, files in os.walk(person.root, topdown=False):
        for name in files:
            os.utime(f"{directory}/{name}", (then, then), follow_symlinks=False)
        os.utime(directory, (then, then))


def test_a_search_that_deadlines_cut_short_goes_on_where_it_was(person, monkeypatch):
    for number in range(8):
        person.session(person.app / f"part-{number}", "hi")
    asked = []

    def directory_of(runtime, path):
        asked.append(path)
        if len(asked) % 4 == 0:
            raise DeadlineError
        return read(runtime, path)

    read = project_folders._directory_of
    monkeypatch.setattr(project_folders, "_directory_of", directory_of)
    index, places = (
        str(person.root / "index.json"),
        [(runtime("agent-sdk"), str(person.root / ".claude"))],
    )
    for _ in range(2):
        with pytest.raises(DeadlineError):
            project_folders.keep_project(places, str(person.app), str(person.root), index)
    folders, _ = project_folders.keep_project(places, str(person.app), str(person.root), index)
    assert len(folders["claude-code"]) == 8
    assert len(asked) == 10


def test_a_token_in_the_name_of_a_directory_is_in_no_index_of_projects(person):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    project = repository(person.root / "src" / f"app-{token}", src__app="1\n")
    person.session(project, "in a project with such a name")
    assert "in a project with such a name" in person.prompt(project)
    person.prompt(person.app)
    indexes = list((person.root / ".session-memory" / "state" / "projects").iterdir())
    assert indexes
    assert [
        path for path in indexes if token in path.name or token.encode() in path.read_bytes()
    ] == []


@pytest.mark.parametrize("worktrees", [2, 60])
def test_the_folders_of_a_runtime_are_listed_once_however_many_worktrees_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worktrees: int
) -> None:
    """400 worktrees and 3,000 folders took up to 3.6 s of a prompt (issue 28, C8)."""
    root = repository(tmp_path / "app")
    for number in range(worktrees):
        directory, git_dir = tmp_path / f"wt-{number}", root / ".git/worktrees" / f"wt-{number}"
        (directory / "src").mkdir(parents=True)
        git_dir.mkdir(parents=True)
        (directory / ".git").write_text(f"gitdir: {git_dir}\n")
        for name, text in (
            ("gitdir", f"{directory}/.git"),
            ("HEAD", "ref: refs/heads/x"),
            ("commondir", "../.."),
        ):
            (git_dir / name).write_text(text)
        folder = tmp_path / ".claude/projects" / encode_cwd(f"{directory}/src")
        write(folder / f"{new_id()}.jsonl", *exchange("Look.", "Done.", cwd=f"{directory}/src"))
    listed: list[str] = []
    listing = os.listdir
    monkeypatch.setattr(plain_os, "listdir", lambda path: listed.append(str(path)) or listing(path))
    places = [(runtime("agent-sdk"), str(tmp_path / ".claude"))]
    found = project_folders.project_folders(places, str(root), str(tmp_path))["claude-code"]
    assert len(found) == worktrees
    assert listed.count(f"{tmp_path}/.claude/projects") == 1
