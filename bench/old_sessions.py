"""`python -m bench.old_sessions`: prompts in one project with thousands of sessions.

The sessions were written over 90 days, and 50 of them lately. A prompt must not take longer because
there are many old ones. Times are processor times. The last row is the 99th percentile of a hook
while 20 sessions prompt at once, again and again.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from pathlib import Path
from random import Random

from .command import run
from .report import Row, as_table
from .scenes import KILOBYTE, SEED, News, Scene, install
from .scratch import scratch_directory
from .sources import Source, generated
from .stopwatch import Command, Stopwatch, Typical

DAYS = 90
NEWEST_DAYS = 2  # the last change of the newest old session
RECENT = 50
WITH_NEWS = 5
RECENT_BYTES = 60 * KILOBYTE
OLD_BYTES = 2 * KILOBYTE
AT_ONCE, ROUNDS = 20, 10
PERCENTILE = 0.99
# of a quiet prompt, in multiples of a bare start; of one with news, of the same with RECENT
QUIET_LIMITS = {RECENT: 1.0, 1_000: 1.2, 5_000: 1.4, 20_000: 1.6}
NEWS_LIMIT = 1.4
AT_ONCE_SECONDS = 0.035


class OldProject(Scene):
    """A scene with RECENT sessions and many `old` ones; WITH_NEWS may get news."""

    def __init__(self, root: Path, app: Path, source: Source, old: int) -> None:
        super().__init__(root, app, source, [RECENT_BYTES] * RECENT)
        random, day = Random(SEED), 86_400
        head = self.sessions[0].read_bytes()[:OLD_BYTES]
        content = head[: head.rindex(b"\n") + 1] if b"\n" in head else b""
        for number in range(old):
            name = uuid.UUID(int=random.getrandbits(128), version=4)
            path = self.own_path.with_name(f"{name}.jsonl")
            path.write_bytes(content)
            written = self.ended - day * (NEWEST_DAYS + number / old * (DAYS - NEWEST_DAYS))
            os.utime(path, (written, written))
        os.utime(self.own_path.parent, (self.ended, self.ended))
        self.sessions = self.sessions[:WITH_NEWS]


def main(
    sessions: list[int] | None = None,
    runs: int = 15,
    app: Path | None = None,
    check: bool = False,
) -> int:
    """Return the exit code: 1 if `check` and a limit is exceeded.

    `sessions` are the numbers of sessions, `app` an installed program to measure instead."""
    rows = []
    with scratch_directory() as scratch, Stopwatch(of_processor=True) as stopwatch:
        program = app or install(scratch / "program")
        with_news: Typical | None = None
        for count in sorted({RECENT, *(sessions or QUIET_LIMITS)}):
            scene = OldProject(scratch / str(count), program, generated(SEED), count - RECENT)
            news = News(scene, stopwatch)
            rows.append(_quiet(scene, count, stopwatch, runs))
            measured, _ = stopwatch.compare(scene.hook(), scene.bare(), runs, news.bring)
            with_news = with_news or measured
            title = f"{count:,} sessions, {WITH_NEWS} with news"
            rows.append(
                Row(title, measured.seconds, with_news.seconds, f"of {RECENT} sessions", NEWS_LIMIT)
            )
        rows.append(_at_once(scene, count))
    print(as_table(rows, runs, "processor times"))
    return 1 if check and any(row.is_over for row in rows) else 0


def _quiet(scene: Scene, count: int, stopwatch: Stopwatch, runs: int) -> Row:
    measured, bare = stopwatch.compare(scene.hook(), scene.bare(), runs)
    limit = QUIET_LIMITS.get(count)
    return Row(
        f"{count:,} sessions, nothing new", measured.seconds, bare.seconds, "bare start", limit
    )


def _at_once(scene: Scene, count: int) -> Row:
    """Let AT_ONCE sessions prompt at once, each with its own state."""
    times: list[float] = []

    def prompt_again(number: int) -> None:
        hook = scene.hook()
        event = {**json.loads(hook.stdin), "session_id": str(uuid.UUID(int=number, version=4))}
        for _ in range(ROUNDS):
            times.append(_processor_seconds(hook._replace(stdin=json.dumps(event).encode())))

    threads = [threading.Thread(target=prompt_again, args=[number]) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    slowest = sorted(times)[int(len(times) * PERCENTILE)]
    title = f"{AT_ONCE} of {count:,} sessions prompt at once: 99th percentile"
    return Row(title, slowest, AT_ONCE_SECONDS, "limit", 1.0)


def _processor_seconds(command: Command) -> float:
    """Run a command, and return the processor time of this process alone."""
    read, write = os.pipe()
    os.write(write, command.stdin)
    os.close(write)
    actions = [
        (os.POSIX_SPAWN_DUP2, read, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]
    program = command.arguments[0]
    child = os.posix_spawn(program, command.arguments, command.environment, file_actions=actions)
    os.close(read)
    _, status, used = os.wait4(child, 0)
    assert not status, command.arguments
    return float(used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    run(main)
