"""Conversations as one HTML file that looks like the page: style sheet inside, no script, nothing to load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..archives.format import asked
from ..store.location import StoreLocation
from ..store.values import TOOL_ROLE, Conversation, StoredEntry
from ..text.timestamps import local_time
from ..upkeep.export import ASSISTANT, WITHHELD, ExportFormat, facts_of, title_of
from .dialogue import blocks_of, call_detail
from .diffs import Diff
from .jinja import TEMPLATES, environment

STYLE = TEMPLATES.with_name("static") / "page.css"


class HtmlExport(ExportFormat):
    """The macros of export.html, with the style sheet of the page inside the file."""

    def __init__(self, location: StoreLocation | None = None) -> None:
        self._location = location
        self._conversation: Conversation | None = None
        self._macros: Any = environment().get_template("export.html").module
        self._day = ""

    def begin(self, now: int, full: bool, title: str) -> str:
        return str(self._macros.begin(title, Markup(Path(STYLE).read_text())))

    def conversation(self, conversation: Conversation, is_told: bool) -> str:
        self._day = ""
        self._conversation = conversation
        withheld = "" if is_told else WITHHELD
        return str(self._macros.conversation(title_of(conversation), facts_of(conversation), withheld))

    def items(self, items: list[StoredEntry]) -> str:
        speakers = {one.number: asked(one.text)[0] if one.role == "user" else ASSISTANT for one in items}
        shown = [one._replace(text=asked(one.text)[1]) if one.role == "user" else one for one in items]
        blocks = list(blocks_of(shown, self._day))
        times = [one.timestamp for one in items if one.timestamp is not None]
        self._day = local_time(times[-1] / 1000)[:10] if times else self._day
        return str(self._macros.items(blocks, speakers, self._diffs(items)))

    def _diffs(self, items: list[StoredEntry]) -> dict[int, Diff]:
        """Return the diffs of edits, by the numbers of their items, if their transcripts are still there."""
        of, location = self._conversation, self._location
        if of is None or location is None:
            return {}
        edits = [one for one in items if one.role == TOOL_ROLE and one.kind == "edit"]
        found = {one.number: call_detail(location, of, one).diff for one in edits}
        return {number: diff for number, diff in found.items() if diff}

    def end_of_conversation(self) -> str:
        return str(self._macros.end_of_conversation())

    def end(self) -> str:
        return str(self._macros.end())
