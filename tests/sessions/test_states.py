"""The state of a session follows from its last turn, its process, and what the runtime notes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agents_scene import noted_process
from clients.terminal import Terminal
from opencode_scene import OpenCodeUser
from records import append, assistant, kimi_exchange, kimi_start, tool_result, user, write

from session_memory.common.system import files
from session_memory.common.system.process_table import Process, ProcessTable
from session_memory.sessions.runtimes._evidence import Processes, ProcessEvidence, SessionPlace
from session_memory.sessions.runtimes.table import all_runtimes, runtime
from session_memory.sessions.state_reader import StateReader
from session_memory.sessions.states import (
    ASKS,
    BACKGROUND,
    ENDED,
    GONE,
    UNKNOWN,
    WAITS,
    WORKING,
    State,
)
from session_memory.sessions.transcripts._last_turn import LastTurn, last_turn
from session_memory.sessions.transcripts.entries import ToolUse
from session_memory.sessions.transcripts.sessions import find_sessions

FIXTURES = Path(__file__).parent / "runtimes" / "fixtures"
BASH = ("Bash", {"command": "make"})
LONG_AGO = 1_000_000_000.0


class Claude:
    """A session of Claude Code: its transcript, and the directory that it works in."""

    def __init__(self, root: Path) -> None:
        self.config_dir = root / ".claude"
        self.project = root / "project"
        self.project.mkdir()
        self.path = self.config_dir / "projects" / "-project" / "a.jsonl"

    def wrote(self, *records: dict[str, Any]) -> None:
        write(self.path, *records)

    def state(self, directory: Path | None = None) -> State:
        claude = runtime("agent-sdk")
        candidate = SessionPlace(str(self.path), "a", (str(self.project),), time.time())
        evidence = claude.evidence(str(self.config_dir), [candidate], ProcessTable.now())
        turn = last_turn(claude, str(self.path))
        at = str(directory or self.project)
        return State.of(claude, turn, evidence[str(self.path)], at, time.time())


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    claude = Claude(tmp_path)
    claude.wrote(user("water the roses"), assistant(BASH, message={"stop_reason": "tool_use"}))
    return claude


@pytest.mark.parametrize(
    ("status", "question", "name"),
    [
        ("busy", "", WORKING),
        ("idle", "", WAITS),
        ("shell", "", BACKGROUND),
        ("waiting", "permission prompt", ASKS),
        ("waiting", "sandbox request", ASKS),
        ("waiting", "input needed", WAITS),
        ("waiting", "dialog open", WAITS),
    ],
)
def test_what_claude_code_notes_is_the_state_and_the_transcript_names_the_call(
    claude: Claude, status: str, question: str, name: str
) -> None:
    with noted_process(claude.config_dir, "a", status, question):
        state = claude.state()
    assert state.name == name
    if name == ASKS:
        assert (state.tool, state.argument) == ("Bash", "make")


def test_a_killed_process_has_ended_although_its_note_stays(claude: Claude) -> None:
    with noted_process(claude.config_dir, "a", "waiting", "permission prompt") as process:
        assert claude.state().name == ASKS
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert list((claude.config_dir / "sessions").iterdir())
        assert claude.state().name == ENDED


def test_a_process_id_that_was_used_again_is_not_the_session_s(claude: Claude) -> None:
    with noted_process(claude.config_dir, "a", "busy", procStart="1"):
        assert claude.state().name == ENDED


def test_a_clock_that_was_set_ends_no_session(claude: Claude) -> None:
    for hours in (-5, 5):
        at = (time.time() + hours * 3600) * 1000
        with noted_process(claude.config_dir, "a", "busy", statusUpdatedAt=at, startedAt=at):
            assert claude.state().name == WORKING


def test_a_process_of_another_container_is_unknown_with_a_reason(claude: Claude) -> None:
    with noted_process(claude.config_dir, "a", "busy", pidDomain="linux:other:pid:[1]"):
        state = claude.state()
    assert (state.name, "container" in state.reason) == (UNKNOWN, True)


def test_of_two_terminals_with_a_session_the_one_that_changed_last_counts(claude: Claude) -> None:
    first = noted_process(claude.config_dir, "a", "idle", statusUpdatedAt=1000)
    with first, noted_process(claude.config_dir, "a", "busy"):
        assert claude.state().name == WORKING


def test_an_open_session_whose_directory_was_removed_says_so(
    claude: Claude, tmp_path: Path
) -> None:
    with noted_process(claude.config_dir, "a", "idle"):
        assert claude.state(tmp_path / "removed").name == GONE
    assert claude.state(tmp_path / "removed").name == ENDED


def test_sub_agents_that_run_after_the_answer_are_in_the_background(claude: Claude) -> None:
    asked = time.time() - 60
    with noted_process(claude.config_dir, "a", "busy", statusUpdatedAt=asked * 1000):
        claude.wrote(user("count"), assistant("I do.", message={"stop_reason": "end_turn"}))
        assert claude.state().name == BACKGROUND
        claude.wrote(user("count"), assistant(BASH), tool_result("1"))
        assert claude.state().name == WORKING


@contextmanager
def running(
    program: Path, directory: Path, script: str = "sleep 600", *words: str
) -> Iterator[int]:
    """A process that is called like a runtime's program, as the system lists it."""
    program.parent.mkdir(parents=True, exist_ok=True)
    if not program.exists():
        program.symlink_to("/bin/bash")
    path = program.parent / "script"
    path.write_text(f"{script}; true")
    process = subprocess.Popen([str(program), str(path), *words], cwd=directory)
    time.sleep(0.2)
    try:
        yield process.pid
    finally:
        for child in ProcessTable.now().below(process.pid):
            os.kill(child.pid, signal.SIGKILL)
        process.kill()
        process.wait()


