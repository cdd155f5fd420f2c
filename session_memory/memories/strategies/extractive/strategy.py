"""The strategy without a model: quotes from a conversation what was asked, done and decided, and what failed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....patterns.failures import Failure, failures, normalised, what_followed
from ....text.format import counted, one_line, shorten
from ....text.shell_commands import LOOKING, commit_message, family
from ...filtering import relative_path
from ...strategy import Memory, MemoryResult
from .sentences import choices, excerpt, is_request, title_of

if TYPE_CHECKING:
    from ....store.values import Conversation, StoredEntry
    from ...strategy import Budget

REQUEST_CHARACTERS = 600
LATER_REQUEST_CHARACTERS = 160
STATE_CHARACTERS = 700
ERROR_CHARACTERS = 160
COMMIT_CHARACTERS = 120
SUBSTANTIAL_CHARACTERS = 160
MOST_LATER_REQUESTS = 8
MOST_FILES = 12
MOST_FAILURES = 6
MOST_COMMITS = 12
MOST_CHOICES = 6

_HOUSEKEEPING = frozenset(("chmod", "code", "cp", "kill", "ln", "mkdir", "mv", "open", "pkill", "rm", "rmdir", "touch"))


class ExtractiveStrategy:
    """The `Strategy` that works by heuristics: free, offline, and only with words of the conversation."""

    id = "extractive"

    def __init__(self, values: Mapping[str, Any], budget: Budget) -> None:
        """It has no settings and spends nothing."""

    def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
        """Whether there is any text."""
        return any(entry.role != "tool" and entry.text for entry in entries)

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        """One episode."""
        said = [entry.text for entry in entries if entry.role == "user" and entry.text]
        requests = [text for text in said if is_request(text)] or said
        title = title_of(conversation.title, requests, _commits(entries))
        text = "\n\n".join(part for part in _parts(conversation, entries, requests) if part)
        subject = conversation.cwd.rstrip("/").rpartition("/")[2]
        return MemoryResult((Memory("episode", title, text, subject),))


def _parts(conversation: Conversation, entries: Sequence[StoredEntry], requests: Sequence[str]) -> Iterable[str]:
    yield _requests(requests)
    tools = [entry for entry in entries if entry.role == "tool"]
    names = _shortest_names(tools, conversation.cwd)
    yield _files(tools, names)
    yield _committed(_commits(tools))
    yield _commands(tools)
    yield _failures(failures(tools), names)
    yield _choices(entries)
    yield _last_state(entries, tools)


def _requests(requests: Sequence[str]) -> str:
    if not requests:
        return ""
    lines = [f"Asked: {excerpt(requests[0], REQUEST_CHARACTERS)}"]
    later = list(dict.fromkeys(excerpt(text, LATER_REQUEST_CHARACTERS) for text in requests[1:] if is_request(text)))
    kept = _longest(later, MOST_LATER_REQUESTS)
    if kept:
        more = f" ({len(later) - len(kept)} more)" if len(later) > len(kept) else ""
        lines += [f"\nThen asked{more}:", *(f"- {text}" for text in kept)]
    return "\n".join(lines)


def _files(tools: Iterable[StoredEntry], names: Mapping[str, str]) -> str:
    edits = Counter(tool.text for tool in tools if tool.kind == "edit" and tool.outcome != "error" and tool.text)
    reads = {tool.text for tool in tools if tool.kind == "read" and tool.outcome != "error" and tool.text}
    lines = []
    if edits:
        told = [f"`{names[path]}`" + (f" ({times} edits)" if times > 1 else "") for path, times in edits.most_common()]
        lines.append(f"Changed: {_enumerated(told, MOST_FILES)}")
    only_read = sorted(names[path] for path in reads - set(edits))
    if only_read and len(only_read) <= MOST_FILES // 2:
        lines.append(f"Read: {', '.join(f'`{name}`' for name in only_read)}")
    elif only_read:
        lines.append(f"Read: {len(only_read)} other files")
    return "\n".join(lines)


def _commits(entries: Iterable[StoredEntry]) -> list[str]:
    """The first lines of the messages of git commits."""
    messages = [commit_message(entry.text) for entry in entries if entry.kind == "command" and entry.outcome == "ok"]
    return list(dict.fromkeys(shorten(one_line(message), COMMIT_CHARACTERS) for message in messages if message))


def _committed(messages: Sequence[str]) -> str:
    if not messages:
        return ""
    more = f" (the last of {len(messages)})" if len(messages) > MOST_COMMITS else ""
    return "\n".join([f"Committed{more}:", *(f"- {message}" for message in messages[-MOST_COMMITS:])])


def _commands(tools: Iterable[StoredEntry]) -> str:
    """The commands with how often they ran, the most frequent first, without those that only look or move files."""
    ran: Counter[str] = Counter()
    for tool in tools:
        name = family(tool.text) if tool.kind == "command" else ""
        if name and name != LOOKING and not _HOUSEKEEPING.issuperset(name.split(" && ")):
            ran[name] += 1
    told = [f"`{name}`" + (f" ({times} times)" if times > 1 else "") for name, times in ran.most_common(8)]
    return f"Ran: {', '.join(told)}" if told else ""


def _failures(found: Sequence[Failure], names: Mapping[str, str]) -> str:
    """The failures of commands and other tools, without those while editing, reading or looking around; equal ones as
    one."""
    telling: dict[tuple[str, str], tuple[Failure, int]] = {}
    for one in found:
        what = family(one.tool.text) if one.tool.kind == "command" else one.tool.tool
        if one.tool.kind in ("edit", "read") or what in ("", LOOKING):
            continue
        key = (what, normalised(one.tool.error))
        telling[key] = (one, telling.pop(key, (one, 0))[1] + one.times)
    unlike = sorted(telling.items(), key=lambda item: (item[1][0].tool.kind != "command", item[1][0].fixed is None))
    kept = sorted(unlike[:MOST_FAILURES], key=lambda item: item[1][0].tool.id)
    lines = [_failure(what, one, times, names) for (what, _), (one, times) in kept]
    more = [f"- {len(telling) - len(kept)} more"] if len(telling) > len(kept) else []
    return "\n".join(["Failed:", *lines, *more]) if lines else ""


def _failure(what: str, failure: Failure, times: int, names: Mapping[str, str]) -> str:
    often = f" ({counted(times, 'time')})" if times > 1 else ""
    error = shorten(one_line(failure.tool.error), ERROR_CHARACTERS) or "no output"
    followed = what_followed(failure, names)
    return f"- `{what}`{often}: {error} -> {f'worked {followed}' if followed else 'not seen to work'}"


def _choices(entries: Iterable[StoredEntry]) -> str:
    found = [(entry.role, sentence) for entry in entries if entry.role != "tool" for sentence in choices(entry)]
    users = list(dict.fromkeys(sentence for role, sentence in found if role == "user"))[:MOST_CHOICES]
    own = list(dict.fromkeys(sentence for role, sentence in found if role != "user"))[: MOST_CHOICES // 2]
    lines = [f'- the user: "{sentence}"' for sentence in users] + [f'- the assistant: "{sentence}"' for sentence in own]
    return "\n".join(["Wanted or decided:", *lines]) if lines else ""


def _last_state(entries: Sequence[StoredEntry], tools: Sequence[StoredEntry]) -> str:
    spoken = [entry for entry in entries if entry.role != "tool" and entry.text]
    answers = [entry.text for entry in spoken if entry.role == "assistant"]
    lines = [f"At the end: {excerpt(answers[-1], STATE_CHARACTERS)}"] if answers else []
    if answers and len(answers[-1]) < SUBSTANTIAL_CHARACTERS:  # a short answer often only announces the next step
        before = next((text for text in answers[-2:-8:-1] if len(text) >= SUBSTANTIAL_CHARACTERS), "")
        lines = ([f"Shortly before the end: {excerpt(before, STATE_CHARACTERS)}"] if before else []) + lines
    if spoken and spoken[-1].role == "user" and len(spoken) > 1 and is_request(spoken[-1].text):
        lines.append(f"Left without an answer: {excerpt(spoken[-1].text, LATER_REQUEST_CHARACTERS)}")
    if tools and tools[-1].outcome == "error" and tools[-1].id == entries[-1].id:
        error = shorten(one_line(tools[-1].error), ERROR_CHARACTERS)
        last = f"{tools[-1].tool} failed: {error or 'no output'}"
        lines.append(f"The last thing that happened: {last}")
    return "\n".join(lines)


def _shortest_names(tools: Iterable[StoredEntry], cwd: str) -> dict[str, str]:
    """How each path is shown: relative to the working directory or, where all lie below another one, to that."""
    paths = {tool.text for tool in tools if tool.kind in ("edit", "read") and tool.text}
    names = {path: relative_path(path, cwd) for path in paths}
    absolute = [name for name in names.values() if name.startswith("/")]
    common = os.path.commonpath([os.path.dirname(name) for name in absolute]) if len(absolute) > 1 else ""
    if common.count("/") > 2:
        names = {path: relative_path(name, common) for path, name in names.items()}
    return {path: shorten(one_line(name), 100) for path, name in names.items()}


def _longest(texts: Sequence[str], count: int) -> list[str]:
    """The `count` longest, in the order they came."""
    chosen = sorted(range(len(texts)), key=lambda at: -len(texts[at]))[:count]
    return [texts[at] for at in sorted(chosen)]


def _enumerated(parts: Sequence[str], count: int) -> str:
    more = f" and {len(parts) - count} more" if len(parts) > count else ""
    return ", ".join(parts[:count]) + more
