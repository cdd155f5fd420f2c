"""The parts of a host, without a runtime: reading a transcript, paths, settings, commands."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.fake_anthropic import FakeAnthropic
from host_scene import HostMachine

from session_memory.cli import main
from session_memory.common.errors import SessionMemoryError
from session_memory.common.system.files import is_locked
from session_memory.extras.host._group_files import (
    instructions_for_all,
    name_session,
    prepare_group,
    prepare_host,
)
from session_memory.extras.host._log import host_lock, is_served
from session_memory.extras.host.recovery import _running_pids, recover
from session_memory.extras.host.settings import HostSettings
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.homes import home_at
from session_memory.sessions.settings.host_layout import (
    GroupNameError,
    Layout,
    OutsideGroupError,
    open_below,
)
from session_memory.sessions.settings.keys import sample


def user(uuid: str) -> dict[str, object]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": "?"}}


def queued(uuid: str) -> dict[str, object]:
    return {
        "type": "attachment",
        "uuid": "x",
        "attachment": {"type": "queued_command", "source_uuid": uuid},
    }


def said(
    text: str, message_id: str = "m1", stop: str | None = "end_turn", **more: object
) -> dict[str, object]:
    content = (
        [{"type": "text", "text": text}] if text else [{"type": "thinking", "thinking": "..."}]
    )
    message = {
        "role": "assistant",
        "id": message_id,
        "content": content,
        "stop_reason": stop,
        "model": "m",
    }
    return {"type": "assistant", "uuid": f"a-{message_id}", "message": message, **more}


class TestRecovery:
    def recover(
        self, tmp_path: Path, *records: dict[str, object]
    ) -> tuple[list[tuple[tuple[str, ...], str]], set[str]]:
        path = tmp_path / "s.jsonl"
        path.write_text(
            "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
        )
        found = recover(runtime("agent-sdk"), str(path), {"u1", "u2"})
        return found.answers, found.begun

    def test_an_answer_belongs_to_the_prompts_before_it(self, tmp_path: Path) -> None:
        records = (
            user("u0"),
            said("old", "m0"),
            user("u1"),
            said("one"),
            user("u2"),
            said("two", "m2"),
        )
        assert self.recover(tmp_path, *records) == (
            [(("u1",), "one"), (("u2",), "two")],
            set(),
        )

    def test_what_came_in_the_middle_of_a_turn_has_the_answer_of_the_turn(
        self, tmp_path: Path
    ) -> None:
        records = (
            user("u1"),
            said("let me see", "m0", "tool_use"),
            user("result"),
            queued("u2"),
            said("both"),
        )
        assert self.recover(tmp_path, *records) == ([(("u1", "u2"), "both")], set())

    def test_a_turn_that_was_not_over_has_none(self, tmp_path: Path) -> None:
        records = (user("u1"), said("let me see", "m0", "tool_use"), user("result"))
        assert self.recover(tmp_path, *records) == ([], {"u1"})

    def test_a_message_of_several_records_is_one_answer(self, tmp_path: Path) -> None:
        records = (
            user("u1"),
            said("", "m1"),
            said("first", "m1"),
            said("second", "m1"),
            user("later"),
        )
        assert self.recover(tmp_path, *records) == ([(("u1",), "first\n\nsecond")], set())

    def test_faults_and_what_a_sub_agent_says_are_no_answers(self, tmp_path: Path) -> None:
        fault, side = (
            said("API Error", "m1", isApiErrorMessage=True),
            said("sub", "m2", isSidechain=True),
        )
        assert self.recover(tmp_path, user("u1"), fault, side) == ([], {"u1"})

    def test_a_torn_line_and_a_missing_file_tell_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl"
        path.write_text(
            json.dumps(user("u1"), separators=(",", ":")) + "\n" + json.dumps(said("one"))[:40]
        )
        assert recover(runtime("agent-sdk"), str(path), {"u1"}) == ([], {"u1"})
        assert recover(runtime("agent-sdk"), str(tmp_path / "gone.jsonl"), {"u1"}) == ([], set())


class TestLayout:
    @pytest.fixture
    def layout(self, tmp_path: Path) -> Layout:
        layout = Layout(tmp_path / "h")
        prepare_host(layout)
        prepare_group(layout.group("main"))
        return layout

    def test_a_hostile_name_is_rejected_not_rewritten(self, layout: Layout) -> None:
        for name in (
            "..",
            ".",
            "",
            "/etc",
            "a/b",
            "a\\b",
            "global",
            "GLOBAL",
            ".hid",
            "mаin",
            "a\n",
            "a\0",
            "n" * 300,
        ):
            with pytest.raises(GroupNameError):
                layout.group(name)

    def test_directories_and_files_are_for_this_user_alone(self, layout: Layout) -> None:
        modes = {path.stat().st_mode & 0o077 for path in Path(layout.root).rglob("*")}
        assert modes == {0}

    def test_a_link_in_the_place_of_a_groups_directory_is_refused(self, layout: Layout) -> None:
        for which in ("groups/main", "data/sessions/main", "data/ipc/main/tasks"):
            path, elsewhere = Path(layout.root, which), Path(layout.root, "elsewhere")
            path.rename(elsewhere)
            path.symlink_to(elsewhere)
            with pytest.raises(OutsideGroupError):
                prepare_group(layout.group("main"))
            path.unlink()
            elsewhere.rename(path)

    def test_a_file_below_a_directory_is_opened_without_leaving_it(self, tmp_path: Path) -> None:
        (tmp_path / "dir").mkdir()
        (tmp_path / "dir" / "x").write_text("inside")
        (tmp_path / "link").symlink_to(tmp_path / "dir")
        os.mkfifo(tmp_path / "fifo")
        for names in (
            ("..", "x"),
            ("/etc", "passwd"),
            ("a/b",),
            ("",),
            ("link", "x"),
            ("fifo",),
            ("dir",),
        ):
            with pytest.raises(OutsideGroupError):
                open_below(str(tmp_path), *names)
        descriptor = open_below(str(tmp_path), "dir", "x")
        assert os.read(descriptor, 100) == b"inside"
        os.close(descriptor)

    def test_what_a_group_has_is_not_made_anew(self, layout: Layout) -> None:
        main = layout.group("main")
        Path(main.instructions).write_text("I am Anna.\n")
        assert (prepare_group(main), prepare_host(layout)) == ([], [])
        assert Path(main.instructions).read_text() == "I am Anna.\n"

    def test_a_name_that_was_not_used_for_long_is_forgotten(self, layout: Layout) -> None:
        main = layout.group("main")
        for name in ("chat", "task-old", "task-new"):
            name_session(main, name, "s1")
            a_month_ago = time.time() - 30 * 86400
            if name != "task-new":
                os.utime(
                    Path(main.memory_home.sessions_dir, f"{name}.json"), (a_month_ago, a_month_ago)
                )
        prepare_group(main)
        assert sorted(path.stem for path in Path(main.memory_home.sessions_dir).iterdir()) == [
            "chat",
            "task-new",
        ]

    def test_global_instructions_are_not_read_through_a_link(self, layout: Layout) -> None:
        path = Path(layout.global_instructions)
        path.unlink()
        assert instructions_for_all(layout) == ""
        path.symlink_to("/etc/hostname")
        with pytest.raises(OutsideGroupError):
            instructions_for_all(layout)

    def test_one_host_runs_at_a_time(self, layout: Layout) -> None:
        assert not is_locked(layout.lock_file)
        with host_lock(layout):
            assert is_locked(layout.lock_file)
            with pytest.raises(SessionMemoryError, match="already running"), host_lock(layout):
                pass
        assert not is_locked(layout.lock_file)

    def test_one_host_runs_at_a_time_where_the_file_system_has_no_locks(
        self, layout: Layout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def flock(*_: object) -> None:
            raise OSError(errno.ENOLCK, "not here")

        monkeypatch.setattr(fcntl, "flock", flock)
        with host_lock(layout), socket.socket(socket.AF_UNIX) as listener:
            assert not is_served(layout)
            listener.bind(layout.socket)
            listener.listen()
            assert is_served(layout)
            with pytest.raises(SessionMemoryError, match="already running"), host_lock(layout):
                pass


class TestLeftover:
    def test_a_process_that_has_the_id_of_another_is_not_taken_for_it(self, tmp_path: Path) -> None:
        (tmp_path / "sessions").mkdir()
        listed = tmp_path / "sessions" / "x.json"
        listed.write_text(json.dumps({"pid": os.getpid(), "procStart": "1"}))
        if Path("/proc/self/stat").exists():
            assert _running_pids(CLAUDE, str(tmp_path)) == []
            started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
            listed.write_text(json.dumps({"pid": os.getpid(), "procStart": started}))
            assert _running_pids(CLAUDE, str(tmp_path)) == [os.getpid()]
        for content in ("", "[]", '{"pid": -1}', '{"pid": "x"}', '{"pid": 1}'):
            listed.write_text(content)
            assert _running_pids(CLAUDE, str(tmp_path)) == []


class TestConfig:
    @staticmethod
    def told(layout: Layout) -> tuple[HostSettings, list[str]]:
        """The settings that the host goes by, and what it says of its file."""
        settings = home_at(layout.root, {"HOME": layout.root}).settings()
        return HostSettings(**settings.host), list(settings.faults)

    def test_a_new_host_gets_a_file_of_comments_and_the_defaults_hold(self, tmp_path: Path) -> None:
        layout = Layout(tmp_path)
        assert layout.config_file in prepare_host(layout)
        assert Path(layout.config_file).read_text() == sample()
        assert self.told(layout) == (HostSettings(), [])

    def test_what_the_section_says_holds(self, tmp_path: Path) -> None:
        layout = Layout(tmp_path)
        prepare_host(layout)
        Path(layout.config_file).write_text(
            "host: {model: opus, idle_seconds: 0.5, allowed_tools: [WebSearch]}\n"
        )
        wanted = HostSettings(model="opus", idle_seconds=0.5, allowed_tools=["WebSearch"])
        assert self.told(layout) == (wanted, [])

    def test_a_wrong_key_costs_that_key_alone_and_is_said(self, tmp_path: Path) -> None:
        for number, text in enumerate(
            (
                "colour: red",
                "groups_at_once: 0",
                "groups_at_once: 1.5",
                "idle_seconds: -1",
                "attempts: yes please",
                "model: 3",
                "allowed_tools: Bash",
                "allowed_tools: [1]",
            )
        ):
            layout = Layout(tmp_path / str(number))
            prepare_host(layout)
            Path(layout.config_file).write_text(f"host:\n  {text}\n")
            settings, [fault] = self.told(layout)
            assert settings == HostSettings(), text
            assert (
                fault.startswith(f"{layout.config_file}:2: host.{text.partition(':')[0]}")
                or "colour" in fault
            )


class TestCommands:
    @pytest.fixture
    def machine(self) -> Iterator[HostMachine]:
        machine = HostMachine(FakeAnthropic())
        yield machine
        machine.close()

    def test_a_host_is_made_and_made_again_without_loss(self, machine: HostMachine) -> None:
        machine.init("main", "garden")
        Path(machine.group("main").instructions).write_text("I am Anna.\n")
        done = machine.command("init", "main", "garden", "kitchen", "--json")
        assert json.loads(done.stdout)["groups"] == ["garden", "kitchen", "main"]
        assert Path(machine.group("main").instructions).read_text() == "I am Anna.\n"

    def test_what_is_said_while_no_host_runs_is_kept(self, machine: HostMachine) -> None:
        machine.init("main")
        done = machine.command("say", "main", "hello", "there")
        assert (done.returncode, "Kept. The host is not running" in done.stdout) == (0, True)
        prompt = machine.ledger.next_prompt("main")
        assert prompt is not None
        assert prompt.text == "hello there"

    def test_the_status_tells_of_every_group(self, machine: HostMachine) -> None:
        machine.init("main", "garden")
        machine.say("main", "hello")
        machine.sessions.set("main", "s1")
        done = machine.command("schedule", "garden", "water", "--cron", "0 8 * * 1-5")
        assert done.returncode == 0
        status = json.loads(machine.command("status", "--json").stdout)
        garden, main = status["groups"]
        assert (status["is_running"], main["session_id"], main["waiting"]) == (False, "s1", 1)
        assert (garden["waiting"], garden["last_activity"], garden["next_task"]["prompt"]) == (
            0,
            "",
            "water",
        )
        text = machine.command("status").stdout
        assert "not running" in text
        assert "1 waiting, 0 being answered" in text

    def test_replies_are_shown_without_what_commands_a_terminal(self, machine: HostMachine) -> None:
        machine.init("main")
        machine.ledger.notify("local:main", "red \x1b[31malert")
        assert "red alert" in machine.command("tail", "main", "--no-follow").stdout
        (line,) = machine.command("tail", "main", "--no-follow", "--json").stdout.splitlines()
        assert json.loads(line)["kind"] == "notice"

    def test_a_task_is_scheduled_paused_and_dropped(self, machine: HostMachine) -> None:
        machine.init("main")
        done = machine.command(
            "schedule", "main", "water", "the beans", "--every", "3600", "--isolated", "--json"
        )
        task = json.loads(done.stdout)["task"]
        assert (task["context_mode"], task["schedule_value"], task["prompt"]) == (
            "isolated",
            "3600000",
            "water the beans",
        )
        assert (
            json.loads(machine.command("pause", task["id"], "--json").stdout)["task"]["status"]
            == "paused"
        )
        assert task["id"] in machine.command("tasks").stdout
        assert (
            "Would be deleted: " + task["id"]
            in machine.command("drop", task["id"], "--dry-run").stdout
        )
        assert machine.command("drop", task["id"]).returncode == 0
        assert json.loads(machine.command("tasks", "--json").stdout) == {"tasks": []}

    def test_what_cannot_be_done_is_said_in_a_line_with_a_hint(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert main(["host", "init", str(tmp_path / "host"), "main"]) == 0
        capsys.readouterr()
        for words, said in (
            (("say", "nobody", "hello"), "there is no group 'nobody'\n  there are main"),
            (("add", "../main"), "'../main' is not a valid name for a group"),
            (("add", "main"), "group main already has the chat local:main"),
            (("schedule", "main", "x", "--cron", "soon"), "the cron expression 'soon'"),
            (("schedule", "main", "x", "--cron", "0 0 30 2 *"), "never occurs"),
            *(
                (
                    ("schedule", "main", "x", f"--every={text}"),
                    f"--every {text}: it must be 1 to",
                )
                for text in ("nan", "inf", "1e400", "0.2", "-5", "soon")
            ),
            (
                ("schedule", "main", "x", "--once", "2020-01-01T00:00"),
                "'2020-01-01T00:00' is in the past\n  it is 2",
            ),
            (
                ("schedule", "main", "x", "--once", "2099-01-01T00:00 Mars"),
                "is not a time\n  write it as",
            ),
            (("schedule", "main", " ", "--every", "60"), "a task needs a prompt"),
            (("drop", "task-0"), "there is no task 'task-0'"),
            (("say", "main", " "), "a message needs a text"),
            (("set", "main", "--trigger", "["), "the trigger '['"),
            (("set", "nobody", "--name", "x"), "there is no group 'nobody'"),
            (("set", "main"), "host set needs something to change\n  --chat, --name or --trigger"),
            (("remove", "nobody"), "there is no group 'nobody'"),
        ):
            is_not_there = "there is no" in said or "already" in said
            assert main(["host", *words, "--at", str(tmp_path / "host")]) == (
                1 if is_not_there else 2
            ), words
            done = capsys.readouterr()
            assert (done.out, said in done.err) == ("", True), words
            assert done.err.count("\n") <= 2, words

    def test_a_dry_run_of_init_makes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert main(["host", "init", str(tmp_path / "host"), "main", "--dry-run"]) == 0
        assert "groups/main" in capsys.readouterr().out
        assert list(tmp_path.iterdir()) == []

    def test_a_group_is_changed_removed_and_comes_back(self, machine: HostMachine) -> None:
        machine.init("main")
        machine.command(
            "add", "family", "--chat", "telegram:7", "--name", "Us", "--trigger", "@anna"
        )
        changed = machine.command(
            "set", "family", "--trigger", "", "--chat", "telegram:8", "--json"
        )
        assert json.loads(changed.stdout) == {
            "group": "family",
            "chat": "telegram:8",
            "name": "Us",
            "trigger": "",
        }
        assert (
            "family (We) answers messages that match `@bert` in telegram:8"
            in machine.command("set", "family", "--name", "We", "--trigger", "@bert").stdout
        )
        machine.command("schedule", "family", "water", "--every", "3600")
        would = json.loads(machine.command("remove", "family", "--dry-run", "--json").stdout)
        assert (would["dry_run"], len(would["paused"])) == (True, 1)
        assert "family" in [
            state["group"]
            for state in json.loads(machine.command("status", "--json").stdout)["groups"]
        ]
        removed = json.loads(machine.command("remove", "family", "--json").stdout)
        assert (len(removed["paused"]), removed["kept"]) == (
            1,
            ["groups/family", "data/sessions/family"],
        )
        assert Path(machine.group("family").instructions).is_file()
        status = json.loads(machine.command("status", "--json").stdout)
        assert [state["group"] for state in status["groups"]] == ["main"]
        assert [chat["jid"] for chat in status["chats_without_group"]] == [
            "telegram:7",
            "telegram:8",
        ]
        assert machine.command("add", "family", "--chat", "telegram:8").returncode == 0
        assert "paused" in machine.command("tasks").stdout

    def test_chats_without_a_group_are_shown_with_their_names(self, machine: HostMachine) -> None:
        machine.init("main")
        machine.ledger.note_chat("telegram:9", "The street")
        shown = machine.command("status").stdout
        assert "chats without a group\n  just now     telegram:9  The street\n" in shown

    def test_what_will_not_be_answered_is_said_at_once_also_where_a_host_runs(
        self, machine: HostMachine
    ) -> None:
        machine.init("main")
        machine.command("add", "garden", "--trigger", "@anna")
        with host_lock(machine.layout):  # as a running host holds it
            done = machine.command("say", "garden", "hello")
        assert (done.returncode, done.stderr) == (0, "")
        assert (
            "Kept but not answered: garden answers only messages that match `@anna`." in done.stdout
        )
        machine.command("say", "garden", "hello @Anna", "--no-wait")
        prompt = machine.ledger.next_prompt("garden")
        assert prompt is not None

    def test_every_action_has_help_and_json(self, machine: HostMachine) -> None:
        for action in ("add", "set", "remove", "status", "schedule", "tasks", "say"):
            shown = machine.command(action, "--help").stdout
            assert ("--json" in shown, shown.count("show this help")) == (True, 1), action

    def test_a_database_that_is_none_is_named_and_left_alone(self, machine: HostMachine) -> None:
        machine.init("main")
        path = Path(machine.layout.database)
        path.write_bytes(b"no database, but longer than a header: " * 100)
        before = path.read_bytes()
        for words in (("status",), ("init", "main"), ("say", "main", "hello")):
            done = machine.command(*words)
            assert (done.returncode, "Traceback" in done.stderr) == (1, False)
            assert f"{path}: " in done.stderr
        assert path.read_bytes() == before

    def test_a_directory_without_a_host_is_named(self, machine: HostMachine) -> None:
        done = machine.command("status")
        assert done.returncode == 1
        assert f"{machine.layout.root}: there is no host in this directory" in done.stderr
        assert not Path(machine.layout.root).exists()
