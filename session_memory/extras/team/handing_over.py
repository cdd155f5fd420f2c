"""`session-memory handoff --team`: puts the page of a session into the team's store."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError
from ...common.system.terminal import Result, Terminal, called_as
from ...common.text.sanitize import for_people
from ...history.patterns.handoff import page
from ._sharing import hand_over, joined_team, shared_session
from .postgres.connection import place_of

if TYPE_CHECKING:
    from ...app.commands.opened_store import OpenStore
    from ...history.patterns.handoff import Handoff
    from ...history.store.values import Conversation


def hand_to_team(
    opened: OpenStore, last: Conversation, handoff: Handoff, *, is_confirmed: bool
) -> int:
    """Show what would go to the team, and send it if a person agrees."""
    team, terminal = joined_team(opened.location.home), opened.terminal
    file, shared = shared_session(opened.store, opened.location, last)
    if not handoff.branch:
        raise SessionMemoryError(
            f"{last.cwd}: no branch is checked out there, so nobody would be offered the page"
        )
    text = for_people(page(handoff, called_as(), is_shared=True)).replace(
        shared.root, shared.project
    )
    readers = (
        "all members can read it"
        if shared.share == "team"
        else "by your rules, only your own machines can read it"
    )
    consequence = (
        f"anyone who starts a session of {shared.project} on the branch {handoff.branch} is told"
    )
    terminal.line(f"{text}\nThis goes to {place_of(team.url)}: {readers}, and {consequence}.")
    is_sent = is_confirmed or (terminal.can_ask() and terminal.ask("Send it?"))
    if is_sent:
        hand_over(opened.store, opened.location, file, handoff.branch, text)
    terminal.show(SharedHandoff(text, handoff.branch, shared.share, is_sent, last.session_id))
    return 0


@dataclass(frozen=True)
class SharedHandoff(Result):
    """The page of a session that was sent to the team or only shown, and who may read it."""

    page: str
    branch: str
    share: str
    is_sent: bool
    session: str

    @property
    def verbatim(self) -> Collection[str]:
        return ("page",)

    def show(self, terminal: Terminal) -> None:
        """Print if it was sent; the page was printed before the question."""
        again = f"{called_as()} handoff {shlex.quote(self.session)} --team --yes"
        terminal.line("Sent." if self.is_sent else f"Not sent. To send it: {again}")

    def as_json(self) -> dict[str, Any]:
        return {
            "page": self.page,
            "branch": self.branch,
            "share": self.share,
            "sent": self.is_sent,
        }
