"""What memories add to a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from session_memory.memory.memory_index import IndexedMemory
from session_memory.memory.prompt_index import content
from session_memory.memory.prompt_index_reader import PROMPT_INDEX

from ...corpus import Texts
from ...scenes import SEED, Scene, install
from ...scratch import scratch_directory
from ...sources import generated
from ...stopwatch import CommandError, Stopwatch

MEMORIES = 5000
MOST = 0.1  # starts of a bare interpreter
LONG = 1500  # characters of a long prompt
SESSIONS = [60 * 1024] * 50
_UNRELATED = "the footer should show the current year"
_ABOUT = "tried redis for the sessions, dropped it because the hosting has no persistent volume"


def added_by_memories(
    memories: Sequence[IndexedMemory], runs: int, *, of_processor: bool
) -> dict[str, float]:
    """Return a prompt's additional time with memories, in bare interpreter starts, by topic.

    `memories` are among the 5,000. `of_processor` measures the processor's time, for a busy
    machine."""
    with scratch_directory() as root, Stopwatch(of_processor=of_processor) as stopwatch:
        app = install(root / "program")
        with_memories, without = [
            Scene(root / name, app, generated(SEED), SESSIONS) for name in ("with", "without")
        ]
        for scene in (with_memories, without):
            scene.settle(stopwatch)
        return _measure(with_memories, without, memories, runs, stopwatch)


def _measure(
    with_memories: Scene,
    without: Scene,
    memories: Sequence[IndexedMemory],
    runs: int,
    stopwatch: Stopwatch,
) -> dict[str, float]:
    texts, random = Texts(SEED), Random(SEED)
    long = texts.cut("prose", LONG, random)
    directory = with_memories.root / ".session-memory" / "memories"
    directory.mkdir(parents=True, exist_ok=True)
    others = _others(MEMORIES - len(memories), texts, random)
    (directory / PROMPT_INDEX).write_bytes(content([*memories, *others], {}))

    def before() -> None:
        for path in with_memories.state_dir.rglob("*.told"):
            path.unlink()

    added = {}
    for title, prompt in (
        ("about nothing remembered", _UNRELATED),
        (f"of {LONG:,} characters", long),
        ("about a memory", _ABOUT),
    ):
        with_memories.event["prompt"] = without.event["prompt"] = prompt
        before()
        if prompt != long and (b"Remembered" in stopwatch.run(with_memories.hook()).stdout) != (
            prompt == _ABOUT
        ):
            raise CommandError(f"the hook tells the wrong thing with {prompt!r}")
        slower, quicker = stopwatch.compare(with_memories.hook(), without.hook(), runs, before)
        _, bare = stopwatch.compare(with_memories.hook(), with_memories.bare(), runs, before)
        added[title] = (slower.seconds - quicker.seconds) / bare.seconds
    with_memories.check_log()
    return added


def _others(number: int, texts: Texts, random: Random) -> list[IndexedMemory]:
    """Memories of 40 to 160 characters of prose."""
    return [
        IndexedMemory(
            "", "", f"m{at}", "fact", texts.cut("prose", random.randrange(40, 160), random)
        )
        for at in range(number)
    ]
