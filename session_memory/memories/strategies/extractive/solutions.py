"""Solutions: a command that failed, the changes between its last failing run and the passing one, and the pass.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ....patterns.failures import is_failure, normalised
from ....store.values import StoredEntry
from ....text.format import one_line, shorten
from ....text.shell_commands import family, is_looking
from .sentences import LONGEST, is_taken_back, is_whole, sentences_of

MOST_TOOL_USES = 80  # a success after more calls has little to do with the failure
MOST_FILES = 6  # a larger change does not say what helped
LEAST_TRIES = 2  # runs with the same error: a slip is not worth keeping
COMMAND_CHARACTERS = 100
ERROR_CHARACTERS = 160
PROBLEM_CHARACTERS = 70  # in the title
REASON_CHARACTERS = 240

_PLACE = re.compile(r"^\S+(?:\(\d+,\d+\)|:\d+(?::\d+)?):?\s+")
_PIPED = re.compile(r"\|\s*(?:tail|head|grep|tee|cat|less|sed|awk)\b|\|\||;\s*(?:echo|true)\b")
_TRIMMINGS = re.compile(r"^\s*(?:cd\s+\S+\s*(?:&&|;)\s*)+|\s+2>&1|\s*[12]?>\s*/dev/null|\s*\|\s*(?:tail|head)\b[^|]*$")
_TAKES_BACK = re.compile(
    r"\bgit (?:checkout\s+(?:--\s|\S*[./])|restore\s+(?!--staged)|reset --hard|revert\b|stash(?!\s+(?:pop|apply|"
    r"list)))"
)
_ONLY_COUNTS = re.compile(
    r"^(?:exit code \d+:?\s*)?(?:FAIL\b.*|\S+ FAIL|[#$].*|\W*[\w-]+\W* (?:error )?task failed|)$|"
    r"^[\W\d]*(?:(?:found|tests?|files?|total)\W+)?\d+ \w+(?:[\W\d]+(?:errors?|warnings?|problems?|failed|passed|"
    r"passing|failing|skipped|and|in|s))*\W*$",
    re.IGNORECASE,
)
_SETS_UP = re.compile(
    r"\b(?:install|add|sync|update|upgrade|generate|migrate|pull|restart|start|up|create|mkdir|chmod|init|clean|login|"
    r"rebase|prune|seed|link|enable|build)\b"
)
_REFUSED = re.compile(
    r"was blocked|not allowed|timed out|no output|operation was cancelled|interrupted|tool call .*errored",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"\b(?:because|since|missing|needs?|should|must|wrong|instead|problem is|issue is|root cause|cause[sd]?|was|were|"
    r"has to|had to|so|no|doesn't|does not|isn't|expects?|lacks?|still|forgot|no longer|renamed|only)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"^(?:now|let me|let's|i'll|i will|i'm going|next|perfect|great|good|excellent|ok|okay|sure|first|then|here|all|"
    r"the tests? (?:now )?pass|you're|you are|done|fixed|looks like|there (?:are|is) (?:still|more))\b",
    re.IGNORECASE,
)
_GIT = re.compile(r"git (?!commit)")
_TEST_FILE = re.compile(r"(?:^|/)(?:tests?|__tests__|spec)/|(?:^|/)test_[^/]*$|[._-](?:test|spec)s?\.\w+$")
_BYPASSES = re.compile(r"--no-verify|--force|--skip\S*|--ignore\S*|--allow\S*|(?:^|\s)-f\b|--hard")


def says_something(error: str) -> bool:
    """Return whether an error line names the error, not only that one occurred."""
    return (
        len(error) > len("Error: 1")
        and not _REFUSED.search(error)
        and not _ONLY_COUNTS.match(error)
        and "│" not in error
    )


class Solution(NamedTuple):
    """A failing run, the edits and other successful steps after the last failure, the run that passed, and the
    assistant's explanation of the change ('' for none)."""

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
    found: list[Solution] = []
    open_runs: dict[str, _OpenRun] = {}
    edited: set[str] = set()
    for entry in entries:
        if entry.role != "tool":
            if entry.role == "user" and entry.text and is_taken_back(entry.text[:LONGEST]):
                found = found[:-1]
            _explain(open_runs.values(), entry)
            continue
        if entry.kind == "edit" and entry.outcome != "error" and entry.text:
            for run in open_runs.values():
                run.edits.setdefault(entry.text, None)
            edited.add(entry.text)
        elif entry.kind == "command" and _TAKES_BACK.search(entry.text):
            found = [one for one in found if not one.edits]
        elif entry.kind == "command" and not is_looking(entry.text):
            found += _of_run(open_runs, entry, edited)
        for name, run in list(open_runs.items()):
            run.age += 1
            if run.age > MOST_TOOL_USES:
                del open_runs[name]
    return list({(family(one.failed.text), normalised(one.failed.error)): one for one in found}.values())


