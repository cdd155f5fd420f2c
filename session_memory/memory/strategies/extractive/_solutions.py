"""Solutions: a command that failed, the changes before it passed, and the pass. Pure.

The changes are those between its last failing and its passing run."""

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from ....common.text.format import one_line, shorten
from ....common.text.shell_commands import family, is_looking
from ....history.patterns.failures import Failure, failures, is_failure, normalised
from ....history.store.values import StoredEntry
from .sentences import LONGEST, is_taken_back, is_whole, sentences_of

MOST_FILES = 6  # a larger change does not show what helped
LEAST_TRIES = 2  # runs with the same error; a slip is not worth keeping
COMMAND_CHARACTERS = 100
ERROR_CHARACTERS = 160
PROBLEM_CHARACTERS = 70  # in the title
REASON_CHARACTERS = 240

_PLACE = re.compile(r"^\S+(?:\(\d+,\d+\)|:\d+(?::\d+)?):?\s+")
_PIPED = re.compile(r"\|\s*(?:tail|head|grep|tee|cat|less|sed|awk)\b|\|\||;\s*(?:echo|true)\b")
_TRIMMINGS = re.compile(
    r"^\s*(?:cd\s+\S+\s*(?:&&|;)\s*)+|\s+2>&1|\s*[12]?>\s*/dev/null|\s*\|\s*(?:tail|head)\b[^|]*$"
)
_TAKES_BACK = re.compile(
    r"\bgit (?:checkout\s+(?:--\s|\S*[./])|restore\s+(?!--staged)|reset "
    r"--hard|revert\b|stash(?!\s+(?:pop|apply|"
    r"list)))"
)
_ONLY_COUNTS = re.compile(
    r"^(?:exit code \d+:?\s*)?(?:FAIL\b.*|\S+ FAIL|[#$].*|\W*[\w-]+\W* (?:error )?task failed|)$|"
    r"^[\W\d]*(?:(?:found|tests?|files?|total)\W+)?\d+ "
    r"\w+(?:[\W\d]+(?:errors?|warnings?|problems?|failed|passed|"
    r"passing|failing|skipped|and|in|s))*\W*$",
    re.IGNORECASE,
)
_SETS_UP = re.compile(
    r"\b(?:install|add|sync|update|upgrade|generate|migrate|pull|restart|start|up|create|mkdir|chmod|init|clean|login|"
    r"rebase|prune|seed|link|enable|build)\b"
)
_REFUSED = re.compile(
    r"was blocked|not allowed|timed out|no output|operation was cancelled|interrupted|tool call "
    r".*errored",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"\b(?:because|since|missing|needs?|should|must|wrong|instead|problem is|issue is|root "
    r"cause|cause[sd]?|was|were|"
    r"has to|had to|so|no|doesn't|does not|isn't|expects?|lacks?|still|forgot|no "
    r"longer|renamed|only)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"^(?:now|let me|let's|i'll|i will|i'm "
    r"going|next|perfect|great|good|excellent|ok|okay|sure|first|then|here|all|"
    r"the tests? (?:now )?pass|you're|you are|done|fixed|looks like|there "
    r"(?:are|is) (?:still|more))\b",
    re.IGNORECASE,
)
_GIT = re.compile(r"git (?!commit)")
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec)/|(?:^|/)test_[^/]*$|[._-](?:test|spec)s?\.\w+$"
)
_BYPASSES = re.compile(r"--no-verify|--force|--skip\S*|--ignore\S*|--allow\S*|(?:^|\s)-f\b|--hard")


def says_something(error: str) -> bool:
    """Return whether an error line names the error, not only that one occurred."""
    is_short = len(error) <= len("Error: 1")
    return not (is_short or _REFUSED.search(error) or _ONLY_COUNTS.match(error) or "│" in error)


class Solution(NamedTuple):
    """A failing run, the successful steps after the last failure, and the run that passed.

    The steps are edits and others. It also has the assistant's explanation of the change ('' if
    there is none)."""

    failed: StoredEntry
    edits: tuple[str, ...]
    steps: tuple[str, ...]
    passed: StoredEntry
    reason: str

    def told(self, names: Mapping[str, str]) -> tuple[str, str, str]:
        """Return title, text and quotation; `names` maps paths to their display form."""
        error = shorten(one_line(self.failed.error), ERROR_CHARACTERS)
        problem = shorten(_PLACE.sub("", error), PROBLEM_CHARACTERS)
        failed, passed = _shown(self.failed.text), _shown(self.passed.text)
        files = ", ".join([f"`{names.get(path, path)}`" for path in self.edits])
        helped = [f"editing {files}"] if files else []
        helped += [f"running {', '.join(f'`{step}`' for step in self.steps)}"] if self.steps else []
        helped = helped or [f"running it as `{passed}`"]
        title = f"`{family(self.failed.text)}`: {problem} -> passed after {' and '.join(helped)}"
        lines = [f"Failed: `{failed}`: {error}"]
        if files:
            lines.append(f"Changed: {files}" + (f": {self.reason}" if self.reason else ""))
        elif self.reason:
            lines.append(f"Why: {self.reason}")
        lines += [f"Ran: {', '.join(f'`{step}`' for step in self.steps)}"] if self.steps else []
        lines.append(f"Then passed: `{passed}`")
        return title, "\n".join(lines), "\n".join(part for part in (error, self.reason) if part)