class Qwen:
    """Sessions of Qwen Code in a project, and its processes there."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.program = root / "bin" / "qwen"
        self.runtime = runtime("qwen")

    def states(
        self, turns: dict[str, LastTurn], modified: dict[str, float], age: float = 0.0
    ) -> list[str]:
        """Return the states as if each process had run for so many more seconds."""
        candidates = [
            SessionPlace(id, id, (str(self.project),), modified.get(id, time.time()))
            for id in turns
        ]
        evidence = self.runtime.evidence("", candidates, ProcessTable.now())
        aged = {id: replace(each, opened_at=each.opened_at - age) for id, each in evidence.items()}
        return [
            State.of(self.runtime, turn, aged[id], str(self.project), time.time()).name
            for id, turn in turns.items()
        ]

    def state(self, turn: LastTurn) -> str:
        return self.states({"a": turn}, {}, age=60.0)[0]


@pytest.fixture
def qwen(tmp_path: Path) -> Qwen:
    return Qwen(tmp_path)


def calling(kind: str, seconds: float, name: str = "tool") -> LastTurn:
    at = time.time() - seconds
    return LastTurn("assistant", (ToolUse(name, "x", kind, "1"),), at, at=at)


def test_without_a_process_in_its_directory_a_session_has_ended(qwen: Qwen, tmp_path: Path) -> None:
    answered = LastTurn("assistant", has_ended=True, at=time.time())
    assert qwen.state(answered) == ENDED
    with running(qwen.program, tmp_path):
        assert qwen.state(answered) == ENDED
    with running(qwen.program, qwen.project):
        assert qwen.state(answered) == WAITS
        assert qwen.state(LastTurn("user", at=time.time())) == WORKING


def test_as_many_sessions_are_open_as_processes_run_in_their_directory_the_latest(
    qwen: Qwen,
) -> None:
    turns = {id: LastTurn("assistant", has_ended=True, at=time.time()) for id in "abc"}
    now = time.time() + 60
    with running(qwen.program, qwen.project), running(qwen.program, qwen.project):
        states = qwen.states(turns, {"a": now - 2, "b": now - 1, "c": now})
        assert states == [ENDED, WAITS, WAITS]
        # a session that wrote nothing since a process began is not its
        assert qwen.states(turns, {"a": LONG_AGO, "b": LONG_AGO, "c": now})[:2] == [ENDED, ENDED]


@pytest.mark.parametrize("words", [("--resume=a",), ("--session", "a"), ("--continue",)])
def test_a_session_that_was_resumed_is_open_before_it_writes_again(
    qwen: Qwen, words: tuple[str, ...]
) -> None:
    turns = {id: LastTurn("assistant", has_ended=True, at=LONG_AGO) for id in "ab"}
    modified = {"a": LONG_AGO, "b": LONG_AGO - 60}
    with running(qwen.program, qwen.project, "sleep 600"):
        assert qwen.states(turns, modified) == [ENDED, ENDED]
    with running(qwen.program, qwen.project, "sleep 600", *words):
        assert qwen.states(turns, modified) == [WAITS, ENDED]


@pytest.mark.parametrize(
    "turn",
    [
        LastTurn("user", at=LONG_AGO),
        LastTurn("assistant", (ToolUse("tool", "x", "command", "1"),), LONG_AGO, at=LONG_AGO),
        LastTurn("assistant", (ToolUse("ask_user", "x", "other", "1"),), LONG_AGO, at=LONG_AGO),
    ],
)
def test_a_turn_that_an_earlier_process_left_open_is_over(qwen: Qwen, turn: LastTurn) -> None:
    with running(qwen.program, qwen.project, "read line < /dev/zero", "--resume=a"):
        assert qwen.state(turn) == WAITS


def test_a_process_that_names_a_session_is_not_another_one_s(qwen: Qwen) -> None:
    turns = {id: LastTurn("assistant", has_ended=True, at=LONG_AGO) for id in "ab"}
    with running(qwen.program, qwen.project):
        modified = {"a": LONG_AGO, "b": time.time()}
        assert qwen.states(turns, modified) == [ENDED, WAITS]
        with running(qwen.program, qwen.project, "sleep 600", "--resume=a"):
            assert qwen.states(turns, modified | {"b": time.time() + 2}) == [WAITS, WAITS]
    # it began another session, as with /clear
    with running(qwen.program, qwen.project, "sleep 600", "--resume=a"):
        assert qwen.states(turns, modified | {"b": time.time() + 2}) == [ENDED, WAITS]


@pytest.mark.parametrize("words", ["--resume latest", "--resume=latest", "-r latest"])
def test_gemini_goes_on_with_its_latest_session(tmp_path: Path, words: str) -> None:
    gemini = Qwen(tmp_path)
    gemini.runtime, gemini.program = runtime("gemini"), tmp_path / "bin" / "gemini"
    answered = LastTurn("assistant", has_ended=True, at=LONG_AGO)
    with running(gemini.program, gemini.project, "sleep 600", *words.split()):
        assert gemini.states({"a": answered}, {"a": LONG_AGO}) == [WAITS]


@pytest.mark.parametrize("hours", [5, -5])
def test_a_clock_that_was_set_ends_no_session_of_a_process_in_a_terminal(
    qwen: Qwen, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    with running(qwen.program, qwen.project):
        pass  # makes the program
    script = qwen.program.parent / "script"
    terminal = Terminal([str(qwen.program), str(script)], qwen.project, {})
    at, real = time.time(), time.time
    turns = {id: LastTurn("assistant", has_ended=True, at=at) for id in "ab"}
    try:
        monkeypatch.setattr(time, "time", lambda: real() + hours * 3600)
        assert qwen.states(turns, {"a": at + 0.1, "b": at - 60}) == [WAITS, ENDED]
    finally:
        monkeypatch.undo()
        terminal.close()


def test_a_session_whose_process_works_in_a_removed_directory_says_so(qwen: Qwen) -> None:
    answered = LastTurn("assistant", has_ended=True, at=time.time())
    with running(qwen.program, qwen.project, "read line < /dev/zero"):
        qwen.project.rmdir()
        assert qwen.state(answered) == GONE


def test_a_command_that_the_shell_has_become_is_in_the_background() -> None:
    shell, program = ("bash", "-c", "make; make"), ("sleep", "50")
    for words, session, runs in ((shell, 1, True), (program, 2, True), (program, 1, False)):
        children = (Process(2, 1, 100.0, words, session=session),)
        evidence = ProcessEvidence(True, children=children)
        assert (evidence.has_command(90.0), evidence.has_command(110.0)) == (runs, False)


def test_after_the_clock_was_set_back_a_command_runs_and_a_server_of_tools_does_not() -> None:
    process = Process(1, 0, 100.0, ("qwen",))
    server, command = (Process(pid, 1, began, ("node",)) for pid, began in ((2, 105.0), (3, 150.0)))
    for children, runs in (((server,), False), ((server, command), True)):
        evidence = ProcessEvidence(True, process=process, children=children)
        assert evidence.runs_since(3700.0, now=200.0) is runs


def test_a_browser_that_a_server_of_tools_has_started_is_no_command_in_the_background() -> None:
    server = Process(2, 1, 95.0, ("node", "/srv/server.js"), session=1)
    browser = Process(3, 2, 100.0, ("chromium", "--headless"), session=3)
    assert not ProcessEvidence(True, children=(server, browser)).has_command(90.0)


def test_a_directory_may_be_called_like_a_removed_one(qwen: Qwen) -> None:
    qwen.project = qwen.project.rename(qwen.project.parent / "shop (deleted)")
    with running(qwen.program, qwen.project):
        assert qwen.state(LastTurn("assistant", has_ended=True, at=time.time())) == WAITS


def test_an_open_command_without_a_process_asks_for_approval_and_with_one_runs(qwen: Qwen) -> None:
    with running(qwen.program, qwen.project, "sleep 2.5; sleep 600"):
        time.sleep(0.3)
        assert qwen.state(calling("command", 0.1)) == WORKING  # it may just start
        assert qwen.state(calling("edit", 0.1)) == WORKING
        assert qwen.state(calling("edit", 30)) == WORKING  # a process is younger than the call
        time.sleep(1.2)
    with running(qwen.program, qwen.project, "read line < /dev/zero"):
        assert qwen.state(calling("command", 30)) == ASKS
        assert qwen.state(calling("edit", 30)) == ASKS
        assert qwen.state(calling("other", 30)) == UNKNOWN
        # the clock was set back since
        assert qwen.state(calling("command", -3600)) == ASKS
        assert qwen.state(calling("other", -3600)) == UNKNOWN
        assert qwen.state(calling("other", 30, "task")) == WORKING


@pytest.mark.parametrize(
    "name", ["ask", "ask_user", "AskUserQuestion", "ask_user_question", "request_user_input"]
)
def test_a_question_to_the_user_waits_as_long_as_it_is_open(qwen: Qwen, name: str) -> None:
    with running(qwen.program, qwen.project, "read line < /dev/zero"):
        assert qwen.state(calling("other", 0.1, name)) == WAITS
        assert qwen.state(calling("other", 30, name)) == WAITS


def test_a_runtime_without_approvals_never_asks(tmp_path: Path) -> None:
    pi = Qwen(tmp_path)
    pi.runtime, pi.program = runtime("pi"), tmp_path / "bin" / "pi"
    with running(pi.program, pi.project, "read line < /dev/zero"):
        assert pi.state(calling("command", 30)) == WORKING


@pytest.mark.parametrize(
    ("settings", "words", "asks"),
    [
        ("", [], False),
        ("tools: {approvalMode: write}", [], True),
        ("tools: {approvalMode: yolo}", [], False),
        ("tools: {approvalMode: write}", ["--yolo"], False),
        ("tools: {approvalMode: write}", ["--approval-mode", "yolo"], False),
        ("tools: {approval: {bash: prompt}}", ["--auto-approve"], True),
        ("tools: [", ["--approval-mode=always-ask"], True),
        ("tools: [", [], False),
    ],
)
def test_omp_asks_if_its_settings_or_its_command_line_want_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, words: list[str], asks: bool
) -> None:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    directory = tmp_path / ".omp" / "agent"
    directory.mkdir(parents=True)
    if settings:
        (directory / "config.yml").write_text(settings)
    assert runtime("omp").asks_for_approval(["omp", *words]) is asks


class OpenCode(OpenCodeUser):
    """A session of OpenCode with a call whose row still changes, and its process."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.project = root / "project"
        self.project.mkdir()
        self.session = self.database.session(self.project)
        self.message = self.database.begin(
            self.session, self.database.user(self.session, "build it please")
        )

    def calls(self, name: str, status: str, seconds_ago: float = 0.0, **given: str) -> str:
        data = {"type": "tool", "tool": name, "callID": "c", "state": {"status": status}}
        data["state"] = {"status": status, "input": given}
        at = time.time() - seconds_ago
        part: str = self.database.part(self.session, self.message, data, at=at)
        return part

    def state(self, seconds: float = 5.0) -> State:
        opencode, now = runtime("opencode"), time.time()
        self.refresh()
        path = str(self.mirror(self.session))
        place = SessionPlace(path, self.session, (str(self.project),), now)
        evidence = opencode.evidence(str(self.data_dir), [place], ProcessTable.now())
        turn = last_turn(opencode, path)
        return State.of(opencode, turn, evidence[path], str(self.project), now + seconds)


