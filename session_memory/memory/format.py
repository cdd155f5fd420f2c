"""Memories as Markdown: a page is a heading and its memories. Pure: `parse` undoes `render`.

A person may edit all of it. The id after `^` identifies a memory; one that a person wrote has none.
"""

# An example:
#
#     ## The JWT expiry is 3600 seconds ^k3f9a2b7qx
#
#     More text about it.
#
#     > expiry set to 3600
#
#     *About auth*
#     *From 2026-02-21 14:32:05 UTC, session d58a79a7-..., conversation 12, message 34, by summary,
#     in /srv/shop*

import base64
import re
import time
from hashlib import blake2b
from urllib.parse import quote, unquote

from ..common.text.format import one_line, shorten
from ..common.text.markdown import escape, unescape
from ..common.text.sanitize import for_people
from ..common.text.timestamps import epoch_seconds
from ._similarity import normalised
from .memory_index import IndexedMemory, Origin

TITLE_CHARACTERS = 200
TEXT_CHARACTERS = 8000
EPISODE = "episode"  # as stored; people and agents read LOG
LOG = "log"
REJECTED = "rejected"  # tried and given up, with the reason
# the strategy in the origin of a memory that one of these wrote
BY_AGENT, BY_PERSON = "agent", "person"
# of single items
KINDS = ("fact", "decision", "preference", "question", "solution", REJECTED, "project", "person")

_ITEM = re.compile(r"^\ufeff?## ", re.MULTILINE)
_HEADING = re.compile(
    r"\ufeff?## (?P<struck>~~)?(?P<title>.*?)(?(struck)~~)(?: \^(?P<id>[a-z2-7]{10}))?[ \t\r]*$"
)
_SECTION = re.compile(r"^# ", re.MULTILINE)
_SECTION_OR_FENCE = re.compile(r"^(?:(?P<fence>`{3,}|~{3,})|# )", re.MULTILINE)
_META = re.compile(r"\*(About|From|Superseded) ?(.*?)\*[ \t]*$")
_META_LINES = re.compile(r"^\*(?:About|From|Superseded) .*\*[ \t]*(?=\r?$)", re.MULTILINE)
_OUR_SUPERSEDED = re.compile(
    r"^\*Superseded(?: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)?(?: by "
    r"\^[a-z2-7]{10})?\*[ \t]*(?:\r?\n|\Z)",
    re.MULTILINE,
)
_SOURCE = re.compile(
    r"(?P<at>-|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC), session (?P<session>\S+), conversation "
    r"(?P<number>\d+), "
    r"(?:message (?P<message>\d+), )?by (?P<strategy>\S+?)(?=, in |\s|\Z)(?:, in "
    r"(?P<directory>\S+))?"
)
_BY = re.compile(r"by \^([a-z2-7]{10})")
_LIKE_OURS = re.compile(r"^(?=## |>|\*(?:About|From|Superseded) )", re.MULTILINE)
_LIVE_ASTERISK = re.compile(r"(?<!\\)((?:\\\\)*)\*")
_TIME = "%Y-%m-%d %H:%M:%S UTC"


def shown_kind(kind: str) -> str:
    """Return a kind as people and agents read it: an episode is an entry of the log."""
    return LOG if kind == EPISODE else kind


def new_memory(
    kind: str,
    title: str,
    text: str,
    subject: str,
    quote: str,
    origin: Origin,
    *,
    is_untrusted: bool,
) -> IndexedMemory:
    """Make a strategy's memory: redacted, shortened to the limits, with its id."""
    title, text = one_line(for_people(title)), shorten(for_people(text).strip(), TEXT_CHARACTERS)
    if not title or one_line(text) == title:
        title, text = title or one_line(text), ""
    if len(title) > TITLE_CHARACTERS:
        title, text = shorten(title, TITLE_CHARACTERS), text or title
    subject, quote = one_line(for_people(subject)), for_people(quote).strip()
    memory = IndexedMemory(
        "", "", "", kind, title, text, subject, quote, (origin,), is_untrusted=is_untrusted
    )
    return memory._replace(id=_content_id(memory))


def is_by_agent(memory: IndexedMemory) -> bool:
    """Return whether only agents noted a memory: it is not the word of a person."""
    return bool(memory.origins) and all(origin[3] == BY_AGENT for origin in memory.origins)


def _content_id(memory: IndexedMemory) -> str:
    """Return the id derived from the memory's content and, for an episode, from its origin."""
    parts = [
        memory.kind,
        memory.subject.casefold(),
        normalised(memory.whole_text),
        str(memory.is_untrusted),
    ]
    if memory.kind == EPISODE and memory.origins:
        origin = memory.origins[0]
        parts += [origin.session, time_text(origin.at), origin.strategy]
    return short_hash("\0".join(parts))


def short_hash(text: str) -> str:
    """Return a hash of `text` in ten characters."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return base64.b32encode(digest).decode().rstrip("=").lower()


def render(memory: IndexedMemory) -> str:
    """Render a memory as Markdown."""
    struck, title = "~~" if memory.superseded else "", escape(memory.title)
    title = "\\~\\~" + title[2:] if title.startswith("~~") else title  # which would look struck out
    parts = [f"## {struck}{title}{struck} ^{memory.id}"]
    if memory.text:
        parts.append(_LIKE_OURS.sub(" ", escape(memory.text)))
    if memory.quote:
        parts.append(
            "\n".join([f"> {line}".rstrip() for line in escape(memory.quote).splitlines()])
        )
    subject = escape(memory.subject)
    # within emphasis, outside code
    subject = subject if "`" in subject else _LIVE_ASTERISK.sub(r"\1\\*", subject)
    meta = [f"*About {subject}*"] if subject else []
    meta += [_source_line(origin) for origin in memory.origins]
    if memory.superseded:
        meta.append(_superseded_line(memory))
    parts.append("\n".join(meta))
    return "\n\n".join([part for part in parts if part]) + "\n"


def split(page: str) -> list[str]:
    """Split a page, unchanged, into parts.

    They are the text before the first memory, a part for each memory, and one for each section of a
    person's own after a memory, which begins with a heading of the first level."""
    starts = [match.start() for match in _ITEM.finditer(page)]
    ends = [*starts, len(page)]
    parts = [page[: ends[0]]]
    for start, end in zip(starts, ends[1:]):
        at = _section_in(page[start:end])
        parts += [text for text in (page[start : start + at], page[start + at : end]) if text]
    return parts


