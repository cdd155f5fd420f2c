"""What an install and an uninstall ask whoever sits at the terminal."""

from __future__ import annotations

from ..errors import SessionMemoryError
from ..system.terminal import Terminal
from ..text.format import enumerated
from ..tools.permissions import LOOKUPS
from .home_changes import HomePlan
from .homes import RUNTIME


class NotConfirmedError(SessionMemoryError):
    """What cannot be undone was not confirmed."""


def ask_for_rules(plans: list[HomePlan], terminal: Terminal) -> bool:
    """Whether agents may look things up without asking, in the homes where they have to ask."""
    asking = [terminal.short(plan.root) for plan in plans if plan.hooks and plan.can_allow and not plan.rules]
    if not asking:
        return False
    terminal.paragraph(
        f"{RUNTIME.install.TITLE} asks you before each command with which an agent looks into its past: "
        f"{enumerated(LOOKUPS)}, the reader, and the tools that change nothing. Rules in {enumerated(asking)} would "
        "let these pass, and nothing else. An uninstall takes them out."
    )
    return terminal.ask("Put them in?")


def ask_for_purge(purged: list[str], terminal: Terminal) -> None:
    """Has the deletion of these paths confirmed. Raises NotConfirmedError."""
    shown = [terminal.short(path) for path in purged]
    if not terminal.can_ask():
        hint = "nothing was changed; --yes does it, --dry-run shows it"
        raise NotConfirmedError(f"--purge deletes {enumerated(shown)}, for good", hint)
    for path in shown:
        terminal.item("purge", path)
    if not terminal.ask("Delete this for good, and uninstall?"):
        raise NotConfirmedError("nothing was changed")
