"""A host that serves groups with the real Claude Code: sessions, tasks, and each agent's view."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from clients.claude import activity
from fakes.loopback import Request
from host_scene import HostMachine, Told, about
from own_process import run_here

from session_memory.extras.host._agent import WITHOUT
from session_memory.extras.host._audiences import tools_of_group
from session_memory.extras.host._log import LINE_CHARACTERS
from session_memory.extras.host._values import Task, TaskRun
from session_memory.extras.host.recovery import _running_pids
from session_memory.extras.host.request_files import RequestFiles
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.transcripts.pointers import LOST

TOOL = "mcp__session-memory__"


def call(tool: str, **arguments: object) -> dict[str, object]:
    """A reply that calls one of our tools."""
    return {"tools": [{"name": TOOL + tool, "input": arguments}]}


def results(request: Request) -> str:
    """What the tools that were called last gave back."""
    blocks = [
        b for m in request.messages if isinstance(m.get("content"), list) for b in m["content"]
    ]
    return "\n".join(json.dumps(b["content"]) for b in blocks if b.get("type") == "tool_result")


class TestSessions:
    def test_the_first_message_begins_a_session_with_our_tools_and_the_next_goes_on_with_it(
        self, host: HostMachine, group: str
    ) -> None:
        assert host.ask(group, "plan m-bed-1") == "m-bed-1"
        session_id = host.sessions.get(group)
        assert session_id is not None
        assert Path(host.group(group).transcript(session_id)).is_file()
        assert host.ask(group, "and m-bed-2") == "m-bed-2"
        assert host.sessions.get(group) == session_id
        assert "plan m-bed-1" in about(host, "m-bed-2")[0].text
        names = {tool["name"] for tool in about(host, "m-bed-1")[0].body["tools"]}
        ours = {tool.name for tool in tools_of_group(is_main=False)}
        assert {name for name in names if name.startswith(TOOL)} == {TOOL + name for name in ours}
        assert {"Read", "Edit"} <= names
        assert names.isdisjoint(WITHOUT), "none that forget with it"

    @pytest.mark.slow
    def test_what_its_agent_said_a_moment_ago_in_a_live_session_is_found_by_the_groups_agent(
        self, host: HostMachine, group: str
    ) -> None:
        state = Path(host.layout.root, ".session-memory/state/upkeep.json")
        deadline = time.monotonic() + 60
        while not (state.exists() and json.loads(state.read_text())["runs"][-1]["ended"]):
            assert time.monotonic() < deadline, "the host does no upkeep"
            time.sleep(0.1)
        assert host.ask(group, "the zinnias go beside m-shed-1") == "m-shed-1"
        host.api.replies = [call("search_sessions", query="zinnias"), "Found."]
        assert host.ask(group, "where do they go? m-where-2") == "Found."
        assert "the zinnias go beside m-shed-1" in results(host.api.prompts()[-1])

    def test_a_rule_hides_a_cleared_session_and_its_archive_from_its_group_until_it_is_removed(
        self, host: HostMachine, group: str
    ) -> None:
        place = host.group(group)
        settings = Path(place.memory_home.config_file)
        settings.parent.mkdir(0o700, exist_ok=True)
        settings.touch(0o600)

        def archived(directory: str) -> str:
            return "".join([path.read_text() for path in Path(directory).glob("*.md")])

        def answered(tool: str, token: str, **arguments: object) -> str:
            host.api.replies = [call(tool, **arguments), "Looked."]
            host.ask(group, f"look {token}")
            return results(host.api.prompts()[-1]).rpartition("\n")[2]

        def ingest() -> None:
            words = ["ingest", "--home", str(host.layout.root)]
            done = run_here(words, host.environment, host.root)
            assert done.returncode == 0, done.stdout + done.stderr

        host.ask(group, "plan the cellar m-bed-1")
        ingest()  # so that there is a store
        host.api.replies = [call("clear_session", name="beans"), "Kept."]
        host.ask(group, "begin anew")
        private = f"{place.root}/.private-conversations"
        assert "the cellar" in archived(place.conversations_dir)
        assert "the cellar" in answered("search_sessions", "m-one-1", query="cellar")
        for rules, shown, hidden in (
            ("sessions: {beans: {ignore: true}}\n", private, place.conversations_dir),
            ("", place.conversations_dir, private),
        ):
            settings.write_text(rules)
            ingest()
            assert "the cellar" in archived(shown)
            assert archived(hidden) == ""
            found = answered("search_sessions", f"m-two-{len(rules)}", query="cellar")
            listed = answered("list_sessions", f"m-three-{len(rules)}")
            assert ("plan the cellar" in found, "beans" in listed) == (not rules, not rules)

    @pytest.mark.slow
    def test_a_session_goes_on_after_a_restart(self, host: HostMachine, group: str) -> None:
        host.ask(group, "plan m-bed-1")
        before = host.sessions.get(group)
        assert host.stop() == 0
        host.start()
        assert host.ask(group, "and m-bed-2") == "m-bed-2"
        assert host.sessions.get(group) == before
        assert "plan m-bed-1" in about(host, "m-bed-2")[0].text

    def test_a_cleared_session_is_kept_listed_and_comes_back(
        self, host: HostMachine, group: str
    ) -> None:
        host.ask(group, "plan m-bed-1")
        first = host.sessions.get(group)
        host.api.replies = [call("clear_session", name="beans"), "Kept, m-end-1."]
        host.ask(group, "begin anew")
        (entry,) = host.sessions.get_history(group)
        assert (entry.session_id, entry.name) == (first, "beans")
        host.api.replies = [call("list_sessions"), "Looked."]
        host.ask(group, "what m-was-1")
        assert "m-bed-1" not in about(host, "m-was-1")[0].text
        assert host.sessions.get(group) not in (first, None)
        assert "beans" in results(host.api.prompts()[-1])
        archives = list(Path(host.group(group).conversations_dir).glob("*.md"))
        assert [
            path
            for path in archives
            if "m-bed-1" in path.read_text() and "Kept, m-end-1." in path.read_text()
        ]
        host.api.replies = [
            call("resume_session", id=str(entry.id), save_as="the second"),
            "Switched.",
        ]
        host.ask(group, "back to the beans")
        assert host.ask(group, "and m-now-1") == "m-now-1"
        assert host.sessions.get(group) == first
        assert "plan m-bed-1" in about(host, "m-now-1")[0].text
        assert [entry.name for entry in host.sessions.get_history(group)] == ["the second"]

    @pytest.mark.slow
    def test_what_comes_after_a_clear_is_for_the_next_session(
        self, host: HostMachine, group: str
    ) -> None:
        host.ask(group, "plan m-bed-1")
        host.api.replies = [call("clear_session", name="beans"), {"text": "Kept.", "seconds": 1.5}]
        cleared = host.say(group, "begin anew")
        host.wait(lambda: host.sessions.get_history(group), "cleared session")
        late = host.say(group, "and m-bed-2")
        assert host.reply_to(group, cleared).text == "Kept."
        assert host.reply_to(group, late).text == "m-bed-2"
        assert "m-bed-1" not in about(host, "m-bed-2")[0].text

    def test_a_compaction_is_archived_and_the_session_goes_on(
        self, host: HostMachine, group: str
    ) -> None:
        host.api.replies = [{"text": "Long.", "usage": {"input_tokens": 990_000}}, "Short."]
        host.ask(group, "plan m-bed-1")
        before = host.sessions.get(group)
        assert host.ask(group, "and m-bed-2") == "Short."
        assert [request.kind for request in host.api.requests].count("compaction") == 1
        assert host.sessions.get(group) == before
        (archive,) = Path(host.group(group).conversations_dir).glob("*.md")
        assert "plan m-bed-1" in archive.read_text()

    @pytest.mark.sample(1)
    @pytest.mark.parametrize("is_there", [False, True])
    def test_a_session_that_cannot_be_gone_on_with_is_noted_and_a_new_one_begins(
        self, host: HostMachine, group: str, is_there: bool
    ) -> None:
        host.ask(group, "plan m-bed-1")
        before = host.sessions.get(group)
        assert before is not None
        host.wait(
            lambda: not _running_pids(CLAUDE, host.group(group).config_dir),
            "end of the idle runtime",
        )
        transcript = Path(host.group(group).transcript(before))
        if is_there:
            transcript.write_text("no transcript\n")
        else:
            transcript.unlink()
        assert host.ask(group, "and m-bed-2") == "m-bed-2"
        assert host.sessions.get(group) not in (before, None)
        assert [(entry.session_id, entry.name) for entry in host.sessions.get_history(group)] == [
            (before, LOST)
        ]

    def test_what_comes_while_the_agent_works_is_taken_into_the_turn(
        self, host: HostMachine, group: str
    ) -> None:
        command = {"name": "Bash", "input": {"command": "sleep 4; ls"}}
        host.api.replies = [{"tools": [command]}, {"text": "Both."}]
        first = host.say(group, "plan m-bed-1")
        host.wait(lambda: about(host, "m-bed-1"), "first request")
        second = host.say(group, "and m-bed-2")
        reply = host.reply_to(group, first)
        assert (reply.text, reply.answers) == ("Both.", (first, second))
        assert host.reply_to(group, second) == reply
        assert "m-bed-2" in about(host, "m-bed-2")[0].news

    @pytest.mark.slow
    def test_messages_that_wait_are_answered_together(self, host: HostMachine, group: str) -> None:
        host.api.replies = [{"text": "Planned.", "seconds": 2}]
        host.say(group, "plan m-pot-1")
        host.wait(lambda: about(host, "m-pot-1"), "first request")
        ids = [host.say(group, f"plan m-bed-{number}", sender="Anna & Bert") for number in range(3)]
        replies = [host.reply_to(group, one) for one in ids]
        assert replies[0].answers == tuple(ids)
        assert replies == [replies[0]] * 3
        (request,) = about(host, "m-bed-0")
        assert '<message from="Anna &amp; Bert" at="' in request.news

    def test_a_message_is_no_command_and_opens_no_file(
        self, host: HostMachine, group: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "note.txt"
        file.write_text("the heron stands in the pond")
        for said, token in (("/clear m-bed-1", "m-bed-1"), (f"@{file} m-bed-2", "m-bed-2")):
            host.ask(group, said)
            (request,) = about(host, token)
            assert said in request.news
            assert "the heron stands in the pond" not in request.news


class TestWhatAnAgentIsTold:
    @pytest.mark.slow
    def test_all_but_main_are_told_what_is_global(self, host: HostMachine, group: str) -> None:
        path = Path(host.layout.global_instructions)
        path.write_text("All groups speak of m-rule-1.\n")
        host.ask(group, "who m-are-1")
        host.ask("main", "who m-are-2")
        of_group, of_main = (
            json.dumps(about(host, token)[0].body["system"]) for token in ("m-are-1", "m-are-2")
        )
        assert ("m-rule-1" in of_group, "m-rule-1" in of_main) == (True, False)
        assert f"the agent of the group `{group}`" in json.dumps(about(host, "m-are-1")[0].body)

    def test_settings_hold_the_three_flags_and_hooks_and_stay_the_owners(
        self, host: HostMachine, group: str
    ) -> None:
        path = Path(host.group(group).settings_file)
        settings = json.loads(path.read_text())
        assert settings["env"] == {
            "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
            "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0",
        }
        assert set(settings["hooks"]) == {"SessionStart", "SessionEnd"}
        assert path.stat().st_mode & 0o777 == 0o600
        settings["env"]["MINE"] = "yes"
        path.write_text(json.dumps(settings))
        host.ask(group, "m-bed-1")
        assert json.loads(path.read_text()) == settings


class TestTasks:
    def run_of(self, host: HostMachine, task: str) -> TaskRun:
        (run,) = host.wait(lambda: host.ledger.schedule.runs(task), "run of the task")
        return run

    @pytest.mark.slow
    def test_a_task_in_the_groups_context_goes_on_with_its_session(
        self, host: HostMachine, group: str
    ) -> None:
        host.ask(group, "plan m-bed-1")
        before = host.sessions.get(group)
        run = self.run_of(host, host.due(group, "water m-can-1", "group"))
        assert (run.status, run.result, run.error) == ("success", "m-can-1", None)
        assert "plan m-bed-1" in about(host, "m-can-1")[0].text
        assert host.sessions.get(group) == before
        assert host.ledger.latest_replies([host.ledger.group(group).jid], 1)[0].kind == "task"

    def test_an_isolated_task_has_a_session_of_its_own_of_which_the_group_hears(
        self, host: HostMachine, group: str
    ) -> None:
        host.ask(group, "plan m-bed-1")
        before = host.sessions.get(group)
        host.api.replies = [{"text": "Watered."}]
        task = host.due(group, "water m-can-1", "isolated")
        assert self.run_of(host, task).result == "Watered."
        (request,) = about(host, "m-can-1")
        assert "plan m-bed-1" not in "\n".join(
            m for m in request.text.splitlines() if not m.startswith("- chat (")
        )
        assert [line.partition(" (")[0] for line in activity(request)] == ["- chat"]
        assert host.sessions.get(group) == before
        host.ask(group, "and m-bed-2")
        (request,) = about(host, "m-bed-2")
        assert "plan m-bed-1" in request.text
        assert [line.partition(" (")[0] for line in activity(request)] == [f"- {task}"]
        state = host.ledger.schedule.task(task)
        assert (state.status, state.next_run, state.last_result) == ("completed", None, "Watered.")


class TestWhatAgentsPlan:
    def test_an_agent_schedules_changes_and_cancels_its_own_tasks(
        self, host: HostMachine, group: str
    ) -> None:
        wanted = {
            "prompt": "water m-can-1",
            "schedule_type": "interval",
            "schedule_value": "3600000",
        }
        host.api.replies = [call("schedule_task", **wanted), "Planned."]
        assert host.ask(group, "plan m-bed-1") == "Planned."
        (task,) = host.ledger.schedule.tasks(group)
        assert task.id in results(host.api.prompts()[-1])
        changes = call("update_task", id=task.id, status="paused", prompt="weed m-bed-9")
        host.api.replies = [call("list_tasks"), changes, "Changed."]
        host.ask(group, "change m-bed-2")
        (changed,) = host.ledger.schedule.tasks(group)
        assert changed == task._replace(status="paused", prompt="weed m-bed-9")
        host.api.replies = [call("cancel_task", id=task.id), "Gone."]
        host.ask(group, "cancel m-bed-3")
        assert host.ledger.schedule.tasks(group) == []

    @pytest.mark.slow
    def test_the_agent_of_main_makes_a_group_of_a_chat_that_wrote(
        self, host: HostMachine, group: str
    ) -> None:
        folder = f"{group}-street"
        host.ledger.note_chat(f"local:{folder}", "The street")
        arguments = {"group": folder, "chat": f"local:{folder}", "trigger": "@anna"}
        planned = {
            "prompt": "water m-can-2",
            "schedule_type": "interval",
            "schedule_value": "3600000",
        }
        host.api.replies = [
            call("list_groups"),
            call("register_group", **arguments),
            call("schedule_task", group=folder, **planned),
            "Made.",
        ]
        assert host.ask("main", "make m-bed-1") == "Made."
        assert "The street" in results(host.api.prompts()[-1])
        assert [task.prompt for task in host.ledger.schedule.tasks(folder)] == ["water m-can-2"]
        assert host.ask(folder, "hello @Anna m-bed-2") == "m-bed-2"

    @pytest.mark.slow
    def test_a_group_in_a_sandbox_plans_by_files_and_sees_it_in_its_snapshot(
        self, host: HostMachine, group: str
    ) -> None:
        host.ask(group, "hello m-bed-1")
        own = host.group(group)
        wanted = {"prompt": "water", "schedule_type": "interval", "schedule_value": "3600000"}
        told = RequestFiles(own.ipc_dir).call("schedule_task", wanted)
        (task,) = host.ledger.schedule.tasks(group)
        assert (told.is_error, task.id in told.text) == (False, True)
        snapshot = Path(own.ipc_dir, "current_tasks.json")
        host.wait(lambda: task.id in snapshot.read_text(), "snapshot with the task")


class TestWhatTheHostTells:
    def test_it_tells_each_event_in_a_line_without_what_was_said(
        self, host: HostMachine, group: str
    ) -> None:
        host.say(group, "plan m-bed-1", sender="Anna")
        task = host.due(group, "water m-can-1")
        host.wait(lambda: host.ledger.schedule.runs(task), "run of the task")
        host.wait(lambda: f"{task} done in" in host.output(), "line about the end of the task")
        host.wait(lambda: f"{group}: answered in" in host.output(), "line about the answer")
        lines = [
            line
            for line in host.output().splitlines()
            if f"  {group}: " in line or f"  {group} " in line
        ]
        told = [re.sub(r"[0-9.]+ s$", "N s", line.partition(f"  {group}: ")[2]) for line in lines]
        assert "message from Anna, 12 characters" in told
        assert "agent started, starts a session" in told
        assert "answered in N s" in told
        assert told.index(f"{task} begins") < told.index(f"{task} done in N s")
        assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \S", line) for line in lines)
        log = Path(host.layout.log_file).read_text()
        assert f" {group}: message from Anna, 12 characters\n" in log
        assert "m-bed-1" not in log + host.output()

    def test_a_line_has_a_bound_and_no_secret(self, tmp_path: Path) -> None:
        told = Told(tmp_path)
        told.fault("DB_PASSWORD=Kf9xZq83Lm7Pw2 \x1b[31m" + "x" * 5000 + "\nsecond line")
        (line,) = told.faults
        assert len(line) == LINE_CHARACTERS
        assert "Kf9xZq83Lm7Pw2" not in line
        (written,) = (tmp_path / "host.log").read_text().splitlines()
        assert written.endswith(f"Z {line}")

    @pytest.mark.slow
    def test_a_task_that_is_never_due_again_is_told_and_stops_no_other(
        self, host: HostMachine, group: str
    ) -> None:
        long_ago, jid = "2026-01-01T00:00:00.000Z", host.ledger.group(group).jid
        broken = Task(
            f"task-{group}",
            group,
            jid,
            "water m-can-1",
            "cron",
            "0 0 30 2 *",
            "group",
            next_run=long_ago,
            last_run=None,
            last_result=None,
            status="active",
            created_at=long_ago,
        )
        with host.ledger.transaction():
            host.ledger.add_task(broken)
        whole = host.due(group, "water m-can-2", "isolated")
        host.wait(lambda: host.ledger.schedule.runs(whole), "run of the other task")
        (run,) = host.ledger.schedule.runs(broken.id)
        assert (run.status, "never occurs" in str(run.error)) == ("error", True)
        assert host.ledger.schedule.task(broken.id).status == "completed"
        assert f"{group}: {broken.id} has ended: " in host.output()


class TestIsolation:
    def test_an_agent_reads_and_writes_in_its_own_group_alone(
        self, host: HostMachine, group: str
    ) -> None:
        other = Path(host.group("g1" if group == "g0" else "g0").root)
        (other / "secret.txt").write_text("the secret of another\n")
        own = Path(host.group(group).root)
        (own / "own.txt").write_text("my own text\n")
        (own / "link.txt").symlink_to(other / "secret.txt")
        paths = [
            other / "secret.txt",
            own / "link.txt",
            host.layout.database,
            own / f"../{other.name}/secret.txt",
            own / "own.txt",
        ]
        tools = [{"name": "Read", "input": {"file_path": str(path)}} for path in paths]
        tools += [{"name": "Bash", "input": {"command": f"cat {path}"}} for path in paths[:2]]
        tools += [
            {"name": "Write", "input": {"file_path": str(other / "mine.txt"), "content": "mine"}}
        ]
        host.api.replies = [{"tools": tools}, "Looked."]
        host.ask(group, "look m-bed-1")
        assert "my own text" in results(host.api.prompts()[-1])
        assert "the secret of another" not in json.dumps(host.api.prompts()[-1].body)
        assert not (other / "mine.txt").exists()

    def test_the_agent_of_main_may_look_into_every_group(self, host: HostMachine) -> None:
        path = Path(host.group("g0").root, "for-main.txt")
        path.write_text("the text of g0\n")
        host.api.replies = [
            {"tools": [{"name": "Read", "input": {"file_path": str(path)}}]},
            "Looked.",
        ]
        host.ask("main", "look m-bed-1")
        assert "the text of g0" in results(host.api.prompts()[-1])

    def test_files_and_directories_are_for_this_user_alone(self, host: HostMachine) -> None:
        for directory, names, files in os.walk(host.layout.root):
            inside = Path(directory).relative_to(host.layout.root)
            if inside == Path():  # what its owner, here a test, puts there
                names[:] = [name for name in names if name not in ("skills", "channels")]
                files = [name for name in files if name != "delivered"]
            if inside.parts[:2] == ("data", "sessions") and len(inside.parts) == 3:
                # what the runtime makes in its home is its own affair, behind a closed directory
                names.clear()
            assert Path(directory).stat().st_mode & 0o077 == 0, directory
            ours = [name for name in files if not name.endswith(".txt")]
            assert [name for name in ours if Path(directory, name).lstat().st_mode & 0o077] == [], (
                directory,
                names,
            )


@pytest.mark.cost
@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="needs the kernel's count of processor time"
)
def test_an_idle_host_of_seven_groups_takes_three_thousandths_of_a_processor(
    host: HostMachine,
) -> None:
    host.init(*[f"idle-{number}" for number in range(7)])
    host.stop()
    host.start()
    assert host.child is not None
    threads = Path(f"/proc/{host.child.pid}/task")

    def used() -> float:
        return (
            sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads.iterdir())
            / 1e9
        )

    def woken() -> int:
        """Return how often a thread went to sleep by itself, which other programs do not change."""
        return sum(
            int(re.findall(r"\d+", (thread / "status").read_text())[-2])
            for thread in threads.iterdir()
        )

    time.sleep(5)
    shares, began = [], woken()
    for _ in range(5):  # the least: beside other programs each wake takes longer
        before = used()
        time.sleep(3)
        shares.append((used() - before) / 3)
    assert min(shares) <= 0.003
    assert (woken() - began) / 15 <= 6
