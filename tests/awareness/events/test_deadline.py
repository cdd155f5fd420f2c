"""The deadline of a hook: the agent then gets what is ready, and only that counts as reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hooks_scene import ROOT, PlainUser, told
from own_process import plain_environment, run_here
from records import append, assistant, exchange, qwen_exchange, user, write
from tool_call_scene import Project

from session_memory.common.system.deadline import Deadline

HANG = """
import sys
sys.path.insert(0, {root!r})
import time
from session_memory.awareness.events import main
{patch}
main.{hook}()
"""
SESSION_HANGS = """
from session_memory.awareness.activity import _new_entries as new_entries
read = new_entries._read_session
def hang(new, *rest):
    if {word!r} in open(new.session.path).read():
        {hang}
    return read(new, *rest)
new_entries._read_session = hang
"""
RUNTIME_HANGS = """
from session_memory.sessions.runtimes.{folder} import RUNTIME
def hang(*_, **__):
    {hang}
type(RUNTIME).{function} = hang
"""
HANGS = {"waits": "os.read(os.pipe()[0], 1)", "computes": "while True: pass"}


def run(
    user: PlainUser, patch: str, hook: str = "user_prompt_submit", **fields: object
) -> tuple[bytes, float]:
    """Return the output of a hook with a hanging part, and the seconds it takes."""
    program = HANG.format(root=str(ROOT), patch="import os\n" + patch, hook=hook)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(user.event(**fields)).encode(),
        capture_output=True,
        env={"HOME": str(user.root), "CLAUDE_PID": "4711", "CLAUDE_CODE_ENTRYPOINT": "cli"},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout, time.monotonic() - began


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
class TestAPrompt:
    def test_tells_of_all_other_sessions_and_of_the_one_that_hangs_later(
        self, plain: PlainUser, hang: str
    ) -> None:
        plain.session(*exchange("usual question", "hi"))
        for number in range(2):
            plain.session(*exchange(f"stuck {number}", "hi"))
        plain.session(*exchange("last question", "hi"))
        output, seconds = run(plain, SESSION_HANGS.format(word="stuck", hang=hang))
        assert "usual question" in told(output)
        assert "last question" in told(output)
        assert "stuck" not in told(output)
        assert seconds < 20
        assert "it took too long and was left out" in plain.log()[0]
        assert "stuck 1" in told(plain.run())

    @pytest.mark.parametrize("function", ["refresh", "other_sessions"])
    def test_tells_of_all_other_runtimes_than_the_one_that_hangs(
        self, plain: PlainUser, hang: str, function: str
    ) -> None:
        (plain.root / ".codex" / "sessions").mkdir(parents=True)
        (plain.root / ".qwen" / "projects").mkdir(parents=True)
        plain.session(*exchange("usual question", "hi"))
        patch = RUNTIME_HANGS.format(folder="codex", function=function, hang=hang)
        output, _ = run(plain, patch)
        assert "usual question" in told(output)

    def test_ends_where_its_own_state_hangs(self, plain: PlainUser, hang: str) -> None:
        plain.session(*exchange("usual question", "hi"))
        patch = f"""
from session_memory.awareness.activity import session_state
def hang(*_):
    {hang}
session_state.lock = hang
"""
        output, seconds = run(plain, patch)
        assert output == b""
        assert seconds < 20
        assert "not done within 1 s" in plain.log()[0]
        assert "usual question" in told(plain.run())


def test_sessions_of_a_runtime_that_could_not_be_listed_once_are_not_told_of_again(
    plain: PlainUser,
) -> None:
    folder = plain.root / ".qwen" / "projects" / "-srv-agent" / "chats"
    folder.mkdir(parents=True)
    write(plain.project_dir / f"{plain.session_id}.jsonl", *exchange("hi", "hello"))
    write(
        folder / "11111111-0000-4000-8000-000000000000.jsonl",
        *qwen_exchange("asked in Qwen", "yes", cwd="/srv/agent"),
    )
    assert "asked in Qwen" in told(plain.run())
    plain.session(*exchange("usual question", "hi"))
    output, _ = run(
        plain, RUNTIME_HANGS.format(folder="qwen", function="other_sessions", hang=HANGS["waits"])
    )
    assert "usual question" in told(output)
    plain.session(*exchange("another question", "hi"))
    assert "asked in Qwen" not in told(plain.run())


STEP_HANGS = """
from importlib import import_module
module = import_module("session_memory.awareness.activity.{module}")
step, calls = module.{name}, []
def hang(*arguments, **named):
    calls.append(1)
    if len(calls) == {time}:
        os.read(os.pipe()[0], 1)
    return step(*arguments, **named)
