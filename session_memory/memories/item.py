"""A memory as a part of a page of Markdown, and pages as parts. Pure: `parse` undoes `render`.

    ## The JWT expiry is 3600 seconds ^k3f9a2b7qx

    What there is to say beside the heading.

    > expiry set to 3600

    *About auth*
    *From 2026-02-21 14:32:05 UTC, session d58a79a7-..., conversation 12, by summary*

A person may change all of it. What stands behind `^` is how the item is found again; one that a person wrote has none.
"""

from __future__ import annotations

import base64
import re
import time
from calendar import timegm
from hashlib import blake2b
from typing import NamedTuple

from ..text.format import one_line, shorten
from ..text.markdown import escape, unescape
from ..text.sanitize import for_people
from .similarity import normalised

TITLE_CHARACTERS = 200
TEXT_CHARACTERS = 8000
EPISODE = "episode"

_ITEM = re.compile(r"^## ", re.MULTILINE)
_HEADING = re.compile(r"## (?P<struck>~~)?(?P<title>.*?)(?(struck)~~)(?: \^(?P<id>[a-z2-7]{10}))?[ \t]*$")
_META = re.compile(r"\*(About|From|Superseded) ?(.*?)\*[ \t]*$")
_SOURCE = re.compile(
    r"(?P<at>-|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC), session (?P<session>\S+), conversation (?P<number>\d+), "
    r"by (?P<strategy>\S+)"
)
_BY = re.compile(r"by \^([a-z2-7]{10})")
_LIKE_OURS = re.compile(r"^(?=## |>|\*(?:About|From|Superseded) )", re.MULTILINE)
_TIME = "%Y-%m-%d %H:%M:%S UTC"


class Origin(NamedTuple):
    """Where a memory came from: the conversation, its last message (milliseconds since the epoch), the strategy."""

    at: int | None
    session: str
    conversation: int
    strategy: str


class Item(NamedTuple):
    """A memory. `superseded` is the id of what has taken its place ('' as long as it holds, '-' if that is not known);
    `is_marked`: it carries its id, a strategy made it."""

    id: str
    kind: str
    title: str
    text: str = ""
    subject: str = ""
    quote: str = ""
    origins: tuple[Origin, ...] = ()
    superseded: str = ""
    is_untrusted: bool = False
    is_marked: bool = True

    @property
    def at(self) -> int | None:
        """When it was last said, in milliseconds since the epoch; None if that is not known."""
        return max((origin.at for origin in self.origins if origin.at is not None), default=None)

    @property
    def whole_text(self) -> str:
        """All that it says."""
        return f"{self.title}\n\n{self.text}" if self.text else self.title


def new_item(kind: str, title: str, text: str, subject: str, quote: str, origin: Origin, *, is_untrusted: bool) -> Item:
    """An item with what a strategy found: without secrets, in bounds, with the id that follows from what it says."""
    title, text = one_line(for_people(title)), shorten(for_people(text).strip(), TEXT_CHARACTERS)
    if not title or one_line(text) == title:
        title, text = title or one_line(text), ""
    if len(title) > TITLE_CHARACTERS:
        title, text = shorten(title, TITLE_CHARACTERS), text or title
    subject, quote = one_line(for_people(subject)), for_people(quote).strip()
    item = Item("", kind, title, text, subject, quote, (origin,), is_untrusted=is_untrusted)
    return item._replace(id=content_id(item))


def content_id(item: Item) -> str:
    """The id that follows from what an item says; of an episode also from where it came from."""
    parts = [item.kind, item.subject.casefold(), normalised(item.whole_text), str(item.is_untrusted)]
    if item.kind == EPISODE and item.origins:
        origin = item.origins[0]
        parts += [origin.session, time_text(origin.at), origin.strategy]
    return short_hash("\0".join(parts))


