"""A hook may run out of time at any moment; another session's edit is then reported later, once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from collision_scene import Pair, collisions
from share import some

from bench.clones import Clone
from session_memory.awareness.activity.call_log import CallLog
from session_memory.common.system.deadline import DeadlineError

APP = "src/app.py"


def is_ready(frame: FrameType | None) -> bool:
    """Check if the text is about to be printed or was; then it may be reported twice."""
    return frame is not None and (
        frame.f_code.co_name in ("__enter__", "__exit__") or is_ready(frame.f_back)
    )


def free_locks() -> None:
    """Frees the locks of logs, as the end of a process does."""
    for one in gc.get_objects():
        if isinstance(one, CallLog) and hasattr(one, "_descriptor"):  # it was made to its end
            one.release()


def interrupted(work: Callable[[], str], calls: int) -> str:
    """Return the result of `work`, or '' if its time is over.

    The time is over after so many calls of functions in activity/."""

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        room, _, module = frame.f_code.co_filename.rpartition("/activity/")
        # it locks as it is made
        if event == "call" and room and module != "state.py" and not is_ready(frame):
            calls -= 1
            if calls == 0:
                raise DeadlineError

    sys.setprofile(count)
    try:
        return work()
    except DeadlineError:
        sys.setprofile(None)
        free_locks()
        return ""
    finally:
        sys.setprofile(None)


# an interrupted generator's
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seed", range(some(10, 3)))
@pytest.mark.parametrize("is_call", [True, False], ids=["before an edit", "with a prompt"])
def test_an_edit_is_told_once_whenever_the_time_is_over(
    tmp_path: Path, is_call: bool, seed: int
) -> None:
    pair, random = Pair(Clone(tmp_path)), Random(seed)
    agent = pair.discord.sub_agent() if seed % 2 else pair.discord
    tell = (lambda: pair.main.before_edit(APP)) if is_call else pair.main.prompt
    pair.main.read(APP)
    for _ in range(15):
        pair.later(1)
        agent.edit(APP, "x\n")
        calls = random.randrange(1, random.choice([60, 400, 1000]))
        texts = [interrupted(tell, calls), tell(), tell(), tell()]
        assert len([text for text in texts if collisions(text)]) == 1, (calls, texts)
        pair.later(1)
        pair.main.edit(APP, "1\n")
        pair.main.prompt()