@pytest.fixture
def opencode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenCode:
    monkeypatch.setenv("HOME", str(tmp_path))
    return OpenCode(tmp_path)


def test_an_open_call_of_opencode_is_only_in_its_database(opencode: OpenCode) -> None:
    program = opencode.root / "bin" / "opencode"
    with running(program, opencode.project, "read line < /dev/zero"):
        assert opencode.state().name == WORKING
        opencode.calls("bash", "completed", command="ls")
        opencode.calls("bash", "running", command="make")
        asks, runs = opencode.state(), opencode.state(seconds=0.5)
    assert (asks.name, asks.tool, asks.argument) == (ASKS, "bash", "make")
    assert (runs.name, runs.argument) == (WORKING, "make")
    assert opencode.state().name == ENDED


class Reading:
    """A reader of the state of a session of OpenCode, seconds from now."""

    def __init__(self, opencode: OpenCode) -> None:
        self._opencode = opencode
        self._environ = {**os.environ, "HOME": str(opencode.root)}
        self._reader = StateReader(self._environ)
        opencode.refresh()

    def state(self, seconds: float) -> str:
        self._reader.list_processes()
        path = str(self._opencode.mirror(self._opencode.session))
        [session] = find_sessions(None, True, {"HOME": str(self._opencode.root)})
        self._reader.look_at(session)
        pairs = [(session, str(self._opencode.project))]
        return self._reader.states(pairs, time.time() + seconds)[path].name


