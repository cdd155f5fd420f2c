"""The moment from which a session may wait for its user.

The event alone does not tell: a turn may go on, or a background command may still run. A separate
process finds out and sends the notice, so no runtime waits for it."""

from __future__ import annotations

from ...sessions.settings.compiled import NOTICES_WITHOUT_WATCH
from ...sessions.settings.homes import environment, person_home
from .upkeep_start import start_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...sessions.runtimes.base import Runtime
    from .context import Context, Event

_SCRIPT = "/hooks/notice.py"


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Check if the person wants notices. Only their own settings count."""
    return person_home(environment()).settings().notices in NOTICES_WITHOUT_WATCH


def start_notice(context: Context) -> None:
    """Start the process that sends a notice if the session waits. Raises OSError."""
    if not context.home.is_isolated:
        start_script(_SCRIPT, context.session_id)
