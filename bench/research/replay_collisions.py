"""`python -m bench.research.replay_collisions REPOSITORY...`: how often sessions of public histories collide
or conflict, and how much of what they are told is right. The repositories are only read, and
nothing of them is kept.

Rules, fixed before the first run:

- The prompt hook runs at each typed prompt, as in `bench.research.updates`. Judged against it is what the
  transcripts show: the files that a tool of each session read or wrote, without a failure. Files
  are compared by their path in the clone.
- An opportunity is a prompt, and a file that the session read or edited, that another session of
  the same person edited afterwards and since the prompt before; each edit counts once. It is *told*
  if a line `!` of that prompt names it.
- A told line is right if the session had read or edited that file, and another session had edited
  it before the prompt: `after you` after the session's last use of it, else within ACTIVE_SECONDS
  before. It *mattered* if the session edits the file again later.
- Negative controls: ALONE sessions, each by itself, of which no file may be told; and each told
  line judged for the file that the session used before that one, of which at most CONTROL may be
  right.
- Conflicts are judged by the rules of `bench.merges`; their control are merges in which nothing
  conflicts, at most FALSE of which may have a report that nobody resolved.
- Kill conditions: less than PRECISION right; less than RECALL told; a control that fails; less than
  OPPORTUNITY opportunities a prompt (a merge). What meets one is listed as killed, with its
  figures.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import merges
from ..command import run
from ..scenes import REPOSITORY
from ..scratch import scratch_directory
from .updates.replay import History, Told, histories
from .updates.talks import PATCHED, Talk

PRECISION, RECALL, OPPORTUNITY, CONTROL, FALSE = 0.9, 0.5, 0.01, 0.2, 0.02
ACTIVE_SECONDS = 3600.0
ALONE = 5
_LINE = re.compile(r"^! (?P<file>[^:]+): (?P<rest>.+)$", re.M)
_HEADS = ("branch", "HEAD")
_WRITES, _USES = ("Edit", "MultiEdit", "Write", "NotebookEdit"), ("Read",)


class Use(NamedTuple):
    """A file that a session read or wrote at a time."""

    time: float
    path: str
    is_edit: bool


class Counts(NamedTuple):
    """The counts of histories; `alone` is the first control, `chance` the second."""

    prompts: int = 0
    due: int = 0
    hits: int = 0
    told: int = 0
    right: int = 0
    mattered: int = 0
    chance: int = 0
    alone: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(self, other)))


class Row(NamedTuple):
    """The figures of a feature, and which kill conditions they meet."""

    title: str
    figures: str
    killed: list[str]


def main(*repositories: Path, most: int = merges.MOST) -> int:
    collisions, conflicts = Counts(), merges.Counts()
    for path in repositories:
        with scratch_directory() as root:
            for number, history in enumerate(histories(path, root)):
                collisions = collisions.plus(judged(history, root / f"alone-{number}"))
        conflicts += merges.judged(str(path), most)
    for row in (collision_row(collisions), conflict_row(conflicts)):
        print(
            f"{row.title}: {row.figures}\n  "
            f"{'killed: ' + '; '.join(row.killed) if row.killed else 'kept'}"
        )
    return 0


def judged(history: History, place: Path) -> Counts:
    """Return the counts of one person's history, and of its sessions alone.

    The homes are below `place`."""
    uses = {talk.session: list(uses_of(talk)) for talk in history.talks}
    prompts = {talk.session: [line.time for line, _ in talk.prompts()] for talk in history.talks}
    files_by_update: dict[tuple[str, float], list[str]] = {}
    counts = Counts(prompts=sum(map(len, prompts.values())))
    for update in history.play(REPOSITORY):
        files_by_update[update.session, update.time] = [
            match["file"] for match in _LINE.finditer(update.text)
        ]
        for match in lines_of(update):
            verdicts = verdicts_of(match["file"], "after you" in match["rest"], update, uses)
            counts = counts.plus(
                Counts(told=1, right=verdicts[0], mattered=verdicts[1], chance=verdicts[2])
            )
    for session, times in prompts.items():
        for before, now in zip([0.0, *times], times):
            due = due_at(uses, session, before, now)
            names = files_by_update.get((session, now), [])
            hits = sum(any(is_named(name, path) for name in names) for path in due)
            counts = counts.plus(Counts(due=len(due), hits=hits))
    for number, talk in enumerate(history.talks[:ALONE]):
        alone = history.of([talk], place / str(number))
        counts = counts.plus(
            Counts(alone=sum(1 for update in alone.play(REPOSITORY) for _ in lines_of(update)))
        )
    return counts


def lines_of(update: Told) -> list[re.Match[str]]:
    """Return the lines about files, each with its report."""
    return [match for match in _LINE.finditer(update.text) if not match["file"].startswith(_HEADS)]


def verdicts_of(
    file: str, is_after: bool, update: Told, uses: dict[str, list[Use]]
) -> tuple[bool, bool, bool]:
    """Return if a told line is right, if it mattered, and if it would be right for another file."""
    uses_so_far = [use for use in uses[update.session] if use.time <= update.time]
    paths = [use.path for use in uses_so_far]
    named = next((path for path in reversed(paths) if is_named(file, path)), "")
    before = next((path for path in reversed(paths) if not is_named(file, path)), "")
    later = [use for use in uses[update.session] if use.time > update.time and use.is_edit]
    return (
        is_right(named, is_after, update, uses),
        any(use.path == named for use in later),
        is_right(before, is_after, update, uses),
    )


def is_right(path: str, is_after: bool, update: Told, uses: dict[str, list[Use]]) -> bool:
    """Check if another session edited a file that this one used."""
    last = max(
        (use.time for use in uses[update.session] if use.path == path and use.time <= update.time),
        default=0.0,
    )
    since = last if is_after else update.time - ACTIVE_SECONDS
    edits = [
        use
        for name, uses_of_session in uses.items()
        if name != update.session
        for use in uses_of_session
        if use.is_edit and use.path == path
    ]
    return bool(last) and any(since < use.time <= update.time for use in edits)


def due_at(uses: dict[str, list[Use]], session: str, before: float, now: float) -> set[str]:
    """Return the files that others edited between two prompts, after this session's last use."""
    last = {use.path: use.time for use in uses[session] if use.time <= now}
    edits = [
        use
        for name, uses_of_session in uses.items()
        if name != session
        for use in uses_of_session
        if use.is_edit and before < use.time <= now
    ]
    return {use.path for use in edits if 0 < last.get(use.path, 0.0) < use.time}