def short_hash(text: str) -> str:
    """Ten characters that tell `text` from any other."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return base64.b32encode(digest).decode().rstrip("=").lower()


def render(item: Item) -> str:
    """The lines of an item."""
    struck = "~~" if item.superseded else ""
    parts = [f"## {struck}{_heading(item.title)}{struck} ^{item.id}"]
    if item.text:
        parts.append(_LIKE_OURS.sub(" ", escape(item.text)))
    if item.quote:
        parts.append("\n".join([f"> {line}".rstrip() for line in escape(item.quote).splitlines()]))
    meta = [f"*About {_plain(item.subject)}*"] if item.subject else []
    meta += [_source_line(origin) for origin in item.origins]
    if item.superseded:
        meta.append(_superseded_line(item))
    parts.append("\n".join(meta))
    return "\n\n".join([part for part in parts if part]) + "\n"


def split(page: str) -> list[str]:
    """A page in parts: what stands before the first item, then each item as it stands."""
    starts = [found.start() for found in _ITEM.finditer(page)]
    ends = [*starts, len(page)]
    return [page[: ends[0]], *[page[start:end] for start, end in zip(starts, ends[1:])]]


def parse(part: str, kind: str, *, is_untrusted: bool) -> Item:
    """The item that a part of a page holds, whatever a person made of it."""
    first, _, rest = part.partition("\n")
    heading = _HEADING.match(first)
    assert heading is not None, "every line that begins with ## fits"
    text: list[str] = []
    quote: list[str] = []
    meta: dict[str, list[str]] = {"About": [], "From": [], "Superseded": []}
    for line in rest.split("\n"):
        found = _META.match(line)
        if found:
            meta[found[1]].append(found[2])
        elif line.startswith(">"):
            quote.append(line[1:].removeprefix(" "))
        else:
            text.append(line)
    by = _BY.search(" ".join(meta["Superseded"]))
    item = Item(
        heading["id"] or "",
        kind,
        unescape(heading["title"]).strip(),
        unescape("\n".join(text).strip()),
        unescape(" ".join(meta["About"])),
        unescape("\n".join(quote)),
        tuple([_origin(found) for line in meta["From"] if (found := _SOURCE.match(line))]),
        (by[1] if by else "-") if heading["struck"] or meta["Superseded"] else "",
        is_untrusted,
        bool(heading["id"]),
    )
    return item if item.id else item._replace(id=content_id(item))


def with_origin(part: str, origin: Origin) -> str:
    """A part with one more line that tells where it came from; the same part if it has that line."""
    line = _source_line(origin)
    return part if line in part.split("\n") else f"{part.rstrip()}\n{line}\n"


def struck(part: str, by: Item) -> str:
    """A part as it is to stand once `by` has taken its place."""
    first, _, rest = part.partition("\n")
    heading = _HEADING.match(first)
    assert heading is not None
    if heading["struck"]:
        return part
    mark = f" ^{heading['id']}" if heading["id"] else ""
    line = _superseded_line(by._replace(superseded=by.id))
    return f"## ~~{heading['title']}~~{mark}\n{rest.rstrip()}\n{line}\n"


def restored(part: str) -> str:
    """A part that was struck, as it stood before."""
    first, _, rest = part.partition("\n")
    heading = _HEADING.match(first)
    assert heading is not None
    mark = f" ^{heading['id']}" if heading["id"] else ""
    kept = [line for line in rest.split("\n") if not line.startswith("*Superseded")]
    return f"## {heading['title']}{mark}\n" + "\n".join(kept)


def time_text(milliseconds: int | None) -> str:
    """`2026-02-21 14:32:05 UTC`; `-` where it is not known."""
    return "-" if milliseconds is None else time.strftime(_TIME, time.gmtime(milliseconds // 1000))


def _heading(title: str) -> str:
    """What is struck out begins with two tildes; any others, and what looks like an id, stand before ours."""
    escaped = escape(title)
    return "\\~\\~" + escaped[2:] if escaped.startswith("~~") else escaped


def _plain(text: str) -> str:
    return escape(text).replace("*", "\\*")


def _source_line(origin: Origin) -> str:
    session = re.sub(r"[^\w.-]", "-", origin.session) or "-"
    where = f"session {session}, conversation {origin.conversation}, by {origin.strategy}"
    return f"*From {time_text(origin.at)}, {where}*"


def _superseded_line(item: Item) -> str:
    by = f" by ^{item.superseded}" if len(item.superseded) > 1 else ""
    when = f" {time_text(item.at)}" if item.at is not None else ""
    return f"*Superseded{when}{by}*"


def _origin(found: re.Match[str]) -> Origin:
    at = None if found["at"] == "-" else timegm(time.strptime(found["at"], _TIME)) * 1000
    return Origin(at, found["session"], int(found["number"]), found["strategy"])
