"""`session-memory config`: values in force with their sources, and setting a key."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from own_process import plain_environment, run_here

from session_memory.common.errors import ConfigError
from session_memory.sessions.settings.keys import sample, set_key
from session_memory.sessions.settings.rules_check import SECTIONS
from session_memory.sessions.settings.section_table import KEYS


class Person:
    """`config` is the file of a person whose HOME is `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.config = home / ".session-memory" / "config.yaml"
        self.config.parent.mkdir()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_here(["config", *words], plain_environment(self.home), self.home)

    def shown(self, *words: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.run(*words, "--json").stdout)
        return result


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


class TestShowing:
    def test_every_value_is_shown_with_the_file_that_it_comes_from(self, person: Person) -> None:
        person.config.write_text("# mine\nscope: all\nsessions: {email: {text: false}}\n")
        done = person.run()
        assert (done.returncode, done.stderr) == (0, "")
        said = " ".join(done.stdout.split())
        assert " scope all Which sessions " in said
        assert " or all. (set in ~/.session-memory/config.yaml:2) first_sight_hours 24 " in said
        assert " sessions.email: {quote: false} (~/.session-memory/config.yaml)" in said
        assert "\x1b" not in done.stdout
        values = person.shown()
        assert values["values"]["scope"] == {"value": "all", "source": f"{person.config}:2"}
        assert values["values"]["max_characters"] == {"value": 500, "source": None}

    def test_an_agent_s_has_the_rules_of_the_person_too(self, person: Person) -> None:
        person.config.write_text("scope: all\nsessions: {email: {text: false}}\n")
        (person.home / "agent/.session-memory/sessions").mkdir(parents=True)
        shown = person.shown("--home", "agent")
        assert shown["values"]["scope"] == {"value": "project", "source": None}
        assert shown["rules"] == [
            {
                "section": "sessions",
                "pattern": "email",
                "rule": {"quote": False},
                "source": str(person.config),
            }
        ]

    def test_what_is_not_understood_is_said_and_fails(self, person: Person) -> None:
        person.config.write_text("scope: galaxy\n")
        done = person.run()
        assert done.returncode == 1
        assert "scope is 'galaxy', not project or all; using project instead" in done.stdout
        assert len(person.shown()["notices"]) == 1

    def test_one_is_shown_by_its_name_with_or_without_its_section(self, person: Person) -> None:
        assert person.run("memory.pollIntervalMs").stdout == "30000  (default)\n"
        assert person.run("poll_interval_ms").stdout == "30000  (default)\n"
        done = person.run("timeout_seconds")
        assert "memories.summary.timeout_seconds" in done.stderr
        assert "did you mean scope?" in person.run("scoop").stderr


class TestSetting:
    def test_a_key_under_its_former_name_in_the_file_is_changed_there(self, person):
        person.config.write_text(
            "memory:\n  pollIntervalMs: 100  # mine\nsessions:\n  a:\n    text: false\n"
        )
        person.run("store.poll_interval_ms", "500")
        person.run("memory.minConversationMessages", "3")
        person.run("sessions.a.text", "true")
        assert person.config.read_text() == (
            "memory:\n  pollIntervalMs: 500  # mine\n  min_conversation_messages: 3\nsessions:\n "
            " a:\n    text: true\n"
        )
        assert person.run("memory.pollIntervalMs").stdout.startswith("500  (")

    def test_a_key_is_set_in_a_file_of_its_own(self, person: Person) -> None:
        assert person.run("scope", "all").returncode == 0
        assert person.config.read_text() == "scope: all\n"
        assert person.config.stat().st_mode & 0o777 == 0o600

    def test_comments_and_other_lines_stay(self, person: Person) -> None:
        person.config.write_text("# mine\nscope: project  # for now\n\nmax_characters: 300\n")
        person.config.chmod(0o640)
        person.run("scope", "all")
        assert person.config.read_text() == "# mine\nscope: all  # for now\n\nmax_characters: 300\n"
        assert person.config.stat().st_mode & 0o777 == 0o640

    def test_in_the_sample_a_key_goes_below_its_comment(self, person: Person) -> None:
        person.config.write_text(sample())
        for key, value in (
            ("scope", "all"),
            ("store.poll_interval_ms", "500"),
            ("memories.summary.model", "opus"),
        ):
            assert person.run(key, value).returncode == 0
        text = person.config.read_text()
        assert "# scope: project\nscope: all\n" in text
        assert yaml.safe_load(text) == {
            "scope": "all",
            "store": {"poll_interval_ms": 500},
            "memories": {"summary": {"model": "opus"}},
        }
        kept = [line for line in text.splitlines() if line.startswith("#") or not line]
        assert "\n".join(kept) + "\n" == sample()

    def test_a_section_that_is_there_is_gone_on_with_as_it_is_indented(
        self, person: Person
    ) -> None:
        person.config.write_text("memories:\n    attempts: 3\n    # later\n\nscope: all\n")
        person.run("memories.filtering.keep_user_messages", "false")
        assert person.config.read_text() == (
            "memories:\n    attempts: 3\n    # later\n    filtering:\n      keep_user_messages: "
            "false\n\nscope: all\n"
        )

    def test_rules_are_set_by_the_name_of_a_session(self, person: Person) -> None:
        person.run("sessions.public-*.quote", "false")
        person.run("sessions.public-*.untrusted", "true")
        person.run("sessions.a.b.ignore", "true")
        assert yaml.safe_load(person.config.read_text())["sessions"] == {
            "public-*": {"quote": False, "isolate_memories": True},
            "a.b": {"ignore": True},
        }

    def test_and_by_the_path_of_a_directory(self, person: Person) -> None:
        assert person.run("projects.~/private.ignore", "true").returncode == 0
        assert yaml.safe_load(person.config.read_text())["projects"] == {
            "~/private": {"ignore": True}
        }
        shown = person.run("projects").stdout
        assert shown.startswith(
            f"{person.home}/private: {{ignore: true}}  (~/.session-memory/config.yaml)"
        )

    @pytest.mark.parametrize(
        "words",
        [
            ("scope", "galaxy"),
            ("scoop", "all"),
            ("max_characters", "7"),
            ("sessions.email.text", "maybe"),
            ("sessions.email", "true"),
            ("sessions", "{}"),
            ("projects.private.ignore", "true"),
            ("memories.graphiti.key_env", "sk-my key"),
        ],
    )
    def test_what_is_wrong_is_refused_and_changes_nothing(
        self, person: Person, words: tuple[str, str]
    ) -> None:
        person.config.write_text("max_characters: 300\n")
        done = person.run(*words)
        assert done.returncode == 2
        assert done.stderr.startswith("session-memory: ")
        assert person.config.read_text() == "max_characters: 300\n"

    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ("memory: {pollIntervalMs: 5000}\n", "memory.conversationGapMinutes"),
            ("memory:\n  watchPath:\n    - /a\n    - /b\n", "memory.watchPath"),
            ("{scope: all}\n", "max_characters"),
        ],
    )
    def test_where_other_lines_would_change_it_is_left_to_people(
        self, tmp_path: Path, text: str, key: str
    ) -> None:
        path = tmp_path / "config.yaml"
        path.write_text(text)
        with pytest.raises(ConfigError):
            set_key(str(path), tuple(key.split(".")), 200)
        assert path.read_text() == text
        assert [one.name for one in tmp_path.iterdir()] == ["config.yaml"]

    def test_a_file_that_cannot_be_read_is_not_changed(self, person: Person) -> None:
        person.config.write_text("a: b: c\n")
        assert person.run("scope", "all").returncode == 1
        assert person.config.read_text() == "a: b: c\n"


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        ("scope", "# mine\nscope: all  # why\nupkeep: off\n", "# mine\nupkeep: off\n"),
        (
            "memories.summary.model",
            "memories:\n  summary:\n    model: opus\n  attempts: 3\n",
            "memories:\n  attempts: 3\n",
        ),
        ("memories.summary.model", "memories:\n  summary:\n    model: opus\n", ""),
        (
            "sessions.mail.ignore",
            "sessions:\n  mail:\n    ignore: true\n    quote: false\n",
            "sessions:\n  mail:\n    quote: false\n",
        ),
        ("scope", "upkeep: off\n", "upkeep: off\n"),
    ],
)
def test_a_key_is_unset_and_nothing_else_is_changed(
    person: Person, key: str, before: str, after: str
) -> None:
    person.config.write_text(before)
    done = person.run(key, "--unset")
    assert (done.returncode, done.stderr) == (0, "")
    assert ("removed from" in done.stdout) is (before != after)
    assert person.config.read_text() == after


@pytest.mark.parametrize(
    "words",
    [["--unset"], ["scope", "all", "--unset"], ["scpoe", "--unset"], ["sessions", "--unset"]],
)
def test_unset_takes_one_key(person: Person, words: list[str]) -> None:
    assert person.run(*words).returncode == 2


def test_a_key_on_a_line_with_others_is_left_to_its_person(person: Person) -> None:
    person.config.write_text("memories: {attempts: 3, tokens_per_day: 9}\n")
    done = person.run("memories.attempts", "--unset")
    assert (done.returncode, "change it by hand" in done.stderr) == (1, True)
    assert person.config.read_text() == "memories: {attempts: 3, tokens_per_day: 9}\n"


def test_every_key_stands_in_its_group_with_a_sentence(person: Person) -> None:
    said = person.run().stdout
    assert "\n  scope                       project       Which sessions without names see" in said
    assert "\nstore: The store of all sessions" in said
    keys = [
        line for line in said.splitlines() if line.startswith("  ") and not line.startswith("   ")
    ]
    assert len(keys) == len({key.name for key in KEYS if key.about and key.name not in SECTIONS})


def test_a_file_that_still_withholds_lines_hears_that_none_is_withheld(person: Person) -> None:
    person.config.write_text("proof: {withhold: 0.1}\n")
    done = person.run()
    said = " ".join(f"{done.stdout} {done.stderr}".split())
    assert "a warning is never withheld now: delete the section" in said