def _of_run(open_runs: dict[str, _OpenRun], entry: StoredEntry, edited: set[str]) -> Iterable[Solution]:
    """Record a run of a command; yield the solutions that it completes."""
    name = family(entry.text)
    known = open_runs.get(name)
    if is_failure(entry):
        tries = known.tries + 1 if known and normalised(known.tool.error) == normalised(entry.error) else 1
        open_runs[name] = _OpenRun(entry, tries, frozenset(edited))
        return
    if entry.outcome != "ok":
        return
    if known and _is_same_run(known.tool.text, entry.text):
        del open_runs[name]
        solution = known.solution(entry)
        if solution:
            yield solution
    for run in open_runs.values():
        if _SETS_UP.search(name):
            run.steps.setdefault(name, None)


def _explain(runs: Iterable[_OpenRun], entry: StoredEntry) -> None:
    if entry.role != "assistant" or not entry.text:
        return
    told = [one for one in sentences_of(entry.text) if is_whole(one) and not _ANNOUNCES.match(one)]
    reason = next((one for one in told if _EXPLAINS.search(one)), "")
    for run in runs:
        run.reason = reason or run.reason


class _OpenRun:
    """A failing run of a command that has not passed yet. `tries` counts runs with the same error, `age` the tool calls
    since."""

    def __init__(self, tool: StoredEntry, tries: int, edited_before: frozenset[str]) -> None:
        self.tool = tool
        self.tries = tries
        self.edits: dict[str, None] = {}
        self.steps: dict[str, None] = {}
        self.reason = ""
        self.age = 0
        self._edited_before = edited_before

    def solution(self, passed: StoredEntry) -> Solution | None:
        """Return the solution; None if it is unclear, or if it was a slip fixed at once."""
        if not says_something(self.tool.error) or len(self.edits) > MOST_FILES or _GIT.match(family(passed.text)):
            return None
        if self.tries < LEAST_TRIES or any(map(_TEST_FILE.search, (*self._edited_before, *self.edits))):
            return None  # a slip; red and green of a test of its own
        steps = () if self.edits else tuple(self.steps)[-2:]
        more = _flags(passed.text) - _flags(self.tool.text)
        if not self.edits and not steps and (not more or any(_BYPASSES.search(flag) for flag in more)):
            return None
        return Solution(self.tool, tuple(self.edits), steps, passed, shorten(self.reason, REASON_CHARACTERS))


def _is_same_run(failed: str, passed: str) -> bool:
    """Return whether a passing run proves that the failed command works: the same command or a broader one. The exit
    code of a pipe proves nothing."""
    if _PIPED.search(passed) and not _PIPED.search(failed):
        return False
    return _words(passed) <= _words(failed)


def _words(command: str) -> set[str]:
    return {word for word in _shown(command, 4096).split() if not word.startswith("-")}


def _flags(command: str) -> set[str]:
    return {word for word in _shown(command, 4096).split() if word.startswith("-")}


def _shown(command: str, limit: int = COMMAND_CHARACTERS) -> str:
    return shorten(one_line(_TRIMMINGS.sub("", command)).replace("`", "'"), limit)