RUNNING = "sleep 600; read line < /dev/zero"  # a process that ends, and then none


def kill_child(pid: int) -> None:
    [child] = ProcessTable.now().below(pid)
    os.kill(child.pid, signal.SIGKILL)
    time.sleep(0.2)
    assert not list(ProcessTable.now().below(pid))


def test_a_command_that_was_approved_does_not_ask_when_it_has_just_ended(
    opencode: OpenCode,
) -> None:
    reading = Reading(opencode)
    with running(opencode.root / "bin" / "opencode", opencode.project, RUNNING) as pid:
        opencode.calls("bash", "running", command="make")
        assert reading.state(30) == WORKING
        kill_child(pid)
        assert reading.state(30) == WORKING
        assert reading.state(60) == ASKS


@pytest.mark.parametrize("names", [("edit",), ("bash", "edit"), ("bash", "bash")])
def test_a_process_that_may_be_of_another_call_approves_none(
    opencode: OpenCode, names: tuple[str, ...]
) -> None:
    reading = Reading(opencode)
    with running(opencode.root / "bin" / "opencode", opencode.project, RUNNING) as pid:
        for name in names:
            opencode.calls(name, "running", command="make", filePath="/srv/a")
        assert reading.state(30) == WORKING
        kill_child(pid)
        assert reading.state(30) == ASKS


