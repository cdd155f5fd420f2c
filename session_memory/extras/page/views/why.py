"""Lines of a file by session: the reason for each, with the request beside it."""

from __future__ import annotations

import os
from typing import Any

from ....common.system.git import find_worktree
from ....common.system.git_process import GitUnavailableError
from ....common.text.sanitize import for_people
from ....common.text.written_lines import normalised
from ....history.git.commits import Repository, worktree_lines
from ....history.patterns.why import Reasons
from ....history.store.sqlite.written_lines import known_key
from .._dialogue import CallDetail, call_detail
from .._diffs import hunks_of
from .._labels import shown
from .._page_request import NotFoundError, PageRequest
from .._view import View
from .session import shown_call

SHOWN_LINES = 2000
SHOWN_CHARACTERS = 400  # of a line


def _of_file(request: PageRequest) -> dict[str, Any]:
    """Return the `runs` of lines, by reason, of the file that the session's edit names.

    `asked` are the present numbers of the lines that the edit's hunk `hunk` added, with a 0 if
    there are none. No other file is read."""
    conversation, item = shown_call(request)
    path = os.path.join(conversation.cwd, item.text)
    worktree = find_worktree(os.path.dirname(path), request.location.home.user_dir)
    if item.kind != "edit" or worktree is None or not worktree.root or not os.path.isfile(path):
        raise NotFoundError("this file is no longer in a repository", "look at the edit itself")
    repository = Repository(worktree.git_dir, worktree.root)
    reasons = Reasons(request.store, repository, known_key(request.store.path))
    real = os.path.realpath(path)
    inside = os.path.relpath(real, worktree.root)
    try:
        lines = [for_people(line[:SHOWN_CHARACTERS]) for line in worktree_lines(real)[:SHOWN_LINES]]
        reasons_found = reasons.of_lines(inside, 1, SHOWN_LINES)
    except GitUnavailableError as error:
        raise NotFoundError(
            "git has no record of who wrote this file", "run session-memory why FILE"
        ) from error
    runs = [
        (shown(reason), list(enumerate(lines[reason.first - 1 : reason.last], reason.first)))
        for reason in reasons_found
    ]
    hunk = request.number("hunk", 0, SHOWN_LINES)
    numbers = (
        _added_by(call_detail(request.location, conversation, item), hunk, lines) if hunk else []
    )
    return {
        "path": for_people(inside),
        "runs": runs,
        "asked": numbers or [0],
        "is_gone": bool(hunk) and not numbers,
    }


def _added_by(call: CallDetail, hunk: int, lines: list[str]) -> list[int]:
    """Return the numbers of the lines that one hunk of an edit added.

    They are found by their text, wherever they are now."""
    hunks = hunks_of(call.diff) if call.diff else []
    texts = (
        {normalised(text[:SHOWN_CHARACTERS]) for text in hunks[hunk - 1].texts} - {""}
        if hunk <= len(hunks)
        else {}
    )
    return [number for number, line in enumerate(lines, 1) if normalised(line) in texts]


VIEWS = (View("session_why", "/session/{session}/why", _of_file),)
