"""`session-memory deliveries`: each session's last update, whether it arrived, and its next one."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...awareness.events.delivery_state import DeliveryState, delivery_state
from ...common.system.files import is_file
from ...common.system.terminal import Result, Terminal
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age, iso_time
from ...sessions.transcripts.sessions import FoundSession, find_sessions
from .arguments import add_common
from .sessions import SessionChoice

SUMMARY = "show the last updates that sessions got, whether they arrived, and the next updates"
SHOWN = 5
WITHHELD = (
    "The text is withheld, because it may contain text that a rule now hides or that you forgot."
)
_ARRIVED = {
    True: "and it arrived",
    False: "not found in its transcript",
    None: "it is not known yet whether it arrived",
}


@dataclass(frozen=True)
class SessionDelivery(Result):
    """A session's last update, its pending one, and the names of sessions left out of it.

    Sessions that may not be shown are not named."""

    session: FoundSession
    state: DeliveryState
    left_out: list[str]

    def show(self, terminal: Terminal) -> None:
        """Print it."""
        state, delivered = self.state, self.state.delivered
        terminal.heading(for_people(f"{self.session.name} ({self.session.id})"))
        if not self.session.runtime.PROMPT_EVENT:
            title = self.session.runtime.TITLE
            terminal.line(f"{title} runs no hooks of session-memory, so its agents get no updates.")
            return
        if delivered is None:
            reason = ", because nothing new has happened in other sessions since its first prompt"
            terminal.line(f"It has got no update yet{'' if state.waiting else reason}.")
        else:
            when, arrived = age(time.time() - delivered.at), _ARRIVED[delivered.acknowledged]
            terminal.line(f"Delivered {when}, {arrived}{':' if delivered.text else '.'}")
            terminal.quote(for_people(delivered.text or ""))
            if state.is_withheld:
                terminal.line(WITHHELD)
        if self.left_out:
            names = ", ".join(self.left_out)
            terminal.line(for_people(f"Left out because they are over six hours old: {names}."))
        terminal.line("Waiting for its next prompt:" if state.waiting else "Nothing waits for it.")
        terminal.quote(for_people(state.waiting))

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        last = self.state.delivered
        delivered = (
            {"at": iso_time(last.at), "text": last.text, "acknowledged": last.acknowledged}
            if last
            else None
        )
        return {
            "id": self.session.id,
            "name": self.session.name,
            "delivered": delivered,
            "is_withheld": self.state.is_withheld,
            "waiting": self.state.waiting or None,
            "left_out": self.left_out,
        }


@dataclass(frozen=True)
class Deliveries(Result):
    """The sessions with their last and their next update."""

    sessions: list[SessionDelivery]

    def show(self, terminal: Terminal) -> None:
        for delivery in self.sessions:
            delivery.show(terminal)
        if not self.sessions:
            terminal.line(
                "No session here has had a prompt since the hooks were installed. Type a prompt, "
                "or run doctor."
            )

    def as_json(self) -> dict[str, Any]:
        return {"sessions": [delivery.as_json() for delivery in self.sessions]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="its id, or a word of its title (default: the latest sessions)",
    )
    parser.set_defaults(all=False)
    add_common(parser, limit=SHOWN)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    sessions = find_sessions(arguments.home, False, os.environ)
    if arguments.session:
        chosen = [SessionChoice(arguments.session, arguments, os.environ).session()]
    else:
        prompted = [
            session
            for session in sessions
            if is_file(session.home.cursor_file(session.session.key) + ".lock")
        ]
        chosen = prompted[: arguments.limit]
    names = {session.session.key: session.name for session in sessions}
    terminal.show_paged(Deliveries([_delivery_of(session, names) for session in chosen]))
    return 0


def _delivery_of(session: FoundSession, names: Mapping[str, str]) -> SessionDelivery:
    state = delivery_state(session, os.environ)
    left_out = [names[key] for key in state.left_out if key in names]
    return SessionDelivery(session, state, left_out)
