"""A cloned repository that looks like an agent home gets none of the person's other sessions."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path

import pytest
from git_scene import repository
from hooks_scene import run, told
from own_process import plain_environment, run_here
from records import append, exchange, new_id, register, user, write
from transcripts_scene import BEGAN, write_transcript

from session_memory.app.install._kept_files import ForeignPlaceError, check_place
from session_memory.sessions.runtimes.claude import encode_cwd
from session_memory.sessions.settings.registry import register_host

SECRET = "my diagnosis is gout"
CONFIG = """scope: all
memory: {watchPath: ~/.claude/projects, minConversationMessages: 1}
memories: {strategies: [summary, graphiti], graphiti: {base_url: "http://127.0.0.1:9/", key_env: AWS_SECRET}}
team: {url: "postgresql://eve@127.0.0.1:9/x", share: team}
"""


class Cloner:
    """Somebody who has a private session elsewhere, and has cloned a repository that looks like an
    agent home."""

    def __init__(self, root: Path, memory_dir: str = ".session-memory") -> None:
        self.root = root
        self.clone = repository(root / "src" / "clone", README="x\n")
        self.private = self.session(root / "private", SECRET)
        self.session(self.clone, "why is the cart empty?")
        names = self.clone / memory_dir / "sessions"
        names.mkdir(parents=True)
        (names / "main.json").write_text(json.dumps({"sessionId": self.private.stem}))
        if memory_dir == ".session-memory":
            (self.clone / memory_dir / "config.yaml").write_text(CONFIG)
        self.own_id = new_id()

    def session(self, directory: Path, question: str) -> Path:
        path = self.root / ".claude" / "projects" / encode_cwd(str(directory)) / f"{new_id()}.jsonl"
        return write(
            path,
            *exchange(question, "Done.", cwd=str(directory), at=time.time() - 60),
            user("and?"),
        )

    def run(
        self,
        script: str,
        directory: Path | None = None,
        arguments: tuple[str, ...] = (),
        environ: dict[str, str] | None = None,
        **fields: str,
    ) -> bytes:
        start = directory or self.clone
        path = self.root / ".claude" / "projects" / encode_cwd(str(start)) / f"{self.own_id}.jsonl"
        event = {
            "session_id": self.own_id,
            "transcript_path": str(path),
            "cwd": str(start),
            "prompt": "hi",
            **fields,
        }
        environ = {"CLAUDE_PROJECT_DIR": str(start), "LANG": "C.UTF-8", **(environ or {})}
        return run(event, self.root, script, arguments=arguments, **environ)

    def start(self) -> str:
        """What the person sees as a session starts in the clone, once upkeep is over."""
        answer = self.run("session_start", hook_event_name="SessionStart", source="startup")
        upkeep = [place / ".session-memory/state/upkeep.json" for place in (self.root, self.clone)]
        deadline = time.monotonic() + 20
        while not any(
            path.exists() and json.loads(path.read_bytes())["runs"][-1]["ended"] for path in upkeep
        ):
            assert time.monotonic() < deadline, "upkeep did not end"
            time.sleep(0.02)
        return str(json.loads(answer).get("systemMessage", "")) if answer else ""

    def files(self) -> dict[str, bytes]:
        """What lies in the clone's work tree."""
        found = [
            path for path in self.clone.rglob("*") if path.is_file() and ".git" not in path.parts
        ]
        return {str(path.relative_to(self.clone)): path.read_bytes() for path in found}


@pytest.mark.parametrize("memory_dir", [".session-memory", ".mind", ".volute"])
def test_a_clone_is_no_home_and_stays_as_it_was_cloned(tmp_path: Path, memory_dir: str) -> None:
    cloner = Cloner(tmp_path, memory_dir)
    before = cloner.files()
    cloner.start()
    text = told(cloner.run("user_prompt_submit"))
    assert "why is the cart empty?" in text
    assert SECRET not in text
    assert cloner.files() == before


def test_a_session_in_it_is_told_once_how_it_would_become_a_home(tmp_path: Path) -> None:
    cloner = Cloner(tmp_path)
    notice = cloner.start()
    assert f"session-memory install --home {cloner.clone}" in notice
    assert cloner.run("session_start", hook_event_name="SessionStart", source="startup") == b""


