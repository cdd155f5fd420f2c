"""Labels of sessions: the name of a project, and quotations on one line.

A quotation is shown without Markdown, which only a whole text can render.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from ..common.system.files import user_dir
from ..common.system.git import find_worktree
from ..common.text.format import one_line, shorten
from ..common.text.sanitize import beginning, for_people
from ..sessions.settings.homes import person_home
from ..sessions.transcripts.earlier_paths import present_directory

_FENCES = ("```", "~~~")
_RULE = set("|:- \t")  # and a line below the head of a table
# Patterns with linear running time on any line.
_LEAD = re.compile(r"[ \t]*(?:(?:#{1,6}|>)[ \t]+|[-*+][ \t]+(?=\S))")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_BOLD = re.compile(r"\*\*(?=\S)([^*]+)(?<=\S)\*\*")
_CODE = re.compile(r"(`{1,2})([^`]+)\1")


@lru_cache(maxsize=2000)
def project_of(cwd: str) -> str:
    """Return the name of a directory's project.

    It is the name of the repository's directory, wherever that has moved, else the directory's own
    name."""
    worktree = None
    if cwd.startswith("/"):
        present = present_directory(person_home(os.environ).repositories_file, cwd)
        worktree = find_worktree(present, user_dir(os.environ))
    if worktree is not None:
        top = (
            os.path.dirname(worktree.common_dir)
            if worktree.common_dir.endswith("/.git")
            else worktree.root
        )
        return for_people(os.path.basename(top) or top)
    return for_people(os.path.basename(cwd.rstrip("/")) or cwd)


def quoted(text: str, characters: int) -> str:
    """Return the beginning of `text` on one line for people, in at most so many characters."""
    lines = [_plain(line) for line in for_people(beginning(text, 4 * characters)).split("\n")]
    return shorten(one_line(" ".join(lines)), characters)


def _plain(line: str) -> str:
    """Return a line as it reads when rendered."""
    if line.lstrip().startswith(_FENCES) or ("---" in line and set(line) <= _RULE):
        return ""
    lead = _LEAD.match(line)
    if lead:
        line = ("• " if lead[0].strip() in ("-", "*", "+") else "") + line[lead.end() :]
    for pattern, content in ((_LINK, r"\1"), (_BOLD, r"\1"), (_CODE, r"\2")):
        line = pattern.sub(content, line)
    return line
