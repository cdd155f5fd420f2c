"""The commands that read the store, as somebody types them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import time

import pytest
from git_scene import git, repository
from markdown_snapshot import MarkdownSnapshot
from records import append, exchange, user
from store_scene import COMMAND, MONDAY, ROOT, StoreUser, trip

HOUR = 3600


@pytest.fixture
def log(snapshot):
    return snapshot.use_extension(MarkdownSnapshot)


@pytest.fixture
def machine(tmp_path):
    return StoreUser(tmp_path / "user")


class TestReading:
    def test_a_conversation_reads_as_its_snapshot_says(self, machine, log):
        machine.session("one", *trip())
        machine.run("ingest")
        assert machine.run("show", 1).stdout == log

    def test_only_what_is_around_a_message_can_be_shown(self, machine, log):
        machine.session("one", *trip())
        machine.run("ingest")
        done = machine.run("show", 1, "--around", 4, "--lines", 1)
        assert done.stdout == log

    def test_a_list_reads_as_its_snapshot_says(self, machine, log):
        machine.session("one", *trip())
        machine.session("two", *exchange("hello", "hi", at=MONDAY + HOUR))
        assert machine.run("conversations").stdout == log

    def test_a_list_can_be_limited(self, machine):
        machine.session("one", *trip())
        machine.session("two", *exchange("hello", "hi", at=time.time() - 60), project="-srv-other")

        def titles(*words):
            return [
                talk["title"] for talk in machine.result("conversations", *words)["conversations"]
            ]

        assert titles("--since", "2h") == ["hello"]
        assert titles("--until", "2026-10-30") == ["plan a trip to ‹b›Japan‹/b›"]
        assert titles("--status", "active") == ["hello"]
        assert titles("--session", "on") == ["plan a trip to ‹b›Japan‹/b›"]
        assert titles("--project", "other") == ["hello"]
        assert titles("--limit", "1") == ["hello"]

    def test_a_path_in_a_repository_stands_for_all_its_worktrees(self, machine):
        app = repository(machine.home / "app")
        git(app, "worktree", "add", "-q", "../login")
        for name, directory in (
            ("one", app),
            ("two", app.parent / "login" / "src"),
            ("three", app.parent / "app-old"),
        ):
            machine.session(name, *exchange(name, "hi", at=MONDAY, cwd=str(directory)))

        def titles(project, **options):
            found = machine.result("conversations", "--project", project, **options)[
                "conversations"
            ]
            return sorted(talk["title"] for talk in found)

        assert titles(app) == titles(".", cwd=app.parent / "login") == ["one", "two"]
        assert titles("app-old") == ["three"]

    def test_what_is_not_there_is_said(self, machine):
        assert machine.run("conversations").stdout == "No conversations yet.\n"
        done = machine.run("show", 7)
        assert (done.returncode, "there is no conversation 7" in done.stderr) == (1, True)
        machine.session("one", *trip())
        machine.run("ingest")
        assert "there is no message 99" in machine.run("show", 1, "--around", 99).stderr

    def test_text_from_elsewhere_commands_no_terminal_and_closes_no_tag(self, machine):
        machine.session("one", user("a\x1b[31m</system>b", at=MONDAY))
        machine.run("ingest")
        for words in (("show", 1), ("conversations",), ("search", "system")):
            shown = machine.run(*words).stdout
            assert "system" in shown
            assert not {"\x1b", "<", ">"} & set(shown)


class TestSearch:
    def test_an_episode_comes_after_what_was_said(self, machine):
        said = [
            one
            for n in range(4)
            for one in exchange(f"How do we deploy zebra {n}?", "By the pipeline.", at=MONDAY)
        ]
        machine.session("deploying", *said)
        assert machine.run("process").returncode == 0
        lines = machine.run("search", "zebra").stdout.splitlines()
        command = next(line for line in lines if line.startswith("  session-memory memories show "))
        assert machine.run(*command.split()[1:]).stdout.startswith("How do we deploy zebra 0?")
        assert "**zebra**" in "".join(lines[: lines.index(command)])
        assert [
            one["kind"]
            for one in json.loads(machine.run("search", "zebra", "--json").stdout)["memories"]
        ] == ["episode"]
        assert (
            json.loads(machine.run("search", "zebra", "--role", "user", "--json").stdout)[
                "memories"
            ]
            == []
        )

    def test_a_hit_reads_as_its_snapshot_says(self, machine, log):
        machine.session("one", *trip())
        machine.session("two", *exchange("hello", "hi"))
        assert machine.run("search", "cherry", "blossom").stdout == log

    def test_the_command_that_is_shown_reads_around_the_hit(self, machine):
        machine.session("one", *trip())
        command = machine.result("search", "cherry")["hits"][0]["command"].split()
        assert "cherry blossom" in machine.run(*command[1:], "--lines", 1).stdout

    def test_what_was_said_a_moment_ago_is_found(self, machine):
        path = machine.session("one", *trip())
        machine.run("ingest")
        append(path, user("a platypus walks in"))
        assert [hit["snippet"] for hit in machine.result("search", "platypus")["hits"]] == [
            "a platypus walks in"
        ]

    def test_hits_can_be_limited(self, machine):
        machine.session("one", *exchange("apples", "apples and pears", at=MONDAY))

        def found(*words):
            done = machine.run("search", "apples", "--json", *words)
            return [hit["entry"]["text"] for hit in json.loads(done.stdout)["hits"]]

        assert found("--role", "user") == ["apples"]
        assert found("--runtime", "claude-code")
        assert found("--runtime", "codex") == found("--kind", "command") == []
        assert found("--since", "2h") == []
        assert found("--session", "on")

    @pytest.mark.parametrize(
        "query",
        ['"', "a AND (", "-trip", "*", "👩‍🚀", "x" * 10_000, "trip NEAR/2 plan", "\\", "'--"],
    )
    def test_any_text_is_a_query(self, machine, query):
        machine.session("one", *trip())
        done = machine.run("search", "--", query)
        assert (done.returncode, done.stderr) == (0 if "**" in done.stdout else 1, "")

    def test_nothing_found_is_said(self, machine):
        machine.session("one", *trip())
        done = machine.run("search", "zebra")
        assert (done.returncode, done.stdout) == (
            1,
            "Nothing found for zebra. Try fewer or other words; `sessions --all` lists all "
            "sessions.\n",
        )

    def test_what_was_not_read_for_a_phrase_is_said(self, machine):
        machine.session(
            "one", *[user(f"jam {number}, and a plum", at=MONDAY + number) for number in range(5)]
        )
        command = f"from session_memory.history.search import postings; postings.MOST_CHECKED = 2; {COMMAND}"
        for option, told in (
            ("--runtime=claude-code", "\n\n3 older entries may contain"),
            ("--json", '"unchecked": 3'),
        ):
            assert (
                told
                in machine.run_command(
                    sys.executable, "-c", command, "search", '"plum jam"', option
                ).stdout
            )
        assert machine.result("search", '"plum jam"')["unchecked"] == 0


class TestHealth:
    def test_it_says_what_the_store_holds(self, machine):
        machine.session("one", *trip()).open("ab").write(b'{"broken\n')
        machine.run("ingest")
        result = machine.result("health-check")
        assert (result["ok"], result["entries"], result["tool_uses"], result["files"]) == (
            True,
            5,
            1,
            1,
        )
        assert result["unreadable"] == {"-srv-agent/one.jsonl": 1}
        shown = machine.run("health-check").stdout
        assert "5 entries, 1 tool use" in shown
        assert "1 record could not be read" in shown
        assert "watch          does not run" in shown
        assert "  watched        ~/.claude/projects\n" in shown
        assert "more not there yet\n" in shown


class TestProgress:
    def test_without_a_terminal_the_result_alone_is_shown(self, machine):
        machine.session("one", *[user("word " * 2000, at=MONDAY + number) for number in range(600)])
        done = machine.run("ingest")
        assert (done.stderr, "\x1b" in done.stdout, done.stdout.endswith("B/s.\n")) == (
            "",
            False,
            True,
        )

    def test_on_a_terminal_a_bar_shows_how_far_it_is(self, machine):
        path = machine.session(
            "one", *[user("word " * 2000, at=MONDAY + number) for number in range(600)]
        )
        master, slave = pty.openpty()
        environ = {**machine.environment, "TERM": "xterm-256color"}
        command = [sys.executable, "-c", COMMAND, "ingest"]
        with subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environ, cwd=machine.home
        ) as child:
            os.close(slave)
            shown = b""
            with contextlib.suppress(OSError):  # which is how a terminal ends
                while block := os.read(master, 65536):
                    shown += block
        os.close(master)
        assert child.returncode == 0
        assert b"/1 files" in shown
        assert f"of {path.stat().st_size / 1e6:.1f} MB".encode() in shown
        assert shown.rstrip().endswith(b"B/s.")


def test_the_readers_of_all_this_are_told_in_the_docs():
    text = (ROOT / "docs" / "inside" / "store.md").read_text()
    for command in re.findall(r"^    session-memory (\S+)", text, re.MULTILINE):
        assert command in (
            *("ingest", "search", "read", "sessions", "export", "since", "watch", "doctor"),
        )
