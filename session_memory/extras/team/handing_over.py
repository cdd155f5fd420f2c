"""`session-memory handoff --team`: puts the page of a session into the team's store."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError
from ...common.system.terminal import called_as
from ...common.text.sanitize import for_people
from ...history.patterns.handoff import page
from ._sharing import hand_over, joined_team, shared_session
from .postgres.connection import place_of

if TYPE_CHECKING:
    from ...app.commands.opened_store import OpenStore
    from ...history.patterns.handoff import Handoff
    from ...history.store.values import Conversation


def hand_to_team(
    opened: OpenStore, last: Conversation, found: Handoff, *, is_confirmed: bool
) -> int:
    """Show what would go to the team, and send it if a person agrees."""
    team, terminal = joined_team(opened.location.home), opened.terminal
    file, shared = shared_session(opened.store, opened.location, last)
    if not found.branch:
        raise SessionMemoryError(
            f"{last.cwd}: no branch is checked out there, so nobody would be told"
        )
    text = for_people(page(found, called_as(), is_shared=True)).replace(shared.root, shared.project)
    readers = (
        "all members read it"
        if shared.share == "team"
        else "only your own machines read it, by your rules"
    )
    told = f"who starts a session of {shared.project} on the branch {found.branch} is told"
    terminal.line(f"{text}\nThis goes to {place_of(team.url)}: {readers}, and {told}.")
    is_sent = is_confirmed or (terminal.can_ask() and terminal.ask("Send it?"))
    if is_sent:
        hand_over(opened.store, opened.location, os.environ, file, found.branch, text)
    terminal.result(
        {"page": text, "branch": found.branch, "share": shared.share, "sent": is_sent},
        verbatim=["page"],
    )
    again = f"{called_as()} handoff {shlex.quote(last.session_id)} --team --yes"
    terminal.line("Sent." if is_sent else f"Not sent. {again} sends it.")
    return 0