def test_our_own_hook_before_a_call_approves_nothing(opencode: OpenCode) -> None:
    hook = "sh -c 'read line < /dev/zero; true' /srv/app/hooks/pre_tool_use.py"
    with running(opencode.root / "bin" / "opencode", opencode.project, hook):
        opencode.calls("bash", "running", command="make")
        assert Reading(opencode).state(30) == ASKS


def test_commands_of_codex_that_run_no_session_are_none() -> None:
    words = [("codex",), ("codex", "queue", "x"), ("codex", "remote-control"), ("codex", "agents")]
    words.append(("codex", "migrate-rollouts"))
    table = ProcessTable([Process(at, 0, 0.0, each) for at, each in enumerate(words, 1)])
    sessions = Processes(runtime("codex"), table).sessions()
    assert [process.words[1:] for process in sessions] == [(), ("agents",)]


def test_a_process_that_replaced_its_command_line_is_known_by_its_title() -> None:
    words = [("kimi-code", "", ""), ("/usr/bin/node", "/opt/kimi-code-ui/main.mjs")]
    table = ProcessTable([Process(at, 0, 0.0, each) for at, each in enumerate(words, 1)])
    assert [process.pid for process in Processes(runtime("kimi"), table).sessions()] == [1]


def test_an_approval_of_kimi_code_asks_until_it_is_answered(tmp_path: Path) -> None:
    path, id = tmp_path / "wire.jsonl", "approval_1"
    write(path, *kimi_start("/srv/app", at=time.time()), *kimi_exchange("go on", "Yes."))
    request = {"type": "interaction.request", "kind": "approval", "id": id, "toolCallId": "c1"}
    append(path, {**request, "agentId": "main"})
    assert last_turn(runtime("kimi"), str(path)).asks_approval
    append(path, {"type": "interaction.resolved", "agentId": "main", "id": id})
    assert not last_turn(runtime("kimi"), str(path)).asks_approval


