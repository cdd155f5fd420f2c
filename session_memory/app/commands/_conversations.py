"""The conversations in the store, as `sessions --conversations` lists them."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any

from ...common.system.terminal import Result, Terminal
from ...common.text.format import one_line, shorten
from ...common.text.sanitize import for_prompt
from ...history.store.values import Conversation, Filter
from ...history.titles import Titles
from ..projects import limited_to, read_project
from .opened_store import OpenStore, check_names, on_store, refresh, wanted_of
from .output import brief, fields, moment

PROJECT_CHARACTERS = 24


@on_store
def list_conversations(opened: OpenStore, arguments: argparse.Namespace) -> int:
    """Print the conversations that the arguments select, and return the exit code."""
    refresh(opened)
    wanted = wanted_of(opened, arguments)._replace(status=arguments.status)
    is_limited = wanted._replace(limit=0) != Filter(limit=0)
    here, is_elsewhere = wanted, False
    if _is_of_project(opened, arguments):
        project = limited_to(read_project(".", os.environ), Filter(limit=1), opened.location.home)
        is_elsewhere = not opened.store.conversations(project)
        if not is_elsewhere:
            here = wanted._replace(directories=project.directories, folders=project.folders)
    conversations = opened.store.conversations(here._replace(limit=wanted.limit + 1))
    is_cut = len(conversations) > wanted.limit
    conversations = conversations[: wanted.limit]
    if not conversations:
        check_names(opened, wanted)
    opened.terminal.show(
        FoundConversations(
            conversations,
            Titles(None if opened.shared else opened.store, conversations),
            is_cut,
            is_limited=is_limited,
            is_shared=bool(opened.shared),
            is_elsewhere=is_elsewhere,
        )
    )
    return 0 if conversations or not is_limited else 1


def _is_of_project(opened: OpenStore, arguments: argparse.Namespace) -> bool:
    """Check if only conversations of the current directory's project are wanted.

    That is so unless an option says otherwise, or the store is an agent's or a host's."""
    says = arguments.all or arguments.home or arguments.project or arguments.session
    location = opened.location
    return not (says or opened.shared or location.home.sessions_dir or location.home_names != [""])


@dataclass(frozen=True)
class FoundConversations(Result):
    """The latest conversations; `is_cut` if there are more, `is_limited` if a filter applies.

    `is_elsewhere` means that this directory's project has none."""

    conversations: list[Conversation]
    titles: Titles
    is_cut: bool
    is_limited: bool
    is_shared: bool
    is_elsewhere: bool

    def show(self, terminal: Terminal) -> None:
        if not self.conversations:
            terminal.line(
                "No conversation matches. Try fewer options."
                if self.is_limited
                else "No conversations yet."
            )
            return
        if self.is_elsewhere:
            terminal.line(
                "This directory's project has no conversation yet. These are of all projects:"
            )
        who = "WHO" if self.is_shared else "STATUS"
        headings = ("ID", "LAST MESSAGE", "MESSAGES", who, "PROJECT", "TITLE")
        rows = [_row(each, self.titles) for each in self.conversations]
        terminal.table([headings, *rows], [0, 2])
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


def _row(conversation: Conversation, titles: Titles) -> tuple[str, ...]:
    project = shorten(os.path.basename(conversation.cwd) or "-", PROJECT_CHARACTERS)
    title = one_line(for_prompt(titles.of(conversation))) or "-"
    who = brief(conversation.who or conversation.origin, 40) or conversation.status
    return (
        str(conversation.id),
        moment(conversation.last_message_at),
        str(conversation.entry_count),
        who,
        project,
        title,
    )