def test_a_home_that_is_registered_reads_sends_and_spends_no_more_than_its_own(
    tmp_path: Path,
) -> None:
    cloner = Cloner(tmp_path)
    (cloner.clone / ".session-memory/sessions/main.json").unlink()
    (cloner.clone / ".claude").symlink_to(tmp_path / ".claude")
    register(cloner.clone, tmp_path)
    notice = cloner.start()
    assert "store.watch_path is only accepted in your own settings" in notice
    stored = sqlite3.connect(cloner.clone / ".session-memory/store/memory.db")
    texts = {text for (text,) in stored.execute("select text from entries")}
    assert "why is the cart empty?" in texts
    assert SECRET not in texts
    assert not any(SECRET.encode() in content for content in cloner.files().values())


def test_a_home_nested_in_a_registered_one_is_a_part_of_it(tmp_path: Path) -> None:
    cloner = Cloner(tmp_path)
    home = cloner.clone.parent
    (home / ".session-memory/sessions").mkdir(parents=True)
    register(home, tmp_path)
    cloner.run("user_prompt_submit")
    assert (home / ".session-memory/state/hook.log").exists()
    assert not (cloner.clone / ".session-memory/state").exists()


def test_what_a_home_keeps_beside_its_sessions_is_ignored_by_git(tmp_path: Path) -> None:
    cloner = Cloner(tmp_path)
    register(cloner.clone, tmp_path)
    cloner.start()
    assert (cloner.clone / ".session-memory/.gitignore").read_text() == "*\n"


def test_a_host_that_nobody_made_is_none(tmp_path: Path) -> None:
    cloner = Cloner(tmp_path)
    group = cloner.clone / "groups/main"
    group.mkdir(parents=True)
    (cloner.clone / ".session-memory").rename(group / ".session-memory")
    (cloner.clone / "store").mkdir()
    (cloner.clone / "store/messages.db").write_bytes(b"")
    cloner.session(group, "what is in the group?")
    before = cloner.files()
    text = told(cloner.run("user_prompt_submit", directory=group))
    cloner.run("session_end", directory=group, hook_event_name="SessionEnd", reason="exit")
    assert "what is in the group?" in text
    assert SECRET not in text
    assert cloner.files() == before


def test_doctor_names_a_directory_that_only_looks_like_a_home(tmp_path: Path) -> None:
    cloner = Cloner(tmp_path)
    done = run_here(["doctor", "--json"], plain_environment(tmp_path), cloner.clone)
    (line,) = [one for one in json.loads(done.stdout)["findings"] if one["about"] == "home"]
    assert line["state"] == "note"
    assert line["text"] == f"{cloner.clone} looks like an agent home but is not registered"
    assert line["mend"] == f"session-memory install --home {cloner.clone}"


def test_the_home_that_a_hook_s_command_names_counts_for_the_person_s_own_hook_too(
    tmp_path: Path,
) -> None:
    cloner = Cloner(tmp_path)
    environment = {**plain_environment(tmp_path), "CLAUDECODE": "1"}
    listed = ["sessions", "--json"]
    assert "main" not in run_here(listed, environment, cloner.clone).stdout
    cloner.run("user_prompt_submit", arguments=("--home", str(cloner.clone)))
    assert (cloner.clone / ".session-memory/state/hook.log").exists()
    assert not (tmp_path / ".session-memory/state/cursors").exists()
    cloner.run("user_prompt_submit")
    assert not (tmp_path / ".session-memory/state/cursors").exists()
    assert '"main"' in run_here(listed, environment, cloner.clone).stdout


@pytest.mark.parametrize("named", ["", "sub", "$CLAUDE_PROJECT_DIR", "/", "/nowhere"])
def test_a_command_that_names_no_home_names_nothing(tmp_path: Path, named: str) -> None:
    cloner = Cloner(tmp_path)
    before = cloner.files()
    cloner.run("user_prompt_submit", arguments=("--home", named))
    assert cloner.files() == before
    assert not (tmp_path / ".session-memory/state/named_homes.json").exists()


def test_a_thing_is_told_once_by_the_home_s_hook_and_the_person_s(tmp_path: Path) -> None:
    cloner = Cloner(tmp_path)
    sessions = cloner.clone / ".session-memory/sessions"
    other = cloner.session(cloner.clone, "water the garden")
    (sessions / "main.json").write_text(json.dumps({"sessionId": cloner.own_id}))
    (sessions / "discord.json").write_text(json.dumps({"sessionId": other.stem}))
    (cloner.clone / ".session-memory/config.yaml").unlink()
    first = cloner.run("user_prompt_submit", arguments=("--home", str(cloner.clone)))
    assert "water the garden" in told(first)
    assert cloner.run("user_prompt_submit") == b""