def solutions(entries: Sequence[StoredEntry]) -> list[Solution]:
    """Return the solutions in a conversation in order, without changes that were reverted."""
    around = _Surroundings(entries)
    candidates = [
        solution for failure in failures(entries) if (solution := _solution(failure, around))
    ]
    for entry in entries:
        if entry.role == "user" and entry.text and is_taken_back(entry.text[:LONGEST]):
            undone = [solution for solution in candidates if solution.passed.number < entry.number][
                -1:
            ]
            candidates = [solution for solution in candidates if solution not in undone]
        elif entry.kind == "command" and _TAKES_BACK.search(entry.text):
            candidates = [
                solution
                for solution in candidates
                if solution.passed.number >= entry.number or not solution.edits
            ]
    return list(
        {
            (family(solution.failed.text), normalised(solution.failed.error)): solution
            for solution in candidates
        }.values()
    )


class _Surroundings:
    """The calls and texts of a conversation among which solutions are looked for."""

    def __init__(self, entries: Sequence[StoredEntry]) -> None:
        self._failed: dict[str, list[StoredEntry]] = {}
        self._answers = [entry for entry in entries if entry.role == "assistant"]
        self.tested_at = math.inf  # the number of the first edit of a test
        for entry in entries:
            if is_failure(entry):
                self._failed.setdefault(family(entry.text), []).append(entry)
            if entry.kind == "edit" and entry.outcome != "error" and _TEST_FILE.search(entry.text):
                self.tested_at = min(self.tested_at, entry.number)

    def last_failed(self, passed: StoredEntry) -> StoredEntry:
        """Return the last failing run of a command that failed before it passed."""
        runs = self._failed[family(passed.text)]
        return runs[bisect_left(runs, passed.number, key=_number) - 1]

    def reason(self, failed: StoredEntry, passed: StoredEntry) -> str:
        """Return the last explanation between two runs, or ''."""
        first, last = [
            bisect_left(self._answers, run.number, key=_number) for run in (failed, passed)
        ]
        return next(
            filter(None, (_reason(answer.text) for answer in reversed(self._answers[first:last]))),
            "",
        )


_number = attrgetter("number")


def _solution(failure: Failure, around: _Surroundings) -> Solution | None:
    """Return the solution of a failing command, or None.

    There is none if it is unclear, if it was a slip fixed at once, or if it was the red and green
    of a new test."""
    passed = failure.fixed
    if passed is None or not _is_serious(failure, passed) or around.tested_at < passed.number:
        return None
    failed = around.last_failed(passed)
    is_same = normalised(failed.error) == normalised(failure.tool.error)
    if not is_same or not says_something(failed.error) or not _proves(passed, failed):
        return None
    between = [step for step in failure.steps if step.number > failed.number]
    edits = tuple(
        dict.fromkeys([step.text for step in between if step.kind == "edit" and step.text])
    )
    steps = () if edits else _setting_up(between)
    if len(edits) > MOST_FILES or not (edits or steps or _has_another_flag(passed, failed)):
        return None
    return Solution(
        failed, edits, steps, passed, shorten(around.reason(failed, passed), REASON_CHARACTERS)
    )


def _is_serious(failure: Failure, passed: StoredEntry) -> bool:
    """Check if a command failed that does something, and more than by a slip."""
    is_command = failure.tool.kind == "command" and not is_looking(passed.text)
    return is_command and failure.times >= LEAST_TRIES


def _proves(passed: StoredEntry, failed: StoredEntry) -> bool:
    """Check if a command that passed proves that the failed one works.

    The same command or a broader one does; the exit code of a pipe, and git, prove nothing."""
    is_piped = _PIPED.search(passed.text) and not _PIPED.search(failed.text)
    is_narrower = not _words(passed.text) <= _words(failed.text)
    return not (is_piped or is_narrower or _GIT.match(family(passed.text)))


def _setting_up(steps: Sequence[StoredEntry]) -> tuple[str, ...]:
    """Return the last two commands that set something up."""
    names = dict.fromkeys([family(step.text) for step in steps if step.kind == "command"])
    return tuple([name for name in names if _SETS_UP.search(name)])[-2:]


def _has_another_flag(passed: StoredEntry, failed: StoredEntry) -> bool:
    """Check if the command that passed has more flags, none of which bypasses a check."""
    more = _words(passed.text, flags=True) - _words(failed.text, flags=True)
    return bool(more) and not any(_BYPASSES.search(flag) for flag in more)


def _reason(text: str) -> str:
    """Return the first sentence of an assistant's text that explains a change, or ''."""
    whole_sentences = [
        sentence
        for sentence in sentences_of(text)
        if is_whole(sentence) and not _ANNOUNCES.match(sentence)
    ]
    return next((sentence for sentence in whole_sentences if _EXPLAINS.search(sentence)), "")


def _words(command: str, *, flags: bool = False) -> set[str]:
    return {word for word in _shown(command, 4096).split() if word.startswith("-") == flags}


def _shown(command: str, limit: int = COMMAND_CHARACTERS) -> str:
    return shorten(one_line(_TRIMMINGS.sub("", command)).replace("`", "'"), limit)
