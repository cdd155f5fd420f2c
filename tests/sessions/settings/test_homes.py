"""Where a person's, a runtime's and an agent's settings lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from records import register

from session_memory.awareness.events.log import _untold, _untold_home, notices
from session_memory.history.store.location import NoStoreError, find_location
from session_memory.sessions.settings.homes import Home, home_at, person_home, runtime_home
from session_memory.sessions.settings.registry import agent_home


def place_of(home: Home) -> str:
    return home.memory_dir


class TestPerson:
    @pytest.mark.parametrize("usual", [".claude", ".pi/agent"])
    def test_all_runtimes_share_one_place(self, tmp_path: Path, usual: str) -> None:
        environ = {"HOME": str(tmp_path)}
        home = runtime_home(f"{tmp_path}/{usual}", usual, environ)
        assert place_of(home) == place_of(person_home(environ)) == f"{tmp_path}/.session-memory"
        assert home.config_file == f"{tmp_path}/.session-memory/config.yaml"
        assert home.conversations_dir == f"{tmp_path}/.session-memory/conversations"
        assert home.memories_dir == f"{tmp_path}/.session-memory/memories"
        assert home.rules_files == ()

    def test_a_variable_moves_it(self, tmp_path: Path) -> None:
        environ = {"HOME": str(tmp_path), "SESSION_MEMORY_DIR": f"{tmp_path}/elsewhere/"}
        assert (
            place_of(runtime_home(f"{tmp_path}/.claude", ".claude", environ))
            == f"{tmp_path}/elsewhere"
        )
        assert (
            place_of(person_home({**environ, "SESSION_MEMORY_DIR": "~/here"})) == f"{tmp_path}/here"
        )

    def test_a_directory_that_is_not_the_usual_one_has_a_place_of_its_own_below(
        self, tmp_path: Path
    ) -> None:
        environ = {"HOME": str(tmp_path)}
        work, play = (
            runtime_home(f"{tmp_path}/{name}/.claude", ".claude", environ)
            for name in ("work", "play")
        )
        assert work.memory_dir.startswith(f"{tmp_path}/.session-memory/homes/claude-")
        assert work.memory_dir != play.memory_dir
        assert work.conversations_dir == f"{work.memory_dir}/conversations"
        assert work.rules_files == (f"{tmp_path}/.session-memory/config.yaml",)
        assert (
            runtime_home(f"{tmp_path}/work/.claude/", ".claude", environ).memory_dir
            == work.memory_dir
        )

    def test_a_link_to_the_usual_directory_is_the_usual_one(self, tmp_path: Path) -> None:
        (tmp_path / ".claude").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / ".claude")
        environ = {"HOME": str(tmp_path)}
        assert (
            place_of(runtime_home(f"{tmp_path}/link", ".claude", environ))
            == f"{tmp_path}/.session-memory"
        )


class TestAgent:
    def test_its_place_is_in_its_home_and_the_rules_of_the_person_count(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "agent/.mind/sessions").mkdir(parents=True)
        environ = {"HOME": "/home/ada", "SESSION_MEMORY_HOME": f"{tmp_path}/agent"}
        home = agent_home(f"{tmp_path}/agent/src", environ)
        assert home is not None
        assert (home.root, home.sessions_dir) == (
            f"{tmp_path}/agent",
            f"{tmp_path}/agent/.mind/sessions",
        )
        assert home.memory_dir == f"{tmp_path}/agent/.session-memory"
        assert home.conversations_dir == f"{tmp_path}/agent/conversations"
        assert home.rules_files == ("/home/ada/.session-memory/config.yaml",)

    def test_in_a_group_those_of_the_host_count_too(self) -> None:
        group = home_at("/srv/host/groups/web", {"HOME": "/home/ada"}, host="/srv/host")
        assert "/srv/host/.session-memory/config.yaml" in group.rules_files

    def test_a_folder_that_has_skills_or_extensions_alone_is_none(self, tmp_path: Path) -> None:
        environ = {"HOME": str(tmp_path)}
        register(tmp_path / "agent", tmp_path)
        ledger = tmp_path / ".local/share/session-memory/installed.json"
        for name, settings_file in (
            (".agents", ""),
            (".pi/agent", ""),
            (".claude", f"{tmp_path}/.claude/settings.json"),
        ):
            (tmp_path / name / ".session-memory/sessions").mkdir(parents=True)
            content = json.loads(ledger.read_text())
            content["homes"][f"{tmp_path}/{name}"] = {"settings_file": settings_file}
            ledger.write_text(json.dumps(content))
            assert agent_home(f"{tmp_path}/{name}/src", environ) is None


class TestStores:
    def test_the_store_of_another_directory_holds_its_sessions_alone(self, tmp_path: Path) -> None:
        for name in (".claude", "work/.claude"):
            (tmp_path / name / "projects").mkdir(parents=True)
        environ = {"HOME": str(tmp_path)}
        person = find_location(str(tmp_path), environ)
        work = find_location(str(tmp_path / "work/.claude"), environ)
        assert person.database == f"{tmp_path}/.session-memory/store/memory.db"
        assert [one.root for one in work.watched] == [f"{tmp_path}/work/.claude/projects"]
        assert f"{tmp_path}/work/.claude/projects" not in [one.root for one in person.watched]
        chosen = find_location(
            None, {**environ, "CLAUDE_CONFIG_DIR": str(tmp_path / "work/.claude")}
        )
        assert chosen.database == work.database
        asked_in_pi = {"CLAUDE_CONFIG_DIR": str(tmp_path / "work/.claude"), "PI_SESSION_ID": "x"}
        assert find_location(str(tmp_path / ".claude"), environ).database == person.database
        assert (
            find_location(str(tmp_path / ".session-memory"), {**environ, **asked_in_pi}).database
            == person.database
        )

    def test_any_other_directory_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x").mkdir()
        with pytest.raises(NoStoreError):
            find_location(str(tmp_path / "x"), {"HOME": str(tmp_path)})


class TestNotices:
    @pytest.fixture
    def home(self, tmp_path: Path) -> Home:
        (tmp_path / ".session-memory").mkdir()
        return runtime_home(f"{tmp_path}/.claude", ".claude", {"HOME": str(tmp_path)})

    def test_a_fault_is_told_once_until_it_is_another(self, home: Home) -> None:
        config = Path(home.config_file)
        config.write_text("scope: galaxy\n")
        assert _untold(home).startswith(f"session-memory: {config}:1: scope is 'galaxy'")
        assert _untold(home) == ""
        assert len(notices(home)) == 1
        config.write_text("scope: all\nmax_characters: 7\n")
        assert "max_characters is 7" in _untold(home)
        config.write_text("scope: all\n")
        assert (_untold(home), notices(home)) == ("", [])

    def test_all_kinds_are_noted_in_one_file_and_each_is_told_once(self, home: Home) -> None:
        agent = Path(home.user_dir, "agent")
        (agent / ".session-memory" / "sessions").mkdir(parents=True)
        (agent / ".session-memory" / "sessions" / "main.json").write_text('{"sessionId": "a"}')
        Path(home.config_file).write_text("scope: galaxy\n")
        environ = {"HOME": home.user_dir}
        for is_new in (True, False):
            assert bool(_untold(home)) == is_new
            assert bool(_untold_home(home, str(agent), environ, "sessions")) == is_new
        assert {path.name for path in Path(home.state_dir).iterdir()} >= {"notices.json"}
        assert not [*Path(home.state_dir).glob("told-*")]

    def test_several_are_told_on_one_line(self, home: Home) -> None:
        Path(home.config_file).write_text("scope: galaxy\nmax_characters: 7\nnonsense: 1\n")
        line = _untold(home)
        assert "\n" not in line
        assert "and 2 more: see `session-memory config`" in line

    def test_rules_left_where_they_are_not_read_are_named_at_each_start(self, home: Home) -> None:
        old = Path(home.root, ".session-memory", "config.yaml")
        old.parent.mkdir(parents=True)
        old.write_text("scope: all\n# sessions:\n")
        assert _untold(home) == ""
        old.write_text("sessions: {email: {ignore: true}}\n")
        for _ in range(2):
            assert f"{old} is no longer read" in _untold(home)
        old.unlink()
        assert _untold(home) == ""
