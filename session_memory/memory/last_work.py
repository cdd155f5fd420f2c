"""Answers a question about the last sessions that names nothing to look for."""

import os

from ..common.system.files import user_dir
from ..common.system.git import find_worktree
from ..history.store.sqlite.engine import SqliteStore
from ..history.store.values import Conversation, Filter
from .strategies.extractive.strategy import log_line

MOST = 3  # sessions
MOST_CONVERSATIONS = 50  # that are looked through for them


def last_work(
    store: SqliteStore, wanted: Filter, own_session: str
) -> list[tuple[Conversation, str]]:
    """Return the latest matching conversations, each with its line of the log.

    They are the current project's, if it has any. There is one of each session, except the asking
    one."""
    worktree = find_worktree(os.path.realpath("."), user_dir(os.environ))
    here = (worktree.root,) if worktree and worktree.root else ()
    found: dict[str, tuple[Conversation, str]] = {}
    for directories in dict.fromkeys([wanted.directories or here, wanted.directories]):
        for one in store.conversations(
            wanted._replace(directories=directories, limit=MOST_CONVERSATIONS)
        ):
            if (
                one.session_id != own_session
                and one.session_id not in found
                and len(found) < min(MOST, wanted.limit)
            ):
                line = log_line(one, list(store.entries(one.id)))
                if line:
                    found[one.session_id] = one, line
        if found:
            break
    return list(found.values())