module.{name} = hang
"""


@pytest.mark.parametrize(
    ("module", "name", "time"),
    [
        ("_new_entries", "_read_session", 1),  # for the index
        ("_new_entries", "_read_session", 2),
        ("report", "_report_of", 1),
        ("collisions.search", "_read_actions", 1),
        ("collisions.search", "_add_edits", 1),
    ],
)
def test_an_edit_that_could_not_be_looked_at_in_time_is_told_with_the_next_call(
    tmp_path: Path, module: str, name: str, time: int
) -> None:
    project = Project(tmp_path)
    project.edited()
    call = {
        "tool_name": "Edit",
        "tool_input": {"file_path": str(project.directory / "app")},
        "tool_use_id": "t1",
    }
    patch = STEP_HANGS.format(module=module, name=name, time=time)
    output, _ = run(
        project.user, patch, "pre_tool_use", hook_event_name="PreToolUse", cwd=project.cwd, **call
    )
    assert output == b""
    assert "it took too long and was left out" in project.user.log()[0]
    assert project.told() == '! app: edited just now by "discord", before you edited it'


class TestAGitCommand:
    PATCH = """
from session_memory.awareness.activity import _approval as approval
def hang(*_):
    os.read(os.pipe()[0], 1)
approval.ObjectionSearch.of_command = hang
"""

    @pytest.fixture
    def asking(self, tmp_path: Path) -> PlainUser:
        plain = PlainUser(tmp_path)
        plain.config("collisions: ask\n")
        plain.session(user("hello"))
        return plain

    def ask(self, asking: PlainUser, **fields: object) -> dict[str, str]:
        call = {
            "tool_name": "Bash",
            "tool_input": {"command": "git stash"},
            "tool_use_id": "toolu_1",
            **fields,
        }
        output, seconds = run(
            asking, self.PATCH, "pre_tool_use", hook_event_name="PreToolUse", **call
        )
        assert seconds < 20
        return json.loads(output)["hookSpecificOutput"] if output else {}

    def test_that_was_not_judged_in_time_is_held_and_its_user_asked(
        self, asking: PlainUser
    ) -> None:
        answer = self.ask(asking)
        assert answer["permissionDecision"] == "ask"
        assert answer["permissionDecisionReason"].startswith(
            "session-memory: `git stash` could not be checked in time"
        )

    def test_is_made_and_the_agent_told_so_where_nobody_can_be_asked(
        self, asking: PlainUser
    ) -> None:
        answer = self.ask(asking, permission_mode="dontAsk")
        assert "permissionDecision" not in answer
        assert "could not be checked in time" in answer["additionalContext"]


STEPS = {
    "the whole hook": "from session_memory.awareness.events.context import Context\nContext.other_sessions = hang",
    "its judgement": "from session_memory.awareness.activity import _approval as approval\napproval.ObjectionSearch.of_edit = hang",
    "reading another session": "from session_memory.awareness.activity import _new_entries as new_entries\nnew_entries._read_session = hang",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("step", STEPS)
class TestAnEditThatWasNotJudgedInTime:
    PATCH = "def hang(*_, **__):\n    os.read(os.pipe()[0], 1)\n"
    READ = 1  # minutes ago

    @pytest.fixture
    def project(self, tmp_path: Path) -> Project:
        """The own session has read the file, which was written before."""
        project = Project(tmp_path)
        project.user.config("collisions: ask\n")
        self.write(project, "app", minutes_ago=2)
        self.read(project, "app")
        append(project.other, user("and now?", cwd=project.cwd))
        return project

    def write(self, project: Project, name: str, minutes_ago: float) -> None:
        path, then = project.directory / name, time.time() - 60 * minutes_ago
        path.write_text("another\n")
        os.utime(path, (then, then))

    def read(self, project: Project, name: str, tool: str = "Read") -> None:
        then, path = time.time() - 60 * self.READ, str(project.directory / name)
        call = {
            "type": "tool_use",
            "id": f"toolu_{name}",
            "name": tool,
            "input": {"file_path": path},
        }
        result = {"tool_use_id": f"toolu_{name}", "type": "tool_result", "content": "ok"}
        append(
            project.own,
            assistant(call, cwd=project.cwd, at=then),
            user([result], cwd=project.cwd, at=then),
        )

    def edit(
        self, project: Project, step: str, name: str = "app", **fields: object
    ) -> dict[str, str]:
        call = {
            "tool_name": "Edit",
            "tool_input": {"file_path": str(project.directory / name)},
            "tool_use_id": "t1",
        }
        event = {"hook_event_name": "PreToolUse", "cwd": project.cwd, **call, **fields}
        output, _ = run(project.user, self.PATCH + STEPS[step], "pre_tool_use", **event)
        return json.loads(output)["hookSpecificOutput"] if output else {}

    def test_is_made_if_the_file_is_as_the_session_read_it(
        self, project: Project, step: str
    ) -> None:
        assert "permissionDecision" not in self.edit(project, step)

    def test_is_made_if_the_file_is_as_the_session_wrote_it(
        self, project: Project, step: str
    ) -> None:
        self.write(project, "db", minutes_ago=self.READ)
        self.read(project, "db", tool="Edit")
        assert "permissionDecision" not in self.edit(project, step, "db")

    def test_is_asked_about_if_the_file_has_changed_since(
        self, project: Project, step: str
    ) -> None:
        self.write(project, "app", minutes_ago=0.5)
        answer = self.edit(project, step)
        assert answer["permissionDecision"] == "ask"
        assert answer["permissionDecisionReason"].startswith(
            "session-memory: app could not be checked in time"
        )

    def test_is_asked_about_if_the_session_does_not_know_the_file(
        self, project: Project, step: str
    ) -> None:
        self.write(project, "db", minutes_ago=600)
        assert self.edit(project, step, "db")["permissionDecision"] == "ask"

    def test_is_made_if_there_is_no_file(self, project: Project, step: str) -> None:
        assert "permissionDecision" not in self.edit(project, step, "new")

    def test_is_made_and_the_agent_told_so_where_nobody_can_be_asked(
        self, project: Project, step: str
    ) -> None:
        self.write(project, "app", minutes_ago=0.5)
        answer = self.edit(project, step, permission_mode="dontAsk")
        assert "permissionDecision" not in answer
        assert "! app could not be checked in time" in answer["additionalContext"]


class TestMissedDeadlines:
    def miss(self, plain: PlainUser) -> None:
        plain.session(*exchange("stuck", "hi"))
        run(plain, SESSION_HANGS.format(word="stuck", hang=HANGS["waits"]))

    def started(self, plain: PlainUser) -> str:
        output = plain.run(
            "session_start", hook_event_name="SessionStart", source="startup", session_id="other"
        )
        return json.loads(output).get("systemMessage", "") if output else ""

    def doctor(self, plain: PlainUser) -> str:
        done = run_here(["doctor"], plain_environment(plain.root), plain.root)
        return " ".join(done.stdout.split())

    def test_three_in_a_row_are_reported_by_doctor_and_once_at_the_start_of_a_session(
        self, plain: PlainUser
    ) -> None:
        for _ in range(2):
            self.miss(plain)
        assert self.started(plain) == ""
        self.miss(plain)
        assert "hooks took longer than 1 s" in self.started(plain)
        assert self.started(plain) == ""
        assert "took longer than 1 s 3 times in a row" in self.doctor(plain)

    def test_one_that_is_in_time_ends_the_row(self, plain: PlainUser) -> None:
        for _ in range(3):
            self.miss(plain)
        plain.run()
        assert self.started(plain) == ""
        assert not (plain.state_dir / "missed.json").exists()


class TestDeadline:
    def test_several_parts_that_hang_leave_time_for_the_next(self) -> None:
        program = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
import os
from session_memory.common.system.deadline import Deadline
deadline = Deadline()
deadline.start()
found = []
def take(number):
    if number < 4:
        os.read(os.pipe()[0], 1)
    found.append(number)
deadline.attempt_each(range(6), take, str)
print(found, deadline.late, flush=True)
os._exit(0)  # as a hook ends: the timer may still ring
"""
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout == "[4, 5] ['0', '1', '2', '3']\n"

    def test_a_part_that_raises_costs_itself(self) -> None:
        deadline = Deadline()

        def items() -> Iterator[int]:
            yield from (1, 0, 2)

        found: list[float] = []
        deadline.attempt_each(items(), lambda number: found.append(1 / number), str)
        assert found == [1.0, 0.5]
        assert deadline.notes == ["0: ZeroDivisionError: division by zero"]
        assert deadline.attempt("a part", lambda: 5) == 5
        assert not deadline.is_over