def is_item(part: str) -> bool:
    """Return whether a part of a page is a memory."""
    return _ITEM.match(part) is not None


def _section_in(part: str) -> int:
    """Return where a person's own section begins in a memory's part, outside fenced code.

    Return the part's end if there is none."""
    fence = ""
    for mark_or_section in _SECTION_OR_FENCE.finditer(part) if _SECTION.search(part) else ():
        mark = mark_or_section["fence"] or ""
        if not fence and not mark:
            return mark_or_section.start()
        fence = "" if fence and mark.startswith(fence) else fence or mark
    return len(part)


def parse(part: str, path: str, kind: str, *, is_untrusted: bool) -> IndexedMemory:
    """Parse a memory from a part of the page at `path`. Tolerates any edit that a person made."""
    first, _, lines = part.replace("\r\n", "\n").partition("\n")
    heading = _HEADING.match(first)
    assert heading is not None, "every line that begins with ## fits"
    text: list[str] = []
    quote: list[str] = []
    meta: dict[str, list[str]] = {"About": [], "From": [], "Superseded": []}
    for line in lines.split("\n"):
        meta_line = _META.match(line)
        if meta_line:
            meta[meta_line[1]].append(meta_line[2])
        elif line.startswith(">"):
            quote.append(line[1:].removeprefix(" "))
        else:
            text.append(line)
    by = _BY.search(" ".join(meta["Superseded"]))
    memory = IndexedMemory(
        "",
        path,
        heading["id"] or "",
        kind,
        unescape(heading["title"]).strip(),
        unescape("\n".join(text).strip()),
        unescape(" ".join(meta["About"])),
        unescape("\n".join(quote)),
        tuple([_origin(meta_line) for line in meta["From"] if (meta_line := _SOURCE.match(line))]),
        (by[1] if by else "-") if heading["struck"] or meta["Superseded"] else "",
        is_untrusted,
        bool(heading["id"]),
    )
    return memory if memory.id else memory._replace(id=_content_id(memory))


def with_origin(part: str, origin: Origin) -> str:
    """Add a line for one more origin to a part, unless it is already there."""
    line = _source_line(origin)
    return (
        part
        if line in [existing.rstrip("\r") for existing in part.split("\n")]
        else _with_line(part, line)
    )


def struck(part: str, by: IndexedMemory) -> str:
    """Mark a part as superseded by the memory `by`."""
    heading = _HEADING.match(part.partition("\n")[0])
    assert heading is not None
    if heading["struck"]:
        return part
    start, end = heading.span("title")
    marked = f"{part[:start]}~~{part[start:end]}~~{part[end:]}"
    return _with_line(marked, _superseded_line(by._replace(superseded=by.id)))


def restored(part: str) -> str:
    """Remove the marks that `struck` added."""
    heading = _HEADING.match(part.partition("\n")[0])
    assert heading is not None
    if heading["struck"]:
        start, end = heading.span("title")
        part = f"{part[: start - 2]}{part[start:end]}{part[end + 2 :]}"
    return _OUR_SUPERSEDED.sub("", part)


def _with_line(part: str, line: str) -> str:
    """Add a line after the last of ours, else at the end; all existing bytes stay."""
    ours = [match.end() for match in _META_LINES.finditer(part)]
    at = ours[-1] if ours else len(part.rstrip())
    end = "\r\n" if "\r\n" in part else "\n"
    return f"{part[:at]}{end}{line}{part[at:] or end}"


def source_of(origin: Origin) -> tuple[str, str, str]:
    """Return the parts of an origin that survive ingesting the conversation again."""
    return origin.session, time_text(origin.at), origin.strategy


def time_text(milliseconds: int | None) -> str:
    """Format a time as `2026-02-21 14:32:05 UTC`; `-` if unknown."""
    return "-" if milliseconds is None else time.strftime(_TIME, time.gmtime(milliseconds // 1000))


def _source_line(origin: Origin) -> str:
    session = re.sub(r"[^\w.-]", "-", origin.session) or "-"
    message = f" message {origin.message}," if origin.message else ""
    where = f"session {session}, conversation {origin.conversation},{message} by {origin.strategy}"
    # Percent-encoded, a directory has neither spaces nor Markdown.
    word = "".join(
        [
            c if c.isalnum() or c in "/._-~@+:" else quote(c, errors="replace")
            for c in origin.directory
        ]
    )
    return f"*From {time_text(origin.at)}, {where}{f', in {word}' if word else ''}*"


def _superseded_line(memory: IndexedMemory) -> str:
    by = f" by ^{memory.superseded}" if len(memory.superseded) > 1 else ""
    when = f" {time_text(memory.at)}" if memory.at is not None else ""
    return f"*Superseded{when}{by}*"


def _origin(match: re.Match[str]) -> Origin:
    seconds = epoch_seconds(match["at"][:19])
    at = None if seconds is None else round(seconds) * 1000
    message, directory = int(match["message"] or 0), unquote(match["directory"] or "")
    return Origin(at, match["session"], int(match["number"]), match["strategy"], message, directory)
