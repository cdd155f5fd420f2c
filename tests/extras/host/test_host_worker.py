"""A group's worker with a runtime in memory, killed before every single step and restarted."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import share
from host_scene import Told
from share import some

from session_memory.extras.host._agent import Event, PromptTaken, SessionStarted, TurnEnded
from session_memory.extras.host._group_files import prepare_host
from session_memory.extras.host._ledger import Ledger
from session_memory.extras.host._values import Prompt
from session_memory.extras.host._worker import Worker
from session_memory.extras.host.settings import HostSettings
from session_memory.history.archives.writer import open_sessions
from session_memory.sessions.settings.host_layout import Group, Layout

CONFIG = HostSettings(idle_seconds=0.01, attempts=2)


class CrashError(BaseException):
    """The host is dead from here on."""


class Runtime:
    """What outlives the host: transcripts, and what the model was asked. `step` is called before
    everything it does."""

    def __init__(self, *, survives: bool) -> None:
        self.survives = survives
        self.asked: list[str] = []
        self.step: Callable[[], None] = lambda: None

    def start(
        self, group: Group, name: str, resume: str | None, tell: Callable[[Event], None]
    ) -> FakeAgent:
        self.step()
        return FakeAgent(self, group, resume, tell)


class FakeAgent:
    """An agent that answers each prompt at once, and writes its transcript as the real one does."""

    def __init__(
        self, runtime: Runtime, group: Group, resume: str | None, tell: Callable[[Event], None]
    ) -> None:
        self.session_id = resume or str(uuid.uuid4())
        self.heard = 0.0
        self._runtime = runtime
        self._path = Path(group.transcript(self.session_id))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._tell = tell

    async def give(self, prompt: Prompt) -> None:
        is_known = self._path.exists() and prompt.uuid in self._path.read_text()
        assert not is_known, "the runtime would not take a prompt twice, and never answer"
        runtime, text = self._runtime, f"answer to {prompt.text}"
        answer = {
            "type": "assistant",
            "uuid": str(uuid.uuid4()),
            "message": {
                "id": f"m-{prompt.uuid}",
                "role": "assistant",
                "stop_reason": "end_turn",
                "model": "m",
                "content": [{"type": "text", "text": text}],
            },
        }
        work: list[Callable[[], object]] = [
            lambda: self._tell(SessionStarted(self.session_id)),
            lambda: self._write(
                {"type": "user", "uuid": prompt.uuid, "message": {"role": "user", "content": "?"}}
            ),
            lambda: self._tell(PromptTaken(prompt.uuid)),
            lambda: runtime.asked.append(prompt.text),
            lambda: self._write(answer),
            lambda: self._tell(TurnEnded((prompt.uuid,), text, "")),
        ]
        try:
            while work:
                runtime.step()
                work.pop(0)()
        except CrashError:
            if runtime.survives:
                for rest in work:
                    rest()
            raise

    async def stop(self) -> None:
        """There is nothing to end."""

    def _write(self, record: dict[str, object]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


class Scene:
    """A host's directory with one message and a task for main, and lives of its worker."""

    def __init__(self, root: Path, *, survives: bool) -> None:
        self.layout = Layout(root)
        prepare_host(self.layout)
        self.runtime = Runtime(survives=survives)
        self.log = Told(root)
        ledger = Ledger(self.layout.database, lambda: 0.0)  # when that task's time is still to come
        ledger.register("main", "local:main", "main", "", False)
        self.message = ledger.receive("local:main", "plan the garden", sender="1", sender_name="")
        ledger.schedule.add(
            "main", "local:main", "water", "once", "2026-01-01T00:00:00", "isolated"
        )
        ledger.close()
        ledger = Ledger(self.layout.database)
        ledger.schedule.start_due()
        ledger.close()

    def live(self, steps: int | None) -> bool:
        """One life of the worker, which ends before its step number `steps`; whether it came to its own end."""
        ledger = Ledger(self.layout.database)
        sessions = open_sessions(self.layout)
        left = count(-steps) if steps is not None else iter(())

        def step(*_: object) -> bool:
            if next(left, -1) >= 0:
                raise CrashError
            return True

        ledger.connection.exec_trace = sessions._connection.exec_trace = step
        self.runtime.step = step
        group = self.layout.group("main")
        worker = Worker(group, ledger, sessions, CONFIG, self.runtime.start, self.log)  # type: ignore[arg-type]
        try:
            asyncio.run(worker.work())
        except CrashError:
            return False
        finally:
            ledger.connection.exec_trace = sessions._connection.exec_trace = None
            ledger.close()  # what was not committed is gone, as after a kill
            sessions.close()
        return True


@pytest.mark.parametrize("survives", [False, True])
def test_whenever_the_host_dies_everything_is_answered_once(tmp_path: Path, survives: bool) -> None:
    asked_again = 0
    for steps in range(0, 400, some(1, 5)):
        scene = Scene(tmp_path / f"h{steps}", survives=survives)
        is_whole = scene.live(steps)
        assert scene.live(None)
        ledger = Ledger(scene.layout.database)
        replies = ledger.replies()
        assert sorted(reply.kind for reply in replies) == ["reply", "task"], (
            f"killed before step {steps}"
        )
        assert [reply.answers for reply in replies if reply.kind == "reply"] == [(scene.message,)]
        assert {"answer to plan the garden"} < {reply.text for reply in replies}
        assert ledger.open_prompts("main", even_later=True) == []
        (task,) = ledger.schedule.tasks()
        assert [run.status for run in ledger.schedule.runs(task.id)] == ["success"]
        assert set(scene.runtime.asked) == {
            text.removeprefix("answer to ") for text in (r.text for r in replies)
        }
        asked_again += len(scene.runtime.asked) - 2
        assert scene.log.faults == []
        check_the_pointer(scene)
        ledger.close()
        if is_whole:
            break
    assert is_whole, "there are more steps than were tried"
    assert steps > 30
    # some steps may hit no such moment
    assert asked_again == 0 if survives else asked_again > 0 or not share.is_all


def check_the_pointer(scene: Scene) -> None:
    """The group's pointer is the session in which its message was answered, and nothing was lost on the way."""
    sessions = open_sessions(scene.layout)
    session_id = sessions.get("main")
    assert session_id is not None
    assert (
        "answer to plan the garden"
        in Path(scene.layout.group("main").transcript(session_id)).read_text()
    )
    assert sessions.get_history("main") == []
    sessions.close()
