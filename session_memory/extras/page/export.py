"""Conversations as one HTML file that looks like the page.

It contains its style sheet, has no script, and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...common.text.timestamps import local_time
from ...history.archives.format import asked
from ...history.export import ASSISTANT, WITHHELD, Exported, ExportHead, facts_of, title_of
from ...history.store.location import StoreLocation
from ...history.store.values import TOOL_ROLE, Conversation, StoredEntry
from ._dialogue import blocks_of, call_detail
from ._diffs import Diff
from .jinja import TEMPLATES, environment

STYLE = TEMPLATES.with_name("static") / "page.css"


def as_html(conversations: Iterable[Exported], head: ExportHead) -> Iterator[str]:
    """Yield the conversations as HTML, with the page's style sheet and the diffs of edits.

    Diffs need the transcripts at the head's location. The macros are in export.html."""
    location = head.location
    macros: Any = environment().get_template("export.html").module
    yield str(macros.begin(head.title, Markup(Path(STYLE).read_text())))
    for each in conversations:
        conversation, is_told, batches, _ = each
        yield str(
            macros.conversation(title_of(conversation), facts_of(each), "" if is_told else WITHHELD)
        )
        day = ""
        for items in batches:
            speakers = {
                one.number: asked(one.text)[0] if one.role == "user" else ASSISTANT for one in items
            }
            shown = [
                item._replace(text=asked(item.text)[1]) if item.role == "user" else item
                for item in items
            ]
            blocks = list(blocks_of(shown, day))
            times = [item.timestamp for item in items if item.timestamp is not None]
            day = local_time(times[-1] / 1000)[:10] if times else day
            yield str(
                macros.items(
                    blocks, speakers, _diffs(location, conversation, items) if location else {}
                )
            )
        yield str(macros.end_of_conversation())
    yield str(macros.end())


def _diffs(
    location: StoreLocation, conversation: Conversation, items: list[StoredEntry]
) -> dict[int, Diff]:
    """Return the diffs of edits by the numbers of their items."""
    edits = [item for item in items if item.role == TOOL_ROLE and item.kind == "edit"]
    diffs = {edit.number: call_detail(location, conversation, edit).diff for edit in edits}
    return {number: diff for number, diff in diffs.items() if diff}
