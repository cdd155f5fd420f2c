"""`python -m bench.acknowledgement`: checks that messages of other sessions reach the agent once.

Other sessions send thousands of messages while one session has prompts, with real processes of the
hook. The hook is killed at random moments or abandoned; prompts are cancelled, at once or after
their record; a runtime is killed and resumes; there are prompts in the middle of a turn,
compactions, forks, and a second copy of the hook. Reports are counted in the final transcripts, on
the branch that the agent sees. Only a record that reaches the disk after the next prompt, one in
10,000, may cause a second report. `--runtime NAME` tests only this runtime.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .command import run
from .scratch import scratch_directory
from .told_runtimes import ClaudeSession, PiSession, RuntimeSession

EXCHANGES_A_LATE_RECORD = 10_000
SPEAKERS = 3  # as many as an update has lines: the next prompt drops sessions that had no room
MOST_TWICE = 1 / 1000
FATES = {
    "answered": 40,
    "hook killed": 15,
    "given up on": 6,
    "cancelled at once": 8,
    "cancelled behind its record": 8,
    "runtime killed at once": 7,
    "runtime killed behind its record": 7,
    "typed in the middle of a turn": 5,
    "compacted": 2,
    "forked": 1,
    "hook run twice": 4,
}
LAST_EMPTY = 5  # prompts in a row, because a single one may miss its deadline on a busy machine
LATE_EXCHANGES = 5  # at most, in the update whose record comes late
_LINE = re.compile(
    r"^- \"(s\d)\"(?: in \S+)? \([^)]*?([\d,]+) messages\).*last: \"did (\d+)\"$", re.MULTILINE
)
RUNTIMES: dict[str, type[ClaudeSession] | type[PiSession]] = {
    "claude-code": ClaudeSession,
    "pi": PiSession,
}


def main(messages: int = 10_000, seed: int = 7, runtime: str = "") -> int:
    """Return the exit code: 1 if something was lost, or was reported twice without a reason."""
    is_good = True
    for name in [runtime] if runtime else RUNTIMES:
        began = time.monotonic()
        result = play(name, messages, seed)
        fates = ", ".join(f"{count} {fate}" for fate, count in result.fates.most_common())
        print(
            f"{name}: {sum(result.fates.values())} prompts in "
            f"{time.monotonic() - began:.0f} s: {fates}"
        )
        summary = (
            f"{result.lost} lost, {result.twice} told twice, of which {result.late} had a "
            f"late record"
        )
        print(f"  {result.said} messages: {summary}")
        is_good = is_good and result.is_good
    return 0 if is_good else 1


@dataclass
class Result:
    """The number of messages sent, and their fates.

    `late` were reported twice because the record of the first report came late."""

    fates: Counter[str] = field(default_factory=Counter)
    said: int = 0
    lost: int = 0
    twice: int = 0
    late: int = 0

    @property
    def is_good(self) -> bool:
        return self.lost == 0 and self.twice <= self.late and self.twice <= MOST_TWICE * self.said


def play(runtime: str, messages: int, seed: int) -> Result:
    """Lets other sessions say so many messages to one of a runtime."""
    with scratch_directory() as name:
        return Ledger(name, RUNTIMES[runtime], random.Random(seed)).play(messages)


class Ledger:
    """A user's sessions: speakers, and `listeners`; the last listener gets the prompts."""

    def __init__(
        self, root: Path, kind: type[ClaudeSession] | type[PiSession], chance: random.Random
    ) -> None:
        self.result = Result()
        self._root = root
        self._chance = chance
        self._speakers = [kind(root) for _ in range(SPEAKERS)]
        self._said = [0] * SPEAKERS  # exchanges
        self._said_at_end: list[list[int]] = []  # of each listener
        self._listeners: list[RuntimeSession] = [kind(root)]
        # by a fork, since it begins later
        self._unheard: list[list[set[int]]] = [[set() for _ in range(SPEAKERS)]]
        self._late: Counter[tuple[int, int]] = Counter()
        self._late_record: Callable[[], None] | None = None
        self._late_left = 0
        self._fork_leaf: str | None = ""  # where the last fork began
        self._hook_seconds = 0.1
        self._listeners[0].name("own")
        for number, speaker in enumerate(self._speakers):
            speaker.name(f"s{number}")

    def play(self, messages: int) -> Result:
        """Has the speakers say so many messages."""
        self._late_left = messages // EXCHANGES_A_LATE_RECORD
        fates, weights = list(FATES), list(FATES.values())
        while 2 * sum(self._said) < messages:
            self._speak()
            (fate,) = self._chance.choices(fates, weights)
            if fate in self._listeners[-1].LACKS:
                continue
            self.result.fates[fate] += 1
            getattr(self, "_" + fate.replace(" ", "_"))(self._listeners[-1])
        for listener in self._listeners:
            for number in range(SPEAKERS):  # then no other listener is more recent
                self._exchange(number)
            empty = 0
            while empty < LAST_EMPTY:
                empty = 0 if self._answered(listener, may_be_late=False) else empty + 1
            self._said_at_end.append([*self._said])
        self._count()
        return self.result

    def _speak(self) -> None:
        for _ in range(self._chance.randrange(1, 7)):
            self._exchange(self._chance.randrange(SPEAKERS))

    def _exchange(self, number: int) -> None:
        speaker = self._speakers[number]
        speaker.ask(f"please do number {self._said[number]}")
        speaker.answer(f"did {self._said[number]}")
        self._said[number] += 1

    # What may become of a prompt.

    def _answered(self, session: RuntimeSession, may_be_late: bool = True) -> str:
        text = self._hook(session)
        session.ask("go on")
        late, self._late_record = self._late_record, None
        if late:
            late()
        if self._late_left and may_be_late and 0 < len(spans(text)) <= LATE_EXCHANGES:
            self._late_left -= 1
            self._late_record = lambda: session.show(text)
            self._late.update(spans(text))
        else:
            session.show(text)
        session.answer("yes")
        return text

    def _hook_killed(self, session: RuntimeSession) -> None:
        hook = self._start(session)
        time.sleep(self._chance.uniform(0, 1.3 * self._hook_seconds))
        hook.kill()
        printed, _ = hook.communicate()
        session.ask("go on")
        if hook.returncode:
            session.fail()
        else:  # it was done before
            session.show(session.text_in(printed))
        session.answer("yes")

    def _given_up_on(self, session: RuntimeSession) -> None:
        self._hook(session)
        session.ask("go on")
        session.fail()
        session.answer("yes")

    def _cancelled_at_once(self, session: RuntimeSession) -> None:
        self._hook(session)

    def _cancelled_behind_its_record(self, session: RuntimeSession) -> None:
        before = session.leaf
        text = self._hook(session)
        session.ask("go on")
        session.show(text)
        session.cancel(before)

    def _runtime_killed_at_once(self, session: RuntimeSession) -> None:
        self._hook(session)
        session.resume()

    def _runtime_killed_behind_its_record(self, session: RuntimeSession) -> None:
        text = self._hook(session)
        session.ask("go on")
        session.show(text)
        session.resume()

    def _typed_in_the_middle_of_a_turn(self, session: RuntimeSession) -> None:
        assert isinstance(session, ClaudeSession)
        text = self._hook(session)
        session.ask("go on")
        session.show(text)
        session.use_tool()
        queued = []
        for number in range(self._chance.randrange(1, 4)):
            self._speak()
            queued.append(
                (f"and {number}", self._hook(session, f"and {number}", is_same_prompt=True))
            )
        session.take_up(queued)
        session.answer("yes")

    def _compacted(self, session: RuntimeSession) -> None:
        self._answered(session, may_be_late=False)
        session.compact()

    def _forked(self, session: RuntimeSession) -> None:
        self._answered(session, may_be_late=False)
        self._listeners.append(session.fork())
        self._unheard.append([set() for _ in self._speakers])
        self._fork_leaf = session.leaf

    def _hook_run_twice(self, session: RuntimeSession) -> None:
        hooks = [self._start(session), self._start(session, is_same_prompt=True)]
        texts = [session.text_in(hook.communicate()[0]) for hook in hooks]
        session.ask("go on")
        for text in texts:
            session.show(text)
        session.answer("yes")

    def _hook(
        self, session: RuntimeSession, prompt: str = "go on", *, is_same_prompt: bool = False
    ) -> str:
        """What the hook tells, if it is let be."""
        began = time.monotonic()
        hook = self._start(session, prompt, is_same_prompt=is_same_prompt)
        printed, errors = hook.communicate()
        assert (hook.returncode, errors) == (0, b""), errors
        self._hook_seconds = 0.9 * self._hook_seconds + 0.1 * (time.monotonic() - began)
        return session.text_in(printed)

    def _start(
        self, session: RuntimeSession, prompt: str = "go on", *, is_same_prompt: bool = False
    ) -> subprocess.Popen[bytes]:
        if (
            session is self._listeners[-1] and session.leaf == self._fork_leaf
        ):  # from here on it listens
            known = told_in(session)
            self._unheard[-1] = [
                {n for n in range(said) if (number, n) not in known}
                for number, said in enumerate(self._said)
            ]
        return session.hook(session.SCRIPT, session.event(prompt, is_same_prompt=is_same_prompt))

    def _count(self) -> None:
        self.result.said = 2 * sum(self._said)
        # what a fork copied was told to its parent twice, and counts once
        twice: set[tuple[int, int]] = set()
        for session, unheard, at_end in zip(
            self._listeners, self._unheard, self._said_at_end, strict=True
        ):
            known = told_in(session)
            due = {
                (number, n)
                for number, said in enumerate(at_end)
                for n in set(range(said)) - unheard[number]
            }
            self.result.lost += 2 * len(due - set(known))
            twice.update(span for span, count in known.items() if count > 1)
        self.result.twice = 2 * len(twice)
        self.result.late = 2 * len(twice & set(self._late))


def spans(text: str) -> list[tuple[int, int]]:
    """Return the exchanges that an update reports, as pairs of the speaker's and its own number."""
    message_spans = []
    for name, count, last in _LINE.findall(text):
        message_spans += [
            (int(name[1:]), number)
            for number in range(int(last) - int(count.replace(",", "")) // 2 + 1, int(last) + 1)
        ]
    assert len(_LINE.findall(text)) == len(re.findall(r"^- \"s\d\"", text, re.MULTILINE)), text
    return message_spans


def told_in(session: RuntimeSession) -> Counter[tuple[int, int]]:
    """How often the transcript tells the agent of each exchange."""
    return Counter(span for text in session.told() for span in spans(text))


if __name__ == "__main__":
    run(main)
