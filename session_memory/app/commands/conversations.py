"""`session-memory conversations`: the conversations in the store."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any

from ...common.system.terminal import Result, Terminal
from ...common.text.format import one_line, shorten
from ...common.text.sanitize import for_prompt
from ...history.store.values import STATUSES, Conversation, Filter
from .arguments import add_common
from .opened_store import OpenStore, check_names, on_store, refresh, wanted_of
from .output import brief, fields, moment

SUMMARY = "list conversations, latest first"
LIMIT = 20
TITLE_CHARACTERS = 60
PROJECT_CHARACTERS = 24
_MEANINGS = (  # of STATUSES
    "may continue",
    "has ended",
    "memories are being made",
    "memories were made",
    "too short, for example",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    statuses = ", ".join(
        [f"{status} ({meaning})" for status, meaning in zip(STATUSES, _MEANINGS, strict=True)]
    )
    statuses = f"only conversations with this status: {statuses}"
    parser.add_argument("--status", metavar="STATUS", choices=STATUSES, default="", help=statuses)
    add_common(parser, filter_limit=LIMIT, shared=True, private=True)


@on_store
def run(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    wanted = wanted_of(opened, arguments)._replace(status=arguments.status)
    conversations = opened.store.conversations(wanted._replace(limit=wanted.limit + 1))
    is_cut = len(conversations) > wanted.limit
    conversations = conversations[: wanted.limit]
    if not conversations:
        check_names(opened, wanted)
    is_limited = wanted._replace(limit=0) != Filter(limit=0)
    opened.terminal.show(
        FoundConversations(
            conversations, is_cut, is_limited=is_limited, is_shared=bool(opened.shared)
        )
    )
    return 0 if conversations or not is_limited else 1


@dataclass(frozen=True)
class FoundConversations(Result):
    """The latest conversations; `is_cut` if there are more, `is_limited` if a filter applies."""

    conversations: list[Conversation]
    is_cut: bool
    is_limited: bool
    is_shared: bool

    def show(self, terminal: Terminal) -> None:
        if not self.conversations:
            terminal.line(
                "No conversation matches. Try fewer options."
                if self.is_limited
                else "No conversations yet."
            )
            return
        who = "WHO" if self.is_shared else "STATUS"
        headings = ("ID", "LAST MESSAGE", "MESSAGES", who, "PROJECT", "TITLE")
        terminal.table([headings, *map(_row, self.conversations)], [0, 2])
        if self.is_cut:
            terminal.line(
                f"These are the latest {len(self.conversations)}; there are more: --limit N shows "
                "them."
            )

    def as_json(self) -> dict[str, Any]:
        return {
            "conversations": [fields(conversation) for conversation in self.conversations],
            "more": self.is_cut,
        }


def _row(conversation: Conversation) -> tuple[str, ...]:
    project = shorten(os.path.basename(conversation.cwd) or "-", PROJECT_CHARACTERS)
    title = shorten(one_line(for_prompt(conversation.title)), TITLE_CHARACTERS) or "-"
    who = brief(conversation.who or conversation.origin, 40) or conversation.status
    return (
        str(conversation.id),
        moment(conversation.last_message_at),
        str(conversation.entry_count),
        who,
        project,
        title,
    )