def test_all_our_hooks_are_known_by_their_command_lines() -> None:
    folder = Path(__file__).parent.parent.parent / "hooks"
    scripts = {path for path in folder.glob("*.py") if path.stem not in ("entry", "old_python")}
    commands = [("sh", "-c", f'python3 -I -S "{path}" || exit 0') for path in sorted(scripts)]
    table = ProcessTable(
        [
            Process(1, 0, 0.0, ("/usr/bin/qwen",)),
            *[Process(2 + at, 1, 0.0, words) for at, words in enumerate(commands)],
            Process(100, 1, 0.0, ("sh", "-c", "make hooks")),
        ]
    )
    processes = Processes(runtime("qwen"), table)
    [session] = processes.sessions()
    assert [child.pid for child in processes.started_by(session, ())] == [100]


def test_a_question_of_opencode_waits_and_a_call_of_a_killed_process_does_not_ask(
    opencode: OpenCode,
) -> None:
    opencode.calls("bash", "running", seconds_ago=60, command="make")
    with running(opencode.root / "bin" / "opencode", opencode.project, "read line < /dev/zero"):
        assert opencode.state().name == WORKING
        opencode.calls("question", "running")
        assert opencode.state().name == WAITS


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
def test_a_conversation_that_is_over_has_no_open_call(name: str) -> None:
    fitting = next(each for each in all_runtimes() if each.name == name)
    turn = last_turn(fitting, str(FIXTURES / name / "conversation.jsonl"))
    assert turn.role
    assert not (turn.calls and not turn.has_ended)


def codex_line(kind: str, **payload: Any) -> bytes:
    line = {"timestamp": "2026-11-29T18:00:00.000Z", "ordinal": 1, "type": kind, "payload": payload}
    return json.dumps(line).encode() + b"\n"


def test_codex_s_call_is_open_until_its_output_even_if_only_the_model_s_view_has_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rollout.jsonl"
    item = {"type": "UserMessage", "id": "1", "content": [{"type": "text", "text": "hello"}]}
    arguments = json.dumps({"cmd": "rm -rf build"})
    asked = codex_line("event_msg", type="item_completed", item=item)
    call = codex_line(
        "response_item", type="function_call", name="exec_command", arguments=arguments, call_id="c"
    )
    output = codex_line("response_item", type="function_call_output", call_id="c", output="done")
    path.write_bytes(asked + call)
    turn = last_turn(runtime("codex"), str(path))
    assert [(each.kind, each.argument) for each in turn.calls] == [("command", "rm -rf build")]
    path.write_bytes(asked + call + output)
    assert not last_turn(runtime("codex"), str(path)).calls
    path.write_bytes(asked + codex_line("event_msg", type="turn_aborted", reason="interrupted"))
    assert last_turn(runtime("codex"), str(path)).has_ended


