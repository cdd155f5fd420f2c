"""The strategy without a model: quotes requests, decisions, facts, rejections and solutions from a conversation, and
lists what was done."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....patterns.failures import failures, is_failure
from ....store.values import Conversation, StoredEntry
from ....text.format import one_line, shorten
from ....text.shell_commands import LOOKING, commit_message, family
from ....transcripts.reader import is_plan
from ....transcripts.reader import is_request as names_something
from ....transcripts.reader import title_of as title_of_request
from ...filtering import relative_path
from ...format import EPISODE, REJECTED
from ...strategy import Memory, MemoryResult, ModelBudget, StrategyContext, TextStrategy
from .sentences import excerpt, has_words, looks_like_code, sentences_of, typed_paragraphs
from .solutions import says_something, solutions
from .statements import statements, takes_back

MOST_OF_A_KIND = 12  # of a conversation; the last ones
KNOWN = 20  # memories that a rejection may supersede
NOTHING = "no text"
TITLE_CHARACTERS = 80
REQUEST_CHARACTERS = 400
LATER_REQUEST_CHARACTERS = 160
STATE_CHARACTERS = 500
ERROR_CHARACTERS = 160
COMMIT_CHARACTERS = 120
SUBSTANTIAL_CHARACTERS = 80
TELLING_CHARACTERS = 600  # of answers without any action, or of requests
TELLING_REQUESTS = 3
MOST_LATER_REQUESTS = 5
MOST_FILES = 8
MOST_COMMITS = 8
MOST_UNSOLVED = 3
LAST_ANSWERS = 2  # the last answer often only agrees
LAST_TOOL_USES = 30
FEW_COMMITS = 2  # with so few, the last commit names the topic

_GOES_ON = re.compile(r"(?:then|and|also|now|so|next)\b,?\s+", re.IGNORECASE)
_READS = re.compile(r"(?:read|look at|see|check out|open|go through|have a look)\b", re.IGNORECASE)


class ExtractiveStrategy(TextStrategy):
    """The `Strategy` of heuristics: free, offline, and only with words of the conversation."""

    id = "extractive"

    def __init__(self, values: Mapping[str, Any], budget: ModelBudget) -> None:
        """Accept the arguments of every strategy; it has no settings and spends nothing."""
        self._context: StrategyContext | None = None

    def attach(self, context: StrategyContext) -> None:
        """Use existing memories, so that a rejection can supersede them."""
        self._context = context

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        """Return an episode, if something was done or said, and items with their quotations."""
        said = [entry.text for entry in entries if entry.role == "user" and entry.text]
        requests = [text for text in said if asks(text)] or said
        names = shortest_names([entry for entry in entries if entry.role == "tool"], conversation.cwd)
        project = conversation.cwd.rstrip("/").rpartition("/")[2]
        items = [*self._stated(conversation, entries, project), *_solved(entries, names, project)]
        memories = [item for kind in dict.fromkeys(item.kind for item in items) for item in _last(items, kind)]
        if items or is_worth_telling(entries):
            edited = [names[path] for path, _ in edited_files(entries).most_common()]
            title = title_of(conversation.title, requests, commits(entries), edited)
            memories.insert(0, Memory(EPISODE, title, episode_text(entries, requests, names), project))
        return MemoryResult(tuple(memories), "" if memories else NOTHING)

    def _stated(self, conversation: Conversation, entries: Sequence[StoredEntry], subject: str) -> Iterator[Memory]:
        for one in statements(entries):
            replaces = self._taken_back(conversation, one.title) if one.kind == REJECTED else ()
            yield Memory(one.kind, one.title, "", subject, one.quote, replaces, one.entry.number, one.entry.timestamp)

    def _taken_back(self, conversation: Conversation, rejection: str) -> tuple[str, ...]:
        """Return the ids of memories that state what is rejected here."""
        if self._context is None:
            return ()
        known = self._context.known(conversation, rejection, KNOWN)
        return tuple([one.id for one in known if one.kind != REJECTED and takes_back(rejection, one.text)])


def _solved(entries: Sequence[StoredEntry], names: Mapping[str, str], subject: str) -> Iterator[Memory]:
    for one in solutions(entries):
        title, text, quote = one.told(names)
        yield Memory("solution", title, text, subject, quote, (), one.failed.number, one.passed.timestamp)


def _last(items: Sequence[Memory], kind: str) -> list[Memory]:
    return [item for item in items if item.kind == kind][-MOST_OF_A_KIND:]


def is_worth_telling(entries: Sequence[StoredEntry]) -> bool:
    """Return whether the session did something or said something of substance."""
    if edited_files(entries) or commits(entries) or any(map(_failed, entries)):
        return True
    asked = {entry.text for entry in entries if entry.role == "user" and names_something(entry.text)}
    said = sum(len(entry.text) for entry in entries if entry.role == "assistant")
    return len(asked) >= TELLING_REQUESTS or (bool(asked) and said >= TELLING_CHARACTERS)


def asks(text: str) -> bool:
    """Return whether a user's text asks for something: not a greeting, a mere yes or a runtime command."""
    return not _is_command(text) and names_something(text) and (has_words(text) or "://" in text)