def is_named(name: str, path: str) -> bool:
    """Check if a reported name, perhaps shortened at its beginning, belongs to a path."""
    return path.endswith(name.lstrip("…").strip('`"')) and bool(path)


def uses_of(talk: Talk) -> Iterator[Use]:
    """Yield what a session read and wrote, by the results of its tools."""
    calls: dict[str, tuple[str, str]] = {}
    for line in talk.lines:
        message = line.record.get("message")
        blocks: Any = message.get("content") if isinstance(message, dict) else None
        for block in blocks if isinstance(blocks, list) else ():
            given = block.get("input") if isinstance(block, dict) else None
            if isinstance(given, dict):
                calls[block.get("id", "")] = (
                    block.get("name", ""),
                    str(given.get("file_path") or given.get("notebook_path") or ""),
                )
            elif (
                isinstance(block, dict)
                and block.get("tool_use_id") in calls
                and not block.get("is_error")
            ):
                tool, path = calls[block["tool_use_id"]]
                if path and tool in (*_WRITES, *_USES):
                    yield Use(line.time, path, tool in _WRITES)
        for name in PATCHED.findall(
            str(line.payload.get("input") or line.payload.get("arguments") or "").replace(
                "\\n", "\n"
            )
        ):
            yield Use(line.time, os.path.normpath(os.path.join(talk.cwd, name)), True)


def collision_row(counts: Counts) -> Row:
    precision, recall = counts.right / max(1, counts.told), counts.hits / max(1, counts.due)
    chance = counts.chance / max(1, counts.told)
    figures = (
        f"{counts.prompts} prompts, {counts.due} opportunities, {recall:.2f} of them told; "
        f"{counts.told} lines told, "
        f"{precision:.2f} right, {counts.mattered / max(1, counts.told):.2f} mattered; controls: "
        f"{counts.alone} told "
        f"to a session alone, {chance:.2f} right by chance"
    )
    killed = [
        *(["precision"] if counts.told and precision < PRECISION else []),
        *(["recall"] if counts.due and recall < RECALL else []),
        *(["opportunity"] if counts.due < OPPORTUNITY * counts.prompts else []),
        *(["control"] if counts.alone or chance > CONTROL else []),
    ]
    return Row("collisions", figures, killed)


def conflict_row(counts: merges.Counts) -> Row:
    possible = counts.pairs["conflicting with a moment before"]
    recall, wrong = counts.pairs[merges.REPORTED] / max(1, possible), counts.reported[merges.WRONG]
    clean = counts.pairs[merges.EARLY] - possible
    killed = [
        *(["precision"] if merges.precision(counts.files) < PRECISION else []),
        *(["recall"] if possible and recall < RECALL else []),
        *(["opportunity"] if possible < OPPORTUNITY * counts.pairs["merges"] else []),
        *(["control"] if wrong > FALSE * clean else []),
    ]
    figures = (
        f"{counts.pairs['merges']} merges, {possible} opportunities, {recall:.2f} of them told; "
        f"{counts.files.total()} "
        f"files told, {merges.precision(counts.files):.2f} right; control: {wrong} of {clean} "
        f"clean merges"
    )
    return Row("conflicts", figures, killed)


if __name__ == "__main__":
    run(main)
