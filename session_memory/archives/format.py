"""An archive as Markdown: title, when it was archived, messages, and a last line for programs. Pure.

# Travel Planning

Archived: Feb 21, 3:39 AM

---

**User**: I want to plan a trip to Japan...

**G2**: Here are some suggestions...

<!-- session-memory {"session": "d58a79a7-...", "runtime": "agent-sdk", ...} -->
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
from typing import TYPE_CHECKING, Any

from ..system.json import as_string
from ..text.format import ELLIPSIS, one_line, shorten
from ..text.markdown import begins_a_block, escape, unescape

if TYPE_CHECKING:
    from collections.abc import Iterator

USER, TASK, TOOL = "User", "Task", "Tool"
ASKING = (USER, TASK)  # whose messages an agent answers
# How the prompt of a task begins, which a host gives an agent; an archive has the task's own words.
TASK_INTRODUCTION = "[A scheduled task: nobody has just written this. What you answer goes to the chat.]"
COMPACTED = "*Compacted here: from now on the agent knew what came before as a summary.*"
TITLE_CHARACTERS = 80
TOOL_CHARACTERS = 120
SLUG_CHARACTERS = 60
SLUG_BYTES = 200  # a file name has 255, and some are for the date, a number and the suffix
TRAILER_BYTES = 4096

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TRAILER = re.compile(r"^<!-- session-memory (\{.*\}) -->$", re.MULTILINE)
_SPEAKER = re.compile(r"\*\*([^*]{1,80})\*\*:(?: (.*))?$")


def render_header(title: str, archived: float) -> str:
    """The lines before the first message; `archived` in seconds since the epoch, shown in local time."""
    at = time.localtime(archived)
    clock = f"{at.tm_hour % 12 or 12}:{at.tm_min:02} {'AM' if at.tm_hour < 12 else 'PM'}"
    when = f"{_MONTHS[at.tm_mon - 1]} {at.tm_mday}, {clock}"
    return f"# {escape(shorten(one_line(title), TITLE_CHARACTERS))}\n\nArchived: {when}\n\n---\n"


def title_in(first_line: str) -> str:
    """The title that the first line of an archive holds."""
    return unescape(first_line.strip().removeprefix("# "))


def asked(text: str) -> tuple[str, str]:
    """Who speaks in a message that an agent answers, and what is said: a user, or a task in its own words."""
    if text.startswith(TASK_INTRODUCTION):
        return TASK, text[len(TASK_INTRODUCTION) :].lstrip()
    return USER, text


def render_message(speaker: str, text: str, limit: int) -> str:
    """A message's paragraphs. What is beyond `limit` characters (0: no limit) is left out, and a note says so."""
    if limit and len(text) > limit:
        kept = shorten(text, limit)
        text = f"{kept}\n\n[{len(text) - len(kept) + len(ELLIPSIS):,} more characters]"
    separator = "\n\n" if begins_a_block(text) else " "
    return f"\n**{speaker}**:{separator}{escape(text)}\n"


def render_compaction() -> str:
    """The line where the runtime compacted the conversation."""
    return f"\n{COMPACTED}\n"


def render_trailer(facts: dict[str, Any]) -> str:
    """The last line. Angle brackets in its JSON are escaped, so that nothing in it can end the comment."""
    content = json.dumps(facts, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"\n<!-- session-memory {content} -->\n"


def facts_in(end_of_archive: str) -> dict[str, Any] | None:
    """The facts in the last line; None for a file that is no archive of ours."""
    *_, found = (None, *_TRAILER.finditer(end_of_archive))
    if found is None or end_of_archive[found.end() :].strip():
        return None
    try:
        facts = json.loads(found.group(1))
    except (ValueError, RecursionError):
        return None
    if not isinstance(facts, dict) or not isinstance(facts.get("session"), str):
        return None
    return {name: as_string(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}


def trailer_bytes(end_of_archive: bytes) -> int:
    """The size of an archive's last line in bytes, with the line feed before it."""
    return len(end_of_archive) - end_of_archive.rfind(b"\n<!-- session-memory ")


def messages_in(archive: str) -> Iterator[tuple[str, str]]:
    """The messages, as pairs of speaker and text; a compaction is the pair ('', '')."""
    body = archive.partition("\n---\n")[2]
    last = body.rfind("\n<!-- session-memory ")
    speaker, collected = "", [""]
    for line in (body if last < 0 else body[:last]).split("\n"):
        found = _SPEAKER.match(line)
        if found is None and line != COMPACTED:
            collected.append(line)
            continue
        if speaker:
            yield speaker, unescape("\n".join(collected).strip("\n"))
        if found is None:
            speaker = ""
            yield "", ""
        else:
            speaker, collected = found.group(1), [found.group(2) or ""]
    if speaker:
        yield speaker, unescape("\n".join(collected).strip("\n"))


def slug(title: str) -> str:
    """`title` as a part of a file name, in any script: its words in lower case joined by hyphens; '' without words."""
    words = re.findall(r"\w+", unicodedata.normalize("NFC", title).lower().replace("_", " "))
    joined = ""
    for word in words:
        longer = f"{joined}-{word}" if joined else word
        if len(longer) > SLUG_CHARACTERS or len(longer.encode("utf-8", "replace")) > SLUG_BYTES:
            break
        joined = longer
    return joined or _cut_to_bytes(words[0]) if words else ""


def _cut_to_bytes(word: str) -> str:
    return word[:SLUG_CHARACTERS].encode("utf-8", "replace")[:SLUG_BYTES].decode("utf-8", "ignore")