def title_of(given: str, requests: Sequence[str], made: Sequence[str], names: Iterable[str]) -> str:
    """Choose a conversation's title: the session's title unless it repeats a request; the heading of its plan; the last
    of few commits; the first request; the edited files. `made` are commits, `names` files."""
    given = one_line(given)
    abouts = [one_line(title_of_request(text)) for text in requests]
    if has_words(given) and not any(about.startswith(given.rstrip("…")) for about in abouts):
        return shorten(given, TITLE_CHARACTERS)
    if requests and is_plan(requests[0]):
        return _shown(title_of_request(requests[0]).split("\n")[0])
    if 0 < len(made) <= FEW_COMMITS:
        return _shown(made[-1])
    edited = ", ".join(list(dict.fromkeys([name.rpartition("/")[2] for name in names]))[:3])
    asked = [_telling_sentence(text) for text in requests]
    first = asked[0] if asked else ""
    named = ": ".join(part for part in (abouts[0], edited) if part) if abouts and not has_words(abouts[0]) else ""
    others = [one for one in asked if one]
    return _shown(
        next((one for one in (first, *made[:1], named, edited, *others, *abouts) if one), given or "Conversation")
    )


def _telling_sentence(text: str) -> str:
    """Return the first sentence of a request that names its topic, preferably not one that only asks to read something;
    '' for none."""
    told = [one for one in sentences_of(_own_words(text)[:2000]) if has_words(one) and not looks_like_code(one)]
    first = next((one for one in told if not _READS.match(one)), next(iter(told), ""))
    return _GOES_ON.sub("", first)


def commits(entries: Iterable[StoredEntry]) -> list[str]:
    """Return the subject lines of git commits."""
    messages = [commit_message(entry.text) for entry in entries if entry.kind == "command" and entry.outcome == "ok"]
    return list(dict.fromkeys(shorten(one_line(message), COMMIT_CHARACTERS) for message in messages if message))


def shortest_names(tools: Iterable[StoredEntry], cwd: str) -> dict[str, str]:
    """Map each path to its display form: relative to the working directory or, if all lie below another one, to
    that."""
    paths = {tool.text for tool in tools if tool.kind in ("edit", "read") and tool.text}
    names = {path: relative_path(path, cwd) for path in paths}
    absolute = [name for name in names.values() if name.startswith("/")]
    common = os.path.commonpath([os.path.dirname(name) for name in absolute]) if len(absolute) > 1 else ""
    if common.count("/") > 2:
        names = {path: relative_path(name, common) for path, name in names.items()}
    return {path: shorten(one_line(name), 100) for path, name in names.items()}


def episode_text(entries: Sequence[StoredEntry], requests: Sequence[str], names: Mapping[str, str]) -> str:
    """Return the text of the episode."""
    tools = [entry for entry in entries if entry.role == "tool"]
    parts = (
        _requests(requests),
        _files(tools, names),
        _committed(commits(tools)),
        _unsolved(tools),
        _last_state(entries),
    )
    return "\n\n".join(part for part in parts if part)


def edited_files(tools: Iterable[StoredEntry]) -> Counter[str]:
    """Return the edited paths and how often each was edited."""
    return Counter(tool.text for tool in tools if tool.kind == "edit" and tool.outcome != "error" and tool.text)


def _failed(entry: StoredEntry) -> bool:
    """Return whether an entry is a failed command that was meant to change something."""
    return entry.kind == "command" and is_failure(entry) and family(entry.text) not in ("", LOOKING)