def test_a_command_of_codex_that_ends_after_its_turn_begins_no_other(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    prompt = {"type": "UserMessage", "id": "1", "content": [{"type": "text", "text": "hello"}]}
    command = {
        "type": "CommandExecution",
        "id": "c",
        "command": ["/bin/bash", "-lc", "sleep 15"],
        "cwd": "file:///srv/app",
        "status": "completed",
        "exit_code": 0,
    }
    path.write_bytes(
        codex_line("event_msg", type="item_completed", item=prompt)
        + codex_line("event_msg", type="task_complete", turn_id="t", last_agent_message="ok")
        + codex_line("event_msg", type="item_completed", item=command)
    )
    assert last_turn(runtime("codex"), str(path)).has_ended


def test_copilot_s_transcript_says_that_it_asks(tmp_path: Path) -> None:
    def event(kind: str, **data: Any) -> str:
        return json.dumps(
            {
                "type": kind,
                "data": data,
                "id": kind,
                "timestamp": "2026-11-29T18:00:00.000Z",
                "parentId": None,
            }
        )

    request = {"toolCallId": "c", "name": "bash", "arguments": {"command": "make"}}
    lines = [
        event("user.message", content="hello"),
        event("assistant.message", messageId="m", content="", toolRequests=[request]),
        event("permission.requested", requestId="r", permissionRequest={"toolCallId": "c"}),
        event("permission.completed", requestId="r", result={"kind": "approved"}),
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(lines[:3]) + "\n")
    turn = last_turn(runtime("copilot"), str(path))
    assert (turn.asks_approval, turn.calls[0].argument) == (True, "make")
    path.write_text("\n".join(lines) + "\n")
    assert not last_turn(runtime("copilot"), str(path)).asks_approval


def test_ps_lists_the_processes_that_proc_has() -> None:
    from session_memory.common.system import process_table as module

    of_ps, of_proc = module._from_ps(), ProcessTable.now()
    own = os.getpid()
    if of_ps.is_known:
        assert of_ps.processes[own].parent == of_proc.processes[own].parent
        assert abs(of_ps.processes[own].began - of_proc.processes[own].began) < 3
    assert of_proc.directory(own) == os.getcwd()


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
def test_a_turn_that_grows_is_read_as_a_whole_one_is(name: str, tmp_path: Path) -> None:
    fitting = next(each for each in all_runtimes() if each.name == name)
    path = tmp_path / "grown.jsonl"
    path.touch()
    grown = LastTurn()
    content = (FIXTURES / name / "conversation.jsonl").read_bytes()
    for line in content.splitlines(keepends=True):
        for part in (line[:20], line[20:]):
            with path.open("ab") as file:
                file.write(part)
            grown = last_turn(fitting, str(path), grown)
            assert grown == last_turn(fitting, str(path))


def test_a_long_turn_is_not_read_to_its_beginning_after_each_call(
    claude: Claude, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [record for _ in range(100) for record in (assistant(BASH), tool_result("red\n" * 99))]
    claude.wrote(user("count the cups", at=LONG_AGO), *calls)
    agent = runtime("agent-sdk")
    before = last_turn(agent, str(claude.path))
    append(claude.path, tool_result("red"), assistant(BASH))
    read: list[object] = []
    real = agent.records.events

    def counted(record: dict[str, Any], *more: Any) -> Any:
        read.append(record)
        return real(record, *more)

    monkeypatch.setattr(agent.records, "events", counted)
    turn = last_turn(agent, str(claude.path), before)
    assert (turn.asked_at, len(turn.calls)) == (LONG_AGO, 1)
    assert len(read) < 10


def test_an_approval_before_the_last_calls_still_asks_after_the_transcript_grew(
    tmp_path: Path,
) -> None:
    copilot, path = runtime("copilot"), tmp_path / "events.jsonl"

    def happens(kind: str, **data: Any) -> None:
        at = "2026-11-29T18:00:00.000Z"
        append(path, {"type": kind, "id": "1", "timestamp": at, "data": data})

    happens("user.message", content="count the cups")
    happens("permission.requested", requestId="p")
    before = last_turn(copilot, str(path))
    assert before.asks_approval
    happens("assistant.message", content="I do.", messageId="m")
    assert last_turn(copilot, str(path), before).asks_approval
