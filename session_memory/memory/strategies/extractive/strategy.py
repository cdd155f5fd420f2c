"""The strategy without a model.

It makes a line of the log for each conversation, and memories of solutions of recurring errors."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....common.text.format import counted, one_line, shorten
from ....common.text.shell_commands import LOOKING, commit_message, family
from ....history.filtering import is_command, relative_path
from ....history.patterns.failures import failures, is_failure
from ....history.store.values import Conversation, StoredEntry
from ....sessions.transcripts.reader import is_plan
from ....sessions.transcripts.reader import is_request as names_something
from ....sessions.transcripts.reader import title_of as title_of_request
from ...format import EPISODE
from ...strategy import Memory, MemoryResult, ModelBudget, TextStrategy
from ._solutions import says_something, solutions
from .sentences import excerpt, has_words, looks_like_code, own_words, sentences_of

MOST_SOLUTIONS = 12  # of a conversation; the last ones
NOTHING = "no text"
TITLE_CHARACTERS = 80
REQUEST_CHARACTERS = 160
END_CHARACTERS = 240
ERROR_CHARACTERS = 120
COMMIT_CHARACTERS = 100
SUBSTANTIAL_CHARACTERS = 80
TELLING_CHARACTERS = 600  # of answers without any action, or of requests
TELLING_REQUESTS = 3
MOST_FILES = 4
MOST_CHECKS = 2
LAST_ANSWERS = 2  # the last answer often only agrees
LAST_TOOL_USES = 30
FEW_COMMITS = 2  # with so few, the last commit names the topic

_CHECKS = re.compile(
    r"\b(?:\w*tests?|vitest|jest|rspec|\w*check|lint\w*|build|tsc|mypy|ruff|clippy)\b"
)
_PUSHES = re.compile(r"\bgit push\b")
_CLOSED = re.compile(r"[.!?…。！？]$")
_READS = re.compile(r"(?:read|look at|see|check out|open|go through|have a look)\b", re.IGNORECASE)


class ExtractiveStrategy(TextStrategy):
    """The `Strategy` without a model: free, offline.

    It leaves a person's decisions and preferences to `summary` and `remember`: of 20 such items
    that a reader marked, rules kept none (bench/research/extraction/README.md)."""

    id = "extractive"

    def __init__(self, values: Mapping[str, Any], budget: ModelBudget) -> None:
        """Accept the arguments of every strategy.

        This one has no settings and spends nothing."""

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        """Return an episode, if something was done or said, and solutions."""
        requests, names = _requests(entries), _shortest_names(entries, conversation.cwd)
        project = conversation.cwd.rstrip("/").rpartition("/")[2]
        memories = []
        for solution in solutions(entries)[-MOST_SOLUTIONS:]:
            title, text, quote = solution.told(names)
            at = solution.passed.timestamp
            memories.append(
                Memory("solution", title, text, project, quote, (), solution.failed.number, at)
            )
        if memories or is_worth_telling(entries):
            edited = [names[path] for path, _ in _edited_files(entries).most_common()]
            title = _title_of(conversation.title, requests, _commits(entries), edited)
            memories.insert(
                0, Memory(EPISODE, title, _episode_text(entries, requests, names), project)
            )
        return MemoryResult(tuple(memories), "" if memories else NOTHING)


def log_line(conversation: Conversation, entries: Sequence[StoredEntry]) -> str:
    """Return the line of the log for a conversation; '' if nothing was said or done in it."""
    names = _shortest_names(entries, conversation.cwd)
    return _episode_text(entries, _requests(entries), names) if entries else ""


def _requests(entries: Iterable[StoredEntry]) -> list[str]:
    said = [entry.text for entry in entries if entry.role == "user" and entry.text]
    return [text for text in said if _asks(text)] or said


def is_worth_telling(entries: Sequence[StoredEntry]) -> bool:
    """Return whether the session did something or said something of substance."""
    if _edited_files(entries) or _commits(entries) or any(map(_failed, entries)):
        return True
    requests = {
        entry.text for entry in entries if entry.role == "user" and names_something(entry.text)
    }
    said = sum(len(entry.text) for entry in entries if entry.role == "assistant")
    return len(requests) >= TELLING_REQUESTS or (bool(requests) and said >= TELLING_CHARACTERS)


def _asks(text: str) -> bool:
    """Return whether a user's text asks for something.

    A greeting, a mere yes or a runtime command does not."""
    return not is_command(text) and names_something(text) and (has_words(text) or "://" in text)


def _title_of(
    given: str, requests: Sequence[str], made: Sequence[str], names: Iterable[str]
) -> str:
    """Choose a conversation's title.

    It is the session's title unless that repeats a request; the heading of its plan; the last of
    few commits; the first request, verbatim; or the edited files. `made` are commits, `names`
    files."""
    given = one_line(given)
    abouts = [one_line(title_of_request(text)) for text in requests]
    if has_words(given) and not any(about.startswith(given.rstrip("…")) for about in abouts):
        return shorten(given, TITLE_CHARACTERS)
    if requests and is_plan(requests[0]):
        return _shown(title_of_request(requests[0]).split("\n")[0])
    if 0 < len(made) <= FEW_COMMITS:
        return _shown(made[-1])
    edited = ", ".join(list(dict.fromkeys([name.rpartition("/")[2] for name in names]))[:3])
    sentences = [_telling_sentence(text) for text in requests]
    first = sentences[0] if sentences else ""
    is_vague = abouts != [] and names_something(abouts[0]) and not has_words(abouts[0])
    named = ": ".join(part for part in (abouts[0], edited) if part) if is_vague else ""
    others = [sentence for sentence in sentences if sentence]
    candidates = (first, *made[:1], named, edited, *others, *abouts)
    return _shown(next(filter(None, candidates), given or "Conversation"))


def _telling_sentence(text: str) -> str:
    """Return the first sentence of a request that names its topic, or ''.

    A sentence that only asks to read something is used only if there is no other."""
    sentences = [
        sentence
        for sentence in sentences_of(_own_words(text)[:2000])
        if has_words(sentence) and not looks_like_code(sentence)
    ]
    return next(
        (sentence for sentence in sentences if not _READS.match(sentence)),
        next(iter(sentences), ""),
    )


def _commits(entries: Iterable[StoredEntry]) -> list[str]:
    """Return the subject lines of git commits."""
    messages = [
        commit_message(entry.text)
        for entry in entries
        if entry.kind == "command" and entry.outcome == "ok"
    ]
    return list(
        dict.fromkeys(
            shorten(one_line(message), COMMIT_CHARACTERS) for message in messages if message
        )
    )


def _shortest_names(tools: Iterable[StoredEntry], cwd: str) -> dict[str, str]:
    """Map each path to its display form.

    It is relative to the working directory or, if all are below another one, to that."""
    paths = {
        tool.text
        for tool in tools
        if tool.role == "tool" and tool.kind in ("edit", "read") and tool.text
    }
    names = {path: relative_path(path, cwd) for path in paths}
    absolute = [name for name in names.values() if name.startswith("/")]
    common = (
        os.path.commonpath([os.path.dirname(name) for name in absolute])
        if len(absolute) > 1
        else ""
    )
    if common.count("/") > 2:
        names = {path: relative_path(name, common) for path, name in names.items()}
    return {path: shorten(one_line(name), 100) for path, name in names.items()}


def _episode_text(
    entries: Sequence[StoredEntry], requests: Sequence[str], names: Mapping[str, str]
) -> str:
    """Return a conversation in one line.

    It has the requests, the work, its outcome by git and by its checks, and how it ended."""
    tools = [entry for entry in entries if entry.role == "tool"]
    parts = (
        _asked(requests),
        _files(tools, names),
        _committed(tools),
        *_checks(tools),
        _end(entries),
    )
    return " ".join([part if _CLOSED.search(part) else f"{part}." for part in parts if part])


def _edited_files(tools: Iterable[StoredEntry]) -> Counter[str]:
    """Return the edited paths and how often each was edited."""
    return Counter(
        tool.text for tool in tools if tool.kind == "edit" and tool.outcome != "error" and tool.text
    )


def _failed(entry: StoredEntry) -> bool:
    """Return whether an entry is a failed command that was meant to change something."""
    return entry.kind == "command" and is_failure(entry) and family(entry.text) not in ("", LOOKING)


def _asked(requests: Sequence[str]) -> str:
    requests_told = list(
        dict.fromkeys(
            [
                excerpt(text, REQUEST_CHARACTERS)
                for request in requests
                if (text := _own_words(request))
            ]
        )
    )
    more = (
        f" (and {counted(len(requests_told) - 1, 'more request')})"
        if len(requests_told) > 1
        else ""
    )
    return f"Asked: {requests_told[0]}{more}" if requests_told else ""


def _own_words(text: str) -> str:
    """Return a request without pasted text; its title if nothing else is left."""
    typed = own_words(text)
    return title_of_request(typed if has_words(typed) else text)


def _files(tools: Sequence[StoredEntry], names: Mapping[str, str]) -> str:
    edits = _edited_files(tools)
    if edits:
        more = f" and {len(edits) - MOST_FILES} more" if len(edits) > MOST_FILES else ""
        return (
            f"Changed: "
            f"{', '.join([f'`{names[path]}`' for path, _ in edits.most_common(MOST_FILES)])}{more}"
        )
    read = sorted(
        {
            names[tool.text]
            for tool in tools
            if tool.kind == "read" and tool.outcome != "error" and tool.text
        }
    )
    return f"Read: {', '.join(f'`{name}`' for name in read)}" if 0 < len(read) <= MOST_FILES else ""


def _committed(tools: Sequence[StoredEntry]) -> str:
    made = _commits(tools)
    pushed = any(
        use.kind == "command" and use.outcome == "ok" and _PUSHES.search(use.text) for use in tools
    )
    if not made:
        return "Pushed" if pushed else ""
    more = f" (the last of {len(made)})" if len(made) > 1 else ""
    return f"Committed{' and pushed' if pushed else ''}: {made[-1]}{more}"


def _checks(tools: Sequence[StoredEntry]) -> list[str]:
    """Return the last commands that failed and did not succeed later, else the last passing checks.

    Checks are tests and similar commands."""
    left = [
        failure.tool
        for failure in failures(tools[-LAST_TOOL_USES:])
        if failure.tool.kind == "command" and failure.fixed is None
    ]
    failed = {
        family(
            use.text
        ): f"`{family(use.text)}` failed: {shorten(one_line(use.error), ERROR_CHARACTERS)}"
        for use in left
        if family(use.text) not in ("", LOOKING) and says_something(use.error)
    }
    passed = [family(use.text) for use in tools if use.kind == "command" and use.outcome == "ok"]
    latest = dict.fromkeys(reversed(passed))
    checked = [name for name in latest if _CHECKS.search(name) and len(name) <= TITLE_CHARACTERS]
    return [*failed.values()][-MOST_CHECKS:] or [
        f"`{name}` passed" for name in checked[:MOST_CHECKS]
    ]


def _end(entries: Sequence[StoredEntry]) -> str:
    spoken = [entry for entry in entries if entry.role != "tool" and entry.text]
    last = entries[-1]
    if last.role == "tool" and last.outcome == "error":
        return (
            f"Ended with {last.tool}, which failed: "
            f"{shorten(one_line(last.error), ERROR_CHARACTERS) or 'no output'}"
        )
    if len(spoken) > 1 and spoken[-1].role == "user" and _asks(spoken[-1].text):
        return (
            f"Ended without an answer to: "
            f"{excerpt(_own_words(spoken[-1].text), REQUEST_CHARACTERS)}"
        )
    answers = [entry.text for entry in spoken if entry.role == "assistant"]
    telling = [
        text for text in answers[: -LAST_ANSWERS - 1 : -1] if len(text) >= SUBSTANTIAL_CHARACTERS
    ]
    said = (telling or answers[-1:] or [""])[0]
    return f"Ended: {excerpt(said, END_CHARACTERS)}" if said else ""


def _shown(title: str) -> str:
    return shorten(one_line(title).rstrip(" ,;:"), TITLE_CHARACTERS)
