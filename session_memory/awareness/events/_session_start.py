"""Session start: notes where a fork begins, and injects the session's past."""

from __future__ import annotations

from .log import notice_of
from .prompt import start_listening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...sessions.runtimes import Runtime
    from .context import Context, Event


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Check if there is something to do for this kind of start."""
    return event.get("source") in ("fork", "compact", "startup", "new", "clear", "resume")


def answer(context: Context, print_answer: Callable[[dict[str, object]], None]) -> None:
    """Note where a fork begins; print the session's past and faults of settings. Raises
    SessionMemoryError, OSError."""
    source = context.event["source"]
    if source == "fork":
        start_listening(context)
    runtime = context.runtime
    if not runtime.START_EVENT:
        return
    notice = notice_of(context) if source != "compact" else ""
    text = past_of(context)
    shown = runtime.notice_output(notice) if notice else {}
    injected = runtime.context_output(text, runtime.START_EVENT) if text else {}
    if shown.keys() & injected.keys():  # a runtime that shows its user nothing: the agent gets both
        injected = runtime.context_output(f"{notice}\n\n{text}", runtime.START_EVENT)
    if shown or injected:
        print_answer({**shown, **injected})


def past_of(context: Context) -> str | None:
    """Return the path of the whole conversation after a compaction; for a new session, if the
    settings ask for it, the last conversations in the same directory."""
    directory = context.home.conversations_dir
    source = context.event["source"]
    if source == "compact":
        from ...history.archives.list import compaction_text, find_archive

        found = find_archive(directory, context.session_id)
        return (
            compaction_text(found[0])
            if found
            else _private_archive_text(directory, context.session_id)
        )
    count = context.settings.recent_conversations
    if not count or source not in ("startup", "new", "clear"):
        return None
    from ...history.archives.list import facts_without_text, recent_text, visible_archives
    from ...sessions.settings.homes import environment
    from ...sessions.settings.privacy import Privacy

    privacy = Privacy(environment(), context.home)
    archives = [*visible_archives(directory, privacy)]
    archives += [("", facts) for facts in facts_without_text(directory, privacy)]
    return recent_text(
        directory, archives, str(context.event.get("cwd", "")), count, context.session_id
    )


def _private_archive_text(directory: str, session_id: str) -> str | None:
    """Return the same for an archive that only this session may know."""
    from ...history.archives.list import compaction_text, find_archive, private_folder, private_path
    from ...sessions.confined_files import OutsideGroupError

    try:
        with private_folder(directory) as folder:
            found = find_archive(folder, session_id)
    except (FileNotFoundError, OutsideGroupError):
        return None
    return compaction_text(private_path(directory, found[0].rpartition("/")[2])) if found else None
