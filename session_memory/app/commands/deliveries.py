"""`session-memory deliveries`: the last update of each session, if it arrived, and what waits."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from typing import Any

from ...awareness.events.delivery_state import DeliveryState, delivery_state
from ...common.system.files import is_file
from ...common.system.terminal import Terminal
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age, iso_time
from ...sessions.transcripts.sessions import FoundSession, find_sessions
from .arguments import add_common
from .sessions import chosen_session

SUMMARY = "show the last updates that sessions got, whether they arrived, and what comes next"
SHOWN = 5
WITHHELD = (
    "The text is withheld: it may contain something that a rule hides now, or that you forgot."
)
_ARRIVED = {
    True: "and it arrived",
    False: "not found in its transcript",
    None: "not known yet if it arrived",
}


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
    found = find_sessions(arguments.home, False, os.environ)
    if arguments.session:
        chosen = [chosen_session(arguments.session, arguments, os.environ)]
    else:
        prompted = [
            one for one in found if is_file(one.home.cursor_file(one.session.key) + ".lock")
        ]
        chosen = prompted[: arguments.limit]
    states = [(one, delivery_state(one, os.environ)) for one in chosen]
    names = {one.session.key: one.name for one in found}
    for one, state in states:
        _show(one, state, names, terminal)
    if not states:
        terminal.line(
            "No session here has had a prompt since the hooks were installed: type "
            "one, or see doctor."
        )
    terminal.result({"sessions": [_as_json(*state, names) for state in states]})
    return 0


def _show(
    one: FoundSession, state: DeliveryState, names: Mapping[str, str], terminal: Terminal
) -> None:
    terminal.heading(for_people(f"{one.name} ({one.id})"))
    delivered = state.delivered
    if delivered is None:
        terminal.line(
            "It has got no update yet: nothing new has happened in the others "
            "since its first prompt."
        )
    else:
        when = age(time.time() - delivered.at)
        terminal.line(
            f"Delivered {when}, {_ARRIVED[delivered.acknowledged]}{':' if delivered.text else '.'}"
        )
        terminal.quote(for_people(delivered.text or ""))
        if state.is_withheld:
            terminal.line(WITHHELD)
    left_out = _left_out(state, names)
    if left_out:
        terminal.line(for_people(f"Left out, being over six hours old: {', '.join(left_out)}."))
    terminal.line("Waiting for its next prompt:" if state.waiting else "Nothing waits for it.")
    terminal.quote(for_people(state.waiting))


def _left_out(state: DeliveryState, names: Mapping[str, str]) -> list[str]:
    """Return the names of the sessions that were left out, without those that may not be shown."""
    return [names[key] for key in state.left_out if key in names]


def _as_json(one: FoundSession, state: DeliveryState, names: Mapping[str, str]) -> dict[str, Any]:
    last = state.delivered
    delivered = (
        {"at": iso_time(last.at), "text": last.text, "acknowledged": last.acknowledged}
        if last
        else None
    )
    return {
        "id": one.id,
        "name": one.name,
        "delivered": delivered,
        "waiting": state.waiting or None,
        "left_out": _left_out(state, names),
    }