def _requests(requests: Sequence[str]) -> str:
    own = [text for one in requests if (text := _own_words(one))]
    if not own:
        return ""
    lines = [f"Asked: {excerpt(own[0], REQUEST_CHARACTERS)}"]
    later = list(dict.fromkeys(excerpt(text, LATER_REQUEST_CHARACTERS) for text in own[1:] if asks(text)))
    kept = _longest(later, MOST_LATER_REQUESTS)
    if kept:
        more = f" ({len(later) - len(kept)} more)" if len(later) > len(kept) else ""
        lines += [f"\nThen asked{more}:", *(f"- {text}" for text in kept)]
    return "\n".join(lines)


def _own_words(text: str) -> str:
    """Return a request without pasted text; its title if nothing else is left."""
    typed = "\n\n".join(typed_paragraphs(text))
    return title_of_request(typed if has_words(typed) else text)


def _files(tools: Iterable[StoredEntry], names: Mapping[str, str]) -> str:
    tools = list(tools)
    edits = edited_files(tools)
    if edits:
        more = f" and {len(edits) - MOST_FILES} more" if len(edits) > MOST_FILES else ""
        return f"Changed: {', '.join([f'`{names[path]}`' for path, _ in edits.most_common(MOST_FILES)])}{more}"
    read = sorted({names[tool.text] for tool in tools if tool.kind == "read" and tool.outcome != "error" and tool.text})
    return f"Read: {', '.join(f'`{name}`' for name in read)}" if 0 < len(read) <= MOST_FILES // 2 else ""


def _committed(messages: Sequence[str]) -> str:
    if not messages:
        return ""
    more = f" (the last of {len(messages)})" if len(messages) > MOST_COMMITS else ""
    return "\n".join([f"Committed{more}:", *(f"- {message}" for message in messages[-MOST_COMMITS:])])


def _unsolved(tools: Sequence[StoredEntry]) -> str:
    """Return the last commands that failed and did not succeed later."""
    telling = {
        family(one.tool.text): one.tool.error
        for one in failures(tools[-LAST_TOOL_USES:])
        if one.tool.kind == "command"
        and one.fixed is None
        and family(one.tool.text) not in ("", LOOKING)
        and says_something(one.tool.error)
    }
    lines = [
        f"- `{name}`: {shorten(one_line(error), ERROR_CHARACTERS) or 'no output'}" for name, error in telling.items()
    ]
    return "\n".join(["Not seen to work:", *lines[-MOST_UNSOLVED:]]) if lines else ""


def _last_state(entries: Sequence[StoredEntry]) -> str:
    spoken = [entry for entry in entries if entry.role != "tool" and entry.text]
    answers = [entry.text for entry in spoken if entry.role == "assistant"]
    telling = next(
        (text for text in answers[: -LAST_ANSWERS - 1 : -1] if len(text) >= SUBSTANTIAL_CHARACTERS), ""
    ) or "".join(answers[-1:])
    lines = [f"At the end: {excerpt(telling, STATE_CHARACTERS)}"] if telling else []
    if spoken and spoken[-1].role == "user" and len(spoken) > 1 and asks(spoken[-1].text):
        lines.append(f"Left without an answer: {excerpt(_own_words(spoken[-1].text), LATER_REQUEST_CHARACTERS)}")
    last = entries[-1]
    if last.role == "tool" and last.outcome == "error":
        error = shorten(one_line(last.error), ERROR_CHARACTERS)
        lines.append(f"The last thing that happened: {last.tool} failed: {error or 'no output'}")
    return "\n".join(lines)


def _is_command(text: str) -> bool:
    word, _, rest = text.strip().partition(" ")
    return word.startswith("/") and "/" not in word[1:] and len(rest.split()) < 2


def _shown(title: str) -> str:
    title = shorten(one_line(title).rstrip(" ,;:"), TITLE_CHARACTERS)
    first = title.split(" ", 1)[0] if title else ""
    return title[0].upper() + title[1:] if first.rstrip(",:!?").isalpha() and first.islower() else title


def _longest(texts: Sequence[str], count: int) -> list[str]:
    """Return the `count` longest texts in their original order."""
    chosen = sorted(range(len(texts)), key=lambda at: -len(texts[at]))[:count]
    return [texts[at] for at in sorted(chosen)]
