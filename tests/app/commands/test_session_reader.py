"""The reader script: which sessions there are, and what one of them did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from markdown_snapshot import MarkdownSnapshot
from own_process import ROOT, run_here
from records import (
    NamedHome,
    assistant,
    codex_exchange,
    codex_line,
    exchange,
    line,
    new_id,
    tool_result,
    user,
    write,
)

from session_memory.app.commands.read import main
from session_memory.history.archives.format import render_trailer
from session_memory.session_monitor import read_session_log

MONDAY = 1_790_000_000.0


@pytest.fixture
def log(snapshot):
    return snapshot.use_extension(MarkdownSnapshot)


@pytest.fixture
def home(tmp_path):
    return NamedHome(tmp_path / "agent", person=tmp_path)


def read(*arguments, cwd, **environment):
    """What the script prints, run in this process."""
    environ = {"HOME": str(cwd), "TZ": "UTC", "LANG": "C.UTF-8", **environment}
    return run_here([*map(str, arguments)], environ, cwd, main)


def read_by_the_script(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "scripts" / "session_reader.py", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={"HOME": str(cwd), "LANG": "C.UTF-8", **environment},
        check=False,
    )


def conversation(start=MONDAY):
    return [
        user("how do I deploy this?\n\nIt is urgent.", at=start),
        assistant(
            {"type": "thinking", "thinking": "hidden", "signature": "x"},
            message_id="m1",
            at=start + 5,
        ),
        assistant("Let me look.", message_id="m1", at=start + 5),
        assistant(
            ("Read", {"file_path": "/srv/agent/docs/deploy.md"}), message_id="m1", at=start + 6
        ),
        tool_result("the content of the file", at=start + 7),
        assistant(
            ("Edit", {"file_path": "/etc/hosts"}),
            ("Bash", {"command": "npm test &&\n  npm run deploy"}),
            at=start + 60,
        ),
        assistant("Deployed: <b>all</b> is \x1b[32mgreen\x1b[0m.", at=start + 90),
    ]


def test_a_log_reads_as_its_snapshot_says(home, log, set_zone):
    set_zone("UTC")
    path = home.session("discord", *conversation())
    assert read_session_log(jsonl_path=path, format="agent-sdk") + "\n" == log


def test_the_last_entries_are_shown_in_their_order(home):
    path = home.session("discord", *[user(f"message {number}") for number in range(9)])
    text = read_session_log(jsonl_path=path, format="agent-sdk", lines=3)
    assert [row for row in text.splitlines() if row.startswith("message")] == [
        "message 6",
        "message 7",
        "message 8",
    ]


def test_an_entry_that_stands_twice_is_shown_once(home):
    twice = user("said once")
    path = home.session("discord", twice, twice)
    assert read_session_log(jsonl_path=path, format="agent-sdk").count("said once") == 1


def test_unreadable_records_are_counted_at_the_end(home):
    path = home.session("discord", user("hello"))
    with path.open("ab") as file:
        file.write(b'{"type":"user","brok\n' + line(user("world")))
    assert read_session_log(jsonl_path=path, format="agent-sdk").endswith(
        "(1 record could not be read)"
    )


def test_a_line_that_is_still_being_written_is_not_shown(home):
    path = home.session("discord", user("hello"))
    with path.open("ab") as file:
        file.write(line(user("not yet"))[:-1])
    assert "not yet" not in read_session_log(jsonl_path=path, format="agent-sdk")


def test_the_script_shows_a_named_session_from_anywhere_below_its_home(home):
    home.session("discord", *conversation())
    below = home.root / "src" / "deep"
    below.mkdir(parents=True)
    place = {"HOME": str(home.root.parent), "CLAUDE_CONFIG_DIR": str(home.root / ".claude")}
    done = read_by_the_script("discord", cwd=below, **place)
    assert done.returncode == 0, done.stderr
    assert "how do I deploy this?" in done.stdout
    assert "Let me look.\n[3 tool uses: edited hosts; Read, Bash]\n" in done.stdout
    assert "[Read docs/deploy.md]" in read("discord", "--tools", cwd=below, **place).stdout
    last = read("discord", "--lines", "2", cwd=below, **place).stdout
    assert "the last 2 messages:" in last
    assert "Let me look." in last, "tool uses do not count"


def test_the_script_lists_named_sessions_the_latest_first(home):
    for age, name in ((7200, "email"), (120, "discord")):
        home.session(name, *conversation(time.time() - age - 90))
    done = read(
        "--list",
        "--home",
        home.root,
        cwd=home.root.parent,
        CLAUDE_CONFIG_DIR=str(home.root / ".claude"),
    )
    head, *rows = [row.split() for row in done.stdout.splitlines()]
    assert head == ["ID", "PROJECT", "RUNTIME", "MESSAGES", "AGE", "TITLE"]
    assert [row[1:] for row in rows] == [
        ["agent", "claude-code", "4", "2m", "ago", "discord"],
        ["agent", "claude-code", "4", "2h", "ago", "email"],
    ]


class TestPlainUser:
    @pytest.fixture
    def project(self, tmp_path):
        directory = tmp_path / ".claude" / "projects" / "-srv-agent"
        directory.mkdir(parents=True)
        return directory

    def session(self, project, title, *records):
        path = write(
            project / f"{new_id()}.jsonl", *records, {"type": "custom-title", "customTitle": title}
        )
        return path.stem

    def test_a_session_goes_by_title_id_or_the_beginning_of_one(self, project, tmp_path):
        session_id = self.session(project, "Deploy staging", *exchange("hello", "hi"))
        self.session(project, "Write docs", *exchange("other", "one"))
        for name in ("Deploy staging", "deploy", session_id, session_id[:30]):
            done = read(name, "--home", tmp_path / ".claude", cwd=tmp_path)
            assert "hello" in done.stdout, done.stderr

    def test_an_ambiguous_name_is_answered_with_the_candidates(self, project, tmp_path):
        self.session(project, "Deploy staging", *exchange("hello", "hi"))
        self.session(project, "Deploy production", *exchange("hello", "hi"))
        self.session(project, "Write docs", *exchange("hello", "hi"))
        done = read("deploy", "--all", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert "Deploy staging" in done.stderr
        assert "Deploy production" in done.stderr
        assert "Write docs" not in done.stderr

    def test_an_unknown_name_is_answered_with_what_there_is(self, project, tmp_path):
        self.session(project, "Write docs", *exchange("hello", "hi"))
        done = read("nothing", cwd=tmp_path)
        assert done.returncode == 1
        assert "Write docs" in done.stderr

    def test_the_project_is_that_of_the_session_that_asks(self, project, tmp_path):
        own = self.session(project, "This one", *exchange("hello", "hi"))
        other = project.parent / "-srv-shop"
        other.mkdir()
        self.session(other, "Shop", *exchange("hello", "hi"))
        done = read("--list", cwd=tmp_path, CLAUDE_CODE_SESSION_ID=own)
        assert "(this one)" in done.stdout
        assert "Shop" not in done.stdout
        assert "Shop" in read("--list", "--all", cwd=tmp_path, CLAUDE_CODE_SESSION_ID=own).stdout

    def test_what_was_done_in_another_runtime_is_listed_and_read_too(self, project, tmp_path):
        own = self.session(project, "This one", *exchange("hello", "hi"))
        rollout = (
            tmp_path
            / ".codex/sessions/2026/11/20"
            / f"rollout-2026-11-20T10-00-00-{new_id()}.jsonl"
        )
        head = codex_line("session_meta", {"id": rollout.stem[-36:], "cwd": str(tmp_path)})
        write(rollout, head, *codex_exchange("Is the cherimoya ripe?", "It is.", cwd=str(tmp_path)))
        asking = {"CLAUDE_CODE_SESSION_ID": own}
        (row,) = [
            row.split()
            for row in read("--list", cwd=tmp_path, **asking).stdout.splitlines()
            if "codex" in row
        ]
        assert rollout.stem[-36:].startswith(row[0])
        assert "It is." in read("Is the cher", cwd=tmp_path, **asking).stdout
        moved = {
            **asking,
            "CLAUDE_CONFIG_DIR": str(project.parent.parent.rename(tmp_path / "moved")),
        }
        assert "codex" not in read("--list", cwd=tmp_path, **moved).stdout

    def test_json_is_for_programs(self, project, tmp_path):
        session_id = self.session(
            project, "Docs", user("hello"), assistant("hi", ("Bash", {"command": "ls"}))
        )
        (listed,) = json.loads(read("--list", "--json", cwd=tmp_path).stdout)["sessions"]
        assert (listed["name"], listed["id"]) == ("Docs", session_id)
        log = json.loads(read("docs", "--json", cwd=tmp_path).stdout)
        assert [entry["text"] for entry in log["entries"]] == ["hello", "hi"]
        assert log["entries"][1]["tools"] == [{"name": "Bash", "argument": "ls"}]

    def test_control_characters_are_shown_only_when_asked_for(self, project, tmp_path):
        self.session(project, "Docs", user("a\x1b[31mb"))
        assert "\x1b" not in read("docs", cwd=tmp_path).stdout
        assert "\x1b[31m" in read("docs", "--raw", cwd=tmp_path).stdout

    def test_secrets_are_shown_only_when_asked_for(self, project, tmp_path):
        token = "ghp_" + "a1B2" * 9
        self.session(
            project,
            "Docs",
            user(f"use {token}"),
            assistant(("Bash", {"command": f"login {token}"})),
        )
        for options in ([], ["--json"]):
            done = read("docs", *options, cwd=tmp_path)
            assert token not in done.stdout
            assert done.stdout.count("[redacted: github token]") == 2
        assert token in read("docs", "--raw", cwd=tmp_path).stdout

    def test_a_home_without_sessions_says_what_to_do(self, tmp_path):
        done = read("--list", cwd=tmp_path)
        assert done.returncode == 1
        assert "--home PATH" in done.stderr


def place(home):
    return {
        "cwd": home.root,
        "HOME": str(home.root.parent),
        "CLAUDE_CONFIG_DIR": str(home.root / ".claude"),
    }


class TestPrivacy:
    def test_an_excluded_session_is_not_listed_nor_read_but_by_its_person(self, home):
        home.session("mail", *exchange("my diagnosis", "I see."))
        home.session("main", *exchange("hello", "hi"))
        (home.root / ".session-memory" / "config.yaml").write_text(
            "sessions: {mail: {ignore: true}}\n"
        )
        assert "mail" not in read("--list", **place(home)).stdout
        refused = read("mail", **place(home))
        assert refused.returncode == 1
        assert refused.stderr.count("mail") == 1  # as it was typed
        assert "my diagnosis" in read("mail", "--include-private", **place(home)).stdout

    def test_of_a_session_without_text_its_person_alone_reads_some(self, home):
        home.session(
            "mail",
            *exchange("my diagnosis", "I see."),
            assistant(("Read", {"file_path": "/srv/agent/results.md"})),
        )
        (home.root / ".session-memory" / "config.yaml").write_text(
            "sessions: {mail: {text: false}}\n"
        )
        for form in ([], ["--json"]):
            shown = read("mail", *form, **place(home)).stdout
            assert "diagnosis" not in shown
            assert "results" not in shown
            assert shown.lower().count("user") == 1
            assert "diagnosis" in read("mail", "--include-private", *form, **place(home)).stdout

    def test_an_agent_does_not_get_what_is_for_people(self, home):
        home.session("mail", *exchange("my diagnosis", "I see."))
        config = home.root / ".session-memory" / "config.yaml"
        for variable in (
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDECODE",
            "PI_SESSION_ID",
            "PI_CODING_AGENT",
        ):
            config.write_text("sessions: {mail: {text: false}}\n")
            agent = {variable: "1", **place(home)}
            for words in (
                ["mail", "--include-private"],
                ["mail", "--raw"],
                ["--list", "--include-private"],
            ):
                done = read(*words, **agent)
                assert (done.returncode, done.stdout) == (1, ""), (variable, words)
                assert done.stderr.splitlines() == [
                    "session-memory: --include-private and --raw: only for people",
                    "  ask the user to run it in their own terminal",
                ]
            config.write_text("sessions: {mail: {ignore: true}}\n")
            assert "mail" not in read("m", "--include-private", **agent).stderr

    def test_an_agent_has_its_own_session_as_it_is(self, home):
        token = "ghp_" + "a1B2" * 9
        transcript = home.session("mail", *exchange(f"use {token}", "I see."))
        own = {"CLAUDE_CODE_SESSION_ID": transcript.stem, "CLAUDECODE": "1", **place(home)}
        assert token in read("mail", "--raw", "--include-private", **own).stdout

    def test_nothing_that_agents_read_names_the_way_around_it(self):
        texts = [
            path.read_text()
            for folder in ("skills", "templates")
            for path in (ROOT / folder).rglob("*.md")
        ]
        assert not any("include-private" in text for text in texts)
        assert "include-private" not in (ROOT / "session_memory/app/tools/tools.json").read_text()

    def test_the_functions_for_other_programs_keep_to_it(self, home, monkeypatch):
        path = home.session("mail", *exchange("my diagnosis", "I see.", cwd=str(home.root)))
        monkeypatch.setenv("HOME", str(home.root.parent))
        monkeypatch.delenv("SESSION_MEMORY_DIR", raising=False)
        config = home.root / ".session-memory" / "config.yaml"
        config.write_text(f"sessions: {{{path.stem}: {{text: false}}}}\n")
        log = read_session_log(jsonl_path=path, format="agent-sdk")
        assert "diagnosis" not in log
        assert "User" in log
        config.write_text(f"projects: {{{home.root}: {{ignore: true}}}}\n")
        assert read_session_log(jsonl_path=path, format="agent-sdk") == ""


@pytest.mark.parametrize("title", [None, "caf\udce9 \ud800"])
def test_a_session_whose_file_is_not_called_in_utf_8_is_listed_and_read(tmp_path, title):
    folder = os.fsencode(tmp_path) + b"/.claude/projects/-srv-caf\xe9"
    os.makedirs(folder)
    titled = [{"type": "custom-title", "customTitle": title}] if title else []
    os.rename(
        write(tmp_path / "one.jsonl", *exchange("plan", "Beans."), *titled),
        folder + b"/gart\xe9n.jsonl",
    )
    listed = read_by_the_script("--list", "--json", cwd=tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    (one,) = json.loads(listed.stdout)["sessions"]
    assert one["name"].startswith("caf" if title else "plan")
    assert os.path.exists(one["path"])
    plain = read("--list", cwd=tmp_path)
    assert (plain.returncode, plain.stderr) == (0, "")
    for name in (one["name"], one["id"], one["name"][:3]):
        assert "Beans." in read(name, cwd=tmp_path).stdout


class TestFormerNames:
    def put_by(self, home, name, is_private=False, **facts):
        """A session that was cleared under a name: its transcript stays, and its archive has the
        name."""
        path = home.session("main", *exchange(f"about {name}", "I see."))
        id = home.session_id("main")
        (home.sessions_dir / "main.json").unlink()
        folder = home.root / (".private-conversations" if is_private else "conversations")
        folder.mkdir(exist_ok=True)
        (folder / f"{id}.md").write_text(
            render_trailer({"session": id, "title": "x", "name": name, **facts})
        )
        return path, id

    def listed(self, home):
        return self.read(home, "--list").stdout.splitlines()

    def read(self, home, *words):
        return read(
            *words,
            "--home",
            home.root,
            cwd=home.root.parent,
            CLAUDE_CONFIG_DIR=str(home.root / ".claude"),
        )

    def test_a_session_that_was_cleared_under_a_name_is_listed_and_read_by_it(self, home):
        home.session("main", *exchange("hello", "hi"))
        _, garden = self.put_by(home, "Garden")
        home.session("main", *exchange("hello", "hi"))
        assert [
            row.split()[-1] for row in self.listed(home)[1:] if garden.startswith(row.split()[0])
        ] == ["Garden"]
        assert "about Garden" in self.read(home, "garden").stdout

    def test_of_those_that_had_the_name_of_one_that_there_is_only_that_is_listed(self, home):
        self.put_by(home, "main")
        home.session("main", *exchange("hello", "hi"))
        assert len(self.listed(home)) == 2  # with the header
        assert "hello" in self.read(home, "main").stdout

    @pytest.mark.parametrize("is_private", [False, True])
    def test_a_rule_for_a_former_name_hides_it(self, home, is_private):
        _, garden = self.put_by(home, "Garden", is_private)
        home.session("main", *exchange("hello", "hi"))
        (home.root / ".session-memory/config.yaml").write_text(
            "sessions: {Garden: {ignore: true}}\n"
        )
        assert [row.split()[-1] for row in self.listed(home)[1:]] == ["main"]
        assert garden not in self.read(home, "Garden").stderr