@pytest.mark.parametrize("start", ["", "sub/deeper"])
@pytest.mark.parametrize("env_file", [".env", ".env.local", ".gemini/.env"])
def test_a_project_s_env_file_moves_nothing(tmp_path: Path, env_file: str, start: str) -> None:
    cloner = Cloner(tmp_path)
    directory = cloner.clone / start
    directory.mkdir(parents=True, exist_ok=True)
    cloner.session(directory, "what is in here?")
    place = cloner.clone / "place"
    place.mkdir()
    (place / "config.yaml").write_text(f"scope: all\nhomes: [{cloner.clone}]\n")
    values = {"SESSION_MEMORY_DIR": str(place), "SESSION_MEMORY_HOME": str(cloner.clone)}
    path = cloner.clone / env_file
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"export {name}='{value}'\n" for name, value in values.items()))
    before = cloner.files()
    text = told(cloner.run("user_prompt_submit", directory=directory, environ=values))
    assert "what is in here?" in text
    assert SECRET not in text
    done = run_here(
        ["config", "scope", "--json"], {**plain_environment(tmp_path), **values}, directory
    )
    assert json.loads(done.stdout)["value"] == "project"
    assert cloner.files() == before


def test_a_place_that_the_person_s_own_environment_names_counts_wherever_it_lies(
    tmp_path: Path,
) -> None:
    cloner = Cloner(tmp_path)
    place = cloner.clone / "place"
    place.mkdir()
    (place / "config.yaml").write_text("scope: all\n")
    (cloner.clone / ".env").write_text("PORT=8000\n")
    (tmp_path / ".env").write_text(f"SESSION_MEMORY_DIR={place}\n")
    text = told(cloner.run("user_prompt_submit", environ={"SESSION_MEMORY_DIR": str(place)}))
    assert SECRET in text


@pytest.mark.parametrize("config_dir", ["", "claude", "/nowhere/claude"])
def test_a_current_directory_that_is_gone_ends_no_hook_in_a_traceback(
    tmp_path: Path, config_dir: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()

    def leave() -> None:
        os.chdir(gone)
        gone.rmdir()

    event = {
        "session_id": new_id(),
        "transcript_path": "",
        "cwd": str(gone),
        "prompt": "hi",
        "hook_event_name": "x",
    }
    for script in (
        "session_start",
        "user_prompt_submit",
        "pre_tool_use",
        "pre_compact",
        "session_end",
    ):
        environ = (
            {"CLAUDE_CONFIG_DIR": config_dir, "SESSION_MEMORY_DIR": "place"} if config_dir else {}
        )
        assert run(event, tmp_path, script, leave, **environ) == b""
        gone.mkdir()


def test_a_place_with_something_else_in_it_is_none_to_install_into(tmp_path: Path) -> None:
    check_place(str(tmp_path))
    (tmp_path / "shopping.md").write_text("milk\n")
    with pytest.raises(ForeignPlaceError, match=r"shopping\.md, which session-memory did not make"):
        check_place(str(tmp_path))
    (tmp_path / "config.yaml").write_text("scope: all\n")
    check_place(str(tmp_path))


def test_in_the_directory_of_a_group_the_rules_of_its_host_count(layout, tmp_path):
    group = layout.group("garden")
    Path(layout.database).touch()
    register_host(layout.root, {"HOME": str(tmp_path)})
    own = write_transcript(group, new_id())
    for name, id in (("main", own.stem), ("diary", write_transcript(group, new_id(), SECRET).stem)):
        Path(group.memory_home.sessions_dir, f"{name}.json").write_text(
            json.dumps({"sessionId": id})
        )
    for path in own.parent.iterdir():
        path.write_text(
            path.read_text().replace(BEGAN, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        )
    config = Path(layout.config_file)
    config.parent.mkdir(parents=True)

    def prompt():
        fields = {"hook_event_name": "UserPromptSubmit", "prompt": "hi", "cwd": group.root}
        event = {"session_id": own.stem, "transcript_path": str(own), **fields}
        environ = {"CLAUDE_PROJECT_DIR": group.root, "CLAUDE_CONFIG_DIR": group.config_dir}
        return run(event, tmp_path, **environ).decode()

    config.write_text("sessions: {diary: {ignore: true}}\n")
    Path(group.root, ".session-memory", "config.yaml").write_text(
        "sessions: {diary: {ignore: false}}\n"
    )
    assert SECRET not in prompt()
    append(own.parent / f"{group_session(group, 'diary')}.jsonl", *exchange(SECRET, "Noted."))
    assert SECRET not in prompt()
    config.write_text("")
    append(own.parent / f"{group_session(group, 'diary')}.jsonl", *exchange(SECRET, "Noted."))
    assert SECRET in prompt()


def group_session(group, name):
    return json.loads(Path(group.memory_home.sessions_dir, f"{name}.json").read_text())["sessionId"]
