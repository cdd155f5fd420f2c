"""Session start: notes where a fork begins, and adds the session's past."""

from __future__ import annotations

from ...common.system.json import as_string
from ...common.text.paths import is_name
from .log import notice_of
from .prompt import answer as answer_prompt
from .prompt import joined, start_listening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...sessions.runtimes.base import Runtime
    from .context import Context, Event


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Check if there is something to do for this kind of start."""
    source = event.get("source", runtime.START_SOURCE)
    return source in ("fork", "compact", "startup", "new", "clear", "resume")


def answer(context: Context, print_answer: Callable[[dict[str, object]], None]) -> None:
    """Note where a fork begins; print the session's past and faults of settings.

    Raises SessionMemoryError, OSError."""
    runtime = context.runtime
    source = context.event.get("source", runtime.START_SOURCE)
    original = runtime.forked_from(context.event, context.own_path)
    if source == "fork" or is_name(original):
        start_listening(context, original)
    if not runtime.START_EVENT:
        return
    _name_session(context)
    notice = notice_of(context) if source != "compact" else ""
    text = past_of(context)
    if runtime.TELLS_AT_START and source != "compact":
        answer_prompt(context, print_answer, runtime.START_EVENT, joined(notice, text))
        return
    shown = runtime.notice_output(notice) if notice else {}
    injected = runtime.context_output(text, runtime.START_EVENT) if text else {}
    if shown.keys() & injected.keys():  # a runtime that shows its user nothing: the agent gets both
        injected = runtime.context_output(f"{notice}\n\n{text}", runtime.START_EVENT)
    if shown or injected:
        print_answer({**shown, **injected})


def past_of(context: Context) -> str:
    """Return the features' text about the session's past, after a compaction or at its start."""
    event = "compacted" if context.event["source"] == "compact" else "new session"
    if context.event["source"] in ("fork", "resume"):
        return ""
    answers = [context.ask(feature) for feature in context.features(event)]
    return joined(*[answer for answer in answers if isinstance(answer, str)])


def _name_session(context: Context) -> None:
    """Give the session's commands its id, if the runtime has a file for that. Raises OSError."""
    runtime, event, id = context.runtime, context.event, context.session_id
    path = as_string(event.get(runtime.VARIABLES_KEY)) if runtime.VARIABLES_KEY else ""
    is_inside = path.startswith(f"{runtime.event_config_dir(event, context.environ)}/")
    if not is_inside or "/../" in path or not id.replace("-", "").isalnum() or not id.isascii():
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"export {runtime.OWN_ID_VARIABLE}={id}\n")
