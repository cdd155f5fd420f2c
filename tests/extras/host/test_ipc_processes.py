"""Requests to a host from processes that are killed, run at once, or use a server in a sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from select import select
from typing import Any

import pytest
from clients.claude import REPOSITORY
from host_scene import Box, three_groups
from records import exchange
from share import some

from session_memory.app.tools.values import ListedSession
from session_memory.extras.host._ipc import REQUEST_BYTES, answer_requests
from session_memory.extras.host.request_files import RequestFiles
from session_memory.sessions.settings.host_layout import Layout

GENEROUS_SECONDS = 150


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with three_groups(tmp_path / "host") as host:
        yield Box(host, "family")


class CountingBackend:
    """A backend that notes in a file what was done, so that it survives the process that did it."""

    administration = None
    audiences = ("everyone", "home")

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._ledger.touch()

    def clear(self, name: str) -> str:
        with self._ledger.open("a") as file:
            file.write(name + "\n")
        return f"cleared as {name}"

    def sessions(self) -> list[ListedSession]:
        return []

    def done(self) -> list[str]:
        return self._ledger.read_text().splitlines()


def started(work: Callable[[], object]) -> int:
    """The id of a process of its own that does `work`."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return pid


def exit_code(pid: int) -> int:
    """With what such a process ended: 0, or what it killed itself with."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Runs `work` in a process that is gone before its `step`-th system call that changes
    something; whether it was."""
    left = [step]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return call(*args, **kwargs)

        return wrapper

    def run() -> None:
        for name in ("rename", "replace", "unlink", "fsync", "mkdir", "open"):
            setattr(os, name, counted(getattr(os, name)))
        work()

    return exit_code(started(run)) == 9


