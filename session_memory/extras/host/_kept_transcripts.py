"""Restores the transcript of a group's session after the runtime or somebody deleted it."""

from __future__ import annotations

import os
from contextlib import closing

from ...app.tools.values import RefusedError
from ...common.errors import SessionMemoryError, described
from ...history.copies.pack import REDACTED, KeptSession, open_if_there, pack_path
from ...history.copies.restore import RestorePlace, restore
from ...history.store.location import find_location
from ...sessions.settings.host_layout import Group, Layout

_HINT = (
    "its archive may still be there: use search_sessions. `keep: whole` in the host's config.yaml "
    "keeps the transcripts of sessions from now on"
)


def restore_if_gone(layout: Layout, group: Group, session_id: str) -> str:
    """Restore a missing transcript from the copies that `keep` made.

    Return a sentence about it, '' if the transcript exists. Raises RefusedError if it cannot be
    restored."""
    if os.path.lexists(group.transcript(session_id)):
        return ""
    try:
        pack = open_if_there(pack_path(find_location(layout.root, os.environ).database))
        if pack is None:
            raise RefusedError("the transcript of this session is gone", _HINT)
        with closing(pack):
            session = next(
                (
                    kept
                    for kept in pack.sessions()
                    if (kept.home, kept.session_id) == (group.name, session_id)
                    and kept.runtime == group.runtime.name
                    and not kept.is_earlier
                ),
                None,
            )
            if session is None:
                raise RefusedError("the transcript of this session is gone", _HINT)
            done = restore(pack, session, group.runtime, _place(group, session), os.environ)
    except RefusedError:
        raise
    except (SessionMemoryError, OSError) as error:
        raise RefusedError(
            f"the transcript of this session is gone, and its copy cannot be used: "
            f"{described(error)}",
            "tell the user",
        ) from None
    how = "a copy without its secrets" if session.form == REDACTED else "a copy"
    lacks = "; parts of it are damaged and missing" if done.gaps else ""
    return f" Its transcript was gone, and is restored from {how}{lacks}."


def _place(group: Group, session: KeptSession) -> RestorePlace:
    """Return where the group's runtime looks for the session, even if the host was moved."""
    deletion = group.runtime.backup.deletion(group.config_dir, [group.root])
    days = deletion.days if deletion.shortest is None else deletion.shortest
    return RestorePlace(
        group.config_dir, days, lambda path: group.root if path == session.cwd else path
    )
