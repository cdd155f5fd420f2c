"""The past for a session's agent: its own conversation, or the last ones in its directory."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...awareness.events.context import Context


def after_compaction(context: Context) -> str | None:
    """Return the text with the path of the whole conversation; None without an archive.

    Raises OSError."""
    from .list import compaction_text, find_archive

    directory = context.home.conversations_dir
    archive = find_archive(directory, context.session_id)
    return (
        compaction_text(archive[0])
        if archive
        else _private_archive_text(directory, context.session_id)
    )


def recent(context: Context) -> str | None:
    """Return the text about the last conversations in the same directory. Raises OSError."""
    from ...sessions.settings.homes import environment
    from ...sessions.settings.privacy import Privacy
    from .list import facts_without_text, recent_text, visible_archives

    directory, count = context.home.conversations_dir, context.settings.recent_conversations
    privacy = Privacy(environment(), context.home)
    archives = [*visible_archives(directory, privacy)]
    archives += [("", facts) for facts in facts_without_text(directory, privacy)]
    return recent_text(
        directory, archives, str(context.event.get("cwd", "")), count, context.session_id
    )


def _private_archive_text(directory: str, session_id: str) -> str | None:
    """Return the text for an archive that only this session may see."""
    from ...sessions.confined_files import OutsideGroupError
    from .list import compaction_text, find_archive, private_folder, private_path

    try:
        with private_folder(directory) as folder:
            archive = find_archive(folder, session_id)
    except (FileNotFoundError, OutsideGroupError):
        return None
    return (
        compaction_text(private_path(directory, archive[0].rpartition("/")[2])) if archive else None
    )