class Agent:
    """Reads what was answered, and takes it away, as an agent does."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self.read: list[dict[str, Any]] = []

    def look(self) -> None:
        for path in sorted(self._box.responses.iterdir()):
            self.read.append(json.loads(path.read_text()))
            path.unlink()


@pytest.mark.parametrize("tool", ["clear_session", "list_sessions"])
def test_killed_at_any_step_a_request_is_answered_once_and_done_at_most_once(
    box: Box, tmp_path: Path, tool: str
) -> None:
    layout = Layout(box.host.layout.root)
    steps = 0
    outcomes = set()
    while True:
        backend: Any = CountingBackend(tmp_path / f"ledger{steps}")
        agent = Agent(box)
        box.ask(f"r{steps}", tool, **({"name": "Japan"} if tool == "clear_session" else {}))
        was_killed = killed_at(
            steps, lambda backend=backend: answer_requests(layout, "family", backend)
        )
        agent.look()
        assert (
            exit_code(started(lambda backend=backend: answer_requests(layout, "family", backend)))
            == 0
        )
        agent.look()
        assert [one["id"] for one in agent.read] == [f"r{steps}"]
        done = len(backend.done())
        text = agent.read[0]["text"].partition(" in ")[0]
        outcomes.add((done, text) if tool == "clear_session" else text)
        if not was_killed:
            break
        steps += 1 if tool == "clear_session" else some(1, 4)
    assert steps > 10
    if tool == "clear_session":
        assert outcomes == {
            (1, "cleared as Japan"),
            (0, "The host was interrupted"),
            (1, "The host was interrupted"),
        }
    else:
        assert outcomes == {"There are no sessions yet."}
    taken = box.path.parent / ".taken" / "family"
    assert list(taken.iterdir()) == []


def test_killed_at_any_step_a_task_that_was_asked_for_is_there_once_and_a_change_is_made(
    box: Box,
) -> None:
    layout = Layout(box.host.layout.root)
    steps = 0
    while True:
        agent, prompt, schedule = Agent(box), f"water {steps}", box.host.ledger.schedule
        for tool in ("schedule_task", "update_task"):
            if tool == "schedule_task":
                wanted = {
                    "prompt": prompt,
                    "schedule_type": "interval",
                    "schedule_value": "3600000",
                }
            else:
                (task,) = [one for one in schedule.tasks("family") if one.prompt == prompt]
                wanted = {"id": task.id, "status": "paused"}
            box.ask(f"{tool}-{steps}", tool, **wanted)
            backend = box.host.backend("family")
            was_killed = killed_at(
                steps, lambda backend=backend: answer_requests(layout, "family", backend)
            )
            agent.look()
            assert (
                exit_code(
                    started(lambda backend=backend: answer_requests(layout, "family", backend))
                )
                == 0
            )
            agent.look()
        assert [one["id"] for one in agent.read] == [
            f"schedule_task-{steps}",
            f"update_task-{steps}",
        ]
        assert [one["text"][:5] for one in agent.read] == ["Done:", "Done:"]
        assert [one.status for one in schedule.tasks("family") if one.prompt == prompt] == [
            "paused"
        ]
        if not was_killed:
            break
        steps += some(1, 4)
    assert steps > 5


def test_several_hosts_at_once_do_each_request_once(box: Box, tmp_path: Path) -> None:
    backend: Any = CountingBackend(tmp_path / "ledger")
    for number in range(40):
        box.ask(f"r{number}", "clear_session", name=f"n{number}")

    def work() -> None:
        while list(box.tasks.iterdir()):
            answer_requests(box.host.layout, "family", backend)

    children = [started(work) for _ in range(3)]
    assert [exit_code(pid) for pid in children] == [0, 0, 0]
    assert sorted(backend.done()) == sorted(f"n{number}" for number in range(40))
    assert len(box.answered()) == 40


class TestForwarding:
    def test_a_server_in_a_sandbox_gets_its_answers_from_the_host(self, box: Box) -> None:
        box.host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
        server = subprocess.Popen(
            [sys.executable, "-I", "-S", REPOSITORY / "scripts/mcp_server.py", "--ipc", box.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.defpath, "HOME": "/nonexistent"},
        )
        assert server.stdin is not None
        assert server.stdout is not None
        answers: list[str] = []
        deadline = time.monotonic() + GENEROUS_SECONDS
        for name, arguments in [("clear_session", {"name": "Japan"}), ("list_sessions", {})]:
            params = {"name": name, "arguments": arguments}
            server.stdin.write(
                json.dumps({"id": name, "method": "tools/call", "params": params}).encode() + b"\n"
            )
            server.stdin.flush()
            while not select([server.stdout], [], [], 0.01)[0]:
                assert time.monotonic() < deadline, "the server got no answers"
                box.answer()
            answers.append(json.loads(server.stdout.readline())["result"]["content"][0]["text"])
        server.stdin.close()
        assert server.wait(GENEROUS_SECONDS) == 0
        server.stdout.close()
        assert answers[0].startswith("Done: this conversation is kept as 'Japan' (id 1)")
        assert '- "Japan" (id 1)' in answers[1]
        assert box.answered() == []

    def test_without_a_host_the_request_is_taken_back(self, box: Box) -> None:
        told = RequestFiles(str(box.path), wait_seconds=0.01).call("list_sessions", {})
        assert (told.is_error, told.text) == (
            True,
            "The host does not answer. Tell the user if this continues",
        )
        assert list(box.tasks.iterdir()) == []

    def test_what_is_too_long_for_a_request_is_not_sent(self, box: Box) -> None:
        told = RequestFiles(str(box.path)).call("search_sessions", {"query": "x" * REQUEST_BYTES})
        assert told.text.startswith("search_sessions: the arguments are too long")
        assert list(box.tasks.iterdir()) == []

    def test_several_calls_at_once_get_their_own_answers(self, box: Box) -> None:
        told: dict[str, str] = {}

        def ask(name: str) -> None:
            told[name] = (
                RequestFiles(str(box.path), GENEROUS_SECONDS)
                .call("read_session", {"name": name})
                .text
            )

        threads = [threading.Thread(target=ask, args=(f"n{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            box.answer()
        assert all(f"no session is called '{name}'" in text for name, text in told.items())
        assert len(told) == 8
