"""Properties of every command: the form of times, counts and names, and messages about missing things."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from shlex import quote

import pytest
from memories_scene import conversation
from records import assistant, exchange, stamp, user
from store_scene import COMMAND, MONDAY, ROOT, StoreUser, trip

from session_memory.app.commands.process import numbers_of
from session_memory.cli import COMMANDS, HEADINGS
from session_memory.memory.queue import PartResult

WITH_HOME = [
    "archive",
    "config",
    "costs",
    "errors",
    "graph",
    "health-check",
    "ingest",
]
WITH_HOME += [
    "export",
    "mcp",
    "memories",
    "patterns",
    "process",
    "read",
    "search",
    "sessions",
    "watch",
]


EVERYDAY = list(next(iter(HEADINGS.values())))


def made(home):
    machine = StoreUser(home)
    machine.session("8f3a-trip", *trip())
    asked = ["how is **rye** baked" + "?" * turns for turns in (1, 2, 3)]
    bread = [record for text in asked for record in exchange(text, "It is kneaded.", at=MONDAY)]
    for record in bread:
        record["cwd"] = "/srv/bakery"
    machine.session("9c01-bread", *bread, project="-srv-bakery")
    return machine


@pytest.fixture
def machine(tmp_path):
    return made(tmp_path / "user")


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    return made(tmp_path_factory.mktemp("person") / "user")


def listed(help_text: str) -> list[str]:
    """Return the commands that a help lists."""
    starts = [line for line in help_text.splitlines() if re.match(r"  \S", line)]
    return [line.split()[0] for line in starts]


class TestHelp:
    def test_home_is_explained_in_the_same_words_everywhere(self, machine):
        texts = set()
        for name in WITH_HOME:
            said = machine.run(name, "--help", COLUMNS="200").stdout
            texts.update(
                line.split("PATH ")[1].strip()
                for line in said.splitlines()
                if line.startswith("  --home")
            )
        assert texts == {
            "an agent's home, a host, or a runtime's directory (~/.claude); default: found from "
            "the current directory"
        }

    def test_help_all_lists_every_command_with_what_it_does(self, machine):
        text = machine.run("help", "all").stdout
        assert listed(text) == list(COMMANDS)
        lines = [line for line in text.splitlines() if line.startswith("  ")]
        assert len({re.match(r"  \S+ +|  +", line).end() for line in lines}) == 1

    def test_help_lists_at_most_14_commands_and_names_the_list_of_all(self, machine):
        text = machine.run("--help").stdout
        assert listed(text) == EVERYDAY
        assert len(listed(text)) <= 14
        assert "session-memory help all" in text
        assert machine.run("-h").stdout == machine.run("help").stdout == text

    def test_help_lists_a_host_a_team_and_a_graph_once_they_are_set_up(self, machine):
        machine.run("host", "init", str(machine.home / "groups"))
        assert listed(machine.run("--help").stdout)[-1] == "host"
        machine.run("config", "memories.strategies", "[extractive, graphiti]")
        assert listed(machine.run("--help").stdout)[-2:] == ["graph", "host"]
        machine.run("config", "team.url", "postgresql://ada@127.0.0.1/team")
        assert listed(machine.run("--help").stdout)[-3:] == ["graph", "host", "team"]

    def test_a_broken_configuration_does_not_keep_the_help_from_you(self, machine):
        (machine.home / ".session-memory").mkdir(exist_ok=True)
        (machine.home / ".session-memory/config.yaml").write_text("team: [\n")
        done = machine.run("--help")
        assert (done.returncode, listed(done.stdout)) == (0, EVERYDAY)

    def test_help_of_a_command_shows_its_options(self, machine):
        assert machine.run("help", "search").stdout == machine.run("search", "--help").stdout
        done = machine.run("help", "serch")
        assert (done.returncode, done.stdout) == (2, "")
        assert "did you mean session-memory search?" in done.stderr

    def test_a_missing_argument_is_answered_with_where_it_is_explained(self, machine):
        done = machine.run("completion")
        assert (done.returncode, done.stderr.splitlines()[-1]) == (
            2,
            "  session-memory completion --help lists them",
        )

    def test_a_wrong_command_is_answered_with_the_nearest(self, machine):
        for typed, meant in (
            ("serch", "search"),
            ("conversation", "conversations"),
            ("sesions", "sessions"),
        ):
            done = machine.run(typed)
            assert (done.returncode, done.stdout) == (2, "")
            said = f"session-memory: unknown command {typed!r}\n  did you mean session-memory {meant}?\n"
            assert done.stderr == said

    def test_a_command_like_no_other_is_answered_with_where_they_are_listed(self, machine):
        assert machine.run("xyzzy").stderr.endswith("\n  session-memory help all lists them\n")

    def test_a_wrong_option_is_answered_with_the_nearest(self, machine):
        done = machine.run("search", "rye", "--limt", "3")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith(
            "error: unrecognized arguments: --limt 3 (did you mean --limit?)\n"
        )
        assert (
            "error: unrecognized arguments: --xyzzy\n"
            in machine.run("search", "rye", "--xyzzy").stderr
        )

    def test_a_wrong_action_or_choice_is_answered_with_the_nearest(self, machine):
        for words, meant in (
            (("host", "statsu"), "status"),
            (("costs", "--by", "projct"), "project"),
        ):
            done = machine.run(*words)
            assert (done.returncode, done.stdout) == (2, "")
            assert (
                f"invalid choice: '{words[-1]}' (did you mean {meant}? choose from " in done.stderr
            )
        assert "did you mean" not in machine.run("costs", "--by", "xyzzy").stderr

    def test_where_there_is_no_session_that_is_said(self, tmp_path):
        done = StoreUser(tmp_path).run("read", "nobody")
        assert (
            done.stderr
            == "session-memory: no session is called 'nobody'\n  there are none here yet\n"
        )

    def test_a_wrong_session_is_answered_with_the_nearest(self, machine):
        done = machine.run("read", "8f3a-trap", "--all")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("session-memory: no session is called '8f3a-trap'; ")
        assert done.stderr.splitlines()[1].split()[0] == "8f3a-trip"

    def test_a_wrong_key_is_answered_with_the_nearest(self, machine):
        assert "did you mean scope?" in machine.run("config", "scpoe").stderr
        machine.config("scpoe: all\n")
        assert "unknown key scpoe, perhaps scope" in machine.run("ingest").stderr


class TestWithoutACommand:
    def overview(self, machine):
        done = machine.run()
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) <= 15
        return done.stdout

    def steps(self, said):
        return [line.split()[1] for line in said.partition("\nNext\n")[2].splitlines()]

    def test_it_says_if_all_is_right_what_happens_and_what_can_be_done(self, machine):
        """The two sessions of MONDAY are in files that were written just now."""
        at = time.time() - 300
        loaf = exchange("how long does the loaf rise?", "Two hours.", at=at)
        os.utime(machine.session("7d20-loaf", *loaf), (at, at))
        first = self.overview(machine)
        assert (
            ": 1 thing to look at\n  ! no agent has the hooks yet\n\nNow: 1 session in the last "
            "day\n" in first
        )
        assert "5m ago Claude Code agent how long does the loaf rise?" in " ".join(first.split())
        assert self.steps(first)[:2] == ["install", "page"]
        (machine.home / ".session-memory" / "state").mkdir(parents=True)
        machine.run("ingest")
        again = self.overview(machine)
        assert ": all is well; 3 conversations in the store\n\nNow: " in again
        assert self.steps(again) == ["page", "search", "sessions", "doctor", "help"]

    def test_a_collision_that_a_session_will_be_told_of_is_shown(self, machine):
        cart, now = machine.home / "cart.ts", time.time()
        cart.touch()
        place = {"cwd": str(machine.home)}
        for name, tool, minutes in (("a-read", "Read", 9), ("b-edit", "Edit", 3)):
            said = [user(f"{tool} the cart"), assistant((tool, {"file_path": str(cart)}))]
            for one in said:
                one |= {"timestamp": stamp(now - minutes * 60), **place}
            machine.session(name, *said, project=re.sub("[^A-Za-z0-9]", "-", str(machine.home)))
        lock = machine.home / ".session-memory/state/cursors/a-read.json.lock"
        lock.parent.mkdir(parents=True)
        lock.touch()
        assert '  ! next update of "Read the cart": cart.ts: edited' in self.overview(machine)

    def test_it_has_15_lines_with_all_that_there_may_be(self, machine):
        """A problem, a collision, and sessions that Claude Code deletes within a week."""
        machine.config("scpoe: all\n")
        self.test_a_collision_that_a_session_will_be_told_of_is_shown(machine)
        machine.session("fresh", *exchange("how fresh?", "Quite."))
        then = time.time() - 27 * 24 * 3600
        os.utime(machine.session("old", *exchange("how old?", "Very.", at=then)), (then, then))
        machine.run("ingest")
        said = self.overview(machine)
        assert len(said.splitlines()) == 15
        assert self.steps(said)[:2] == ["config", "page"]
        assert "keep 1 session, else deleted in 7 days" in said

    def test_several_problems_are_one_line_and_where_the_others_stand(self, machine):
        machine.config("memories: {attempts: 0}\nscpoe: all\n")
        lines = self.overview(machine).splitlines()
        assert lines[0].endswith("things to look at")
        assert "more: session-memory doctor)" in lines[1]


class TestHints:
    @pytest.fixture
    def command(self, machine):
        """The command in a directory of its own, as a private environment has it."""
        command = machine.home / "private env" / "bin" / "session-memory"
        command.parent.mkdir(parents=True)
        command.write_text(COMMAND)
        return command

    def test_they_can_be_run_where_the_command_is_not_on_the_path(self, machine, command):
        done = machine.run_command(sys.executable, str(command), "read", "77", "--conversation")
        assert (
            done.stderr.splitlines()[1]
            == f"  '{command}' sessions --conversations --all lists them"
        )

    def test_they_name_the_command_where_it_is(self, machine, command):
        path = f"{command.parent}{os.pathsep}{os.defpath}"
        done = machine.run_command(
            sys.executable, str(command), "read", "77", "--conversation", PATH=path
        )
        assert (
            done.stderr.splitlines()[1]
            == "  session-memory sessions --conversations --all lists them"
        )

    def test_they_name_the_script_of_a_package_where_that_was_run(self, machine):
        script = f"{ROOT}/scripts/memory.py"
        done = machine.run_command(sys.executable, script, "read", "77", "--conversation")
        assert (
            done.stderr.splitlines()[1]
            == f"  {quote(script)} sessions --conversations --all lists them"
        )


class TestNotFound:
    def test_it_is_exit_code_1_with_a_line_that_says_it(self, read_only):
        for words in (
            "search zebra",
            "read 77",
            "sessions --since 1h",
            "memories search zebra",
            "memories show zebra",
            "errors zebra",
            "archive zebra",
            "export zebra",
            "graph search zebra",
        ):
            done = read_only.run(*words.split())
            assert done.returncode == 1, words
            assert len((done.stdout + done.stderr).splitlines()) <= 3, words

    def test_a_list_of_nothing_is_none(self, tmp_path):
        for command in ("conversations", "memories"):
            assert StoreUser(tmp_path / "nobody").run(command).returncode == 0

    def test_a_search_for_nothing_says_what_to_do(self, read_only):
        for query in ("", "  "):
            done = read_only.run("search", query)
            assert (done.returncode, done.stdout) == (2, "")
            said = "the query is empty\n  name some words: session-memory search"
            assert done.stderr == f'session-memory: {said} "cherry blossom"\n'

    def test_a_project_or_session_that_there_is_none_of_is_answered_with_the_nearest(
        self, read_only
    ):
        for words in (("search", "rye"), ("conversations",), ("patterns",), ("errors", "failed")):
            done = read_only.run(*words, "--project", "bakry")
            assert (done.returncode, done.stdout) == (1, ""), words
            said = "session-memory: no project has 'bakry' in its directory\n  the nearest:\n    /srv/bakery\n"
            assert done.stderr == said
            done = read_only.run(*words, "--session", "9c01-brot")
            assert done.returncode == 1, words
            assert done.stderr.startswith(
                "session-memory: no session is called '9c01-brot'\n  the nearest:\n"
            )
            assert "    9c01-bread how is **rye** baked?\n" in done.stderr

    def test_where_none_is_like_it_the_latest_are_named(self, read_only):
        said = read_only.run("conversations", "--project", "qqq").stderr
        assert said.endswith("\n  the latest:\n    /srv/agent\n    /srv/bakery\n")


class TestCounts:
    def test_a_list_says_when_it_stops_at_a_limit(self, read_only):
        assert read_only.run("conversations", "--limit", "1").stdout.endswith(
            "\nThese are the latest 1; there are more: --limit N shows them.\n"
        )
        assert read_only.result("conversations", "--limit", "1")["more"] is True
        assert "there are more" not in read_only.run("conversations", "--limit", "2").stdout
        assert read_only.result("conversations", "--limit", "2")["more"] is False

    def test_one_conversation_is_one_however_many_strategies_were_at_work_on_it(self):
        done = [
            PartResult(strategy, conversation(number), status)
            for number, strategy, status in [
                (1, "extractive", "archived"),
                (1, "summary", "archived"),
                (2, "extractive", "skipped"),
                (2, "summary", "archived"),
                (3, "extractive", "skipped"),
                (3, "summary", "waiting"),
            ]
        ]
        assert numbers_of(done) == {"archived": 2, "skipped": 0, "waiting": 1}

    def test_only_the_last_of_a_conversation_can_be_shown(self, machine):
        machine.run("ingest")
        done = machine.run("show", "1", "--lines", "2")
        assert "[4 earlier items]" in done.stdout
        assert done.stdout.endswith("As you like.\n")
        assert "cherry" not in done.stdout
        assert [one["text"] for one in machine.result("show", "1", "--lines", "1")["entries"]] == [
            "As you like."
        ]


class TestBold:
    def test_a_word_that_stands_in_asterisks_is_marked_once(self, read_only):
        assert (
            "  how is **rye** baked?\n" in read_only.run("search", "rye", "--role", "user").stdout
        )

    def test_on_a_terminal_nothing_is_bold_within_bold(self, machine):
        controller, worker = pty.openpty()
        words = [sys.executable, "-c", COMMAND, "search", "rye cherry"]
        environ = {**machine.environment, "TERM": "xterm"}
        with subprocess.Popen(
            words, stdout=worker, stderr=worker, env=environ, cwd=machine.home
        ) as process:
            process.wait(60)
        time.sleep(0.1)
        said = os.read(controller, 65536).decode()
        os.close(worker)
        os.close(controller)
        assert "\x1b[1m" in said
        assert re.search(r"\x1b\[1m[^\x1b]*\x1b\[1m", said) is None
