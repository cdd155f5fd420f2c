"""Lines about losses: a ref that another session took away, and the command that restores it."""

from __future__ import annotations

from ....common.system.git_refs import BRANCH, STASH, short_id
from ....common.text.format import enumerated, shorten
from ....common.text.sanitize import quotable
from ..report import NAME_CHARACTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .facts import Fact

STASH_VERBS = {"pop": "popped", "drop": "dropped", "clear": "cleared", "branch": "popped"}
NAMED_FILES = 3
RESCUE = "session-memory rescue"  # where no command of git brings work back
_PLAIN = "-_./@+="  # besides letters and digits, characters that a shell takes literally in a name


def lost_line(fact: Fact, by: str) -> str:
    """Return the line about a loss; `by` says when and by whom."""
    loss = fact.loss
    assert loss is not None
    ref, short = loss.ref, short_id(loss.ref.commit)
    name, text, branch, place = quotable([ref.name, ref.text, ref.branch, loss.now])
    if ref.kind == STASH:
        stash, verb = f'stash "{shorten(text, NAME_CHARACTERS)}"', fact.words[1:2]
        done = STASH_VERBS.get(verb[0], "dropped") if verb else "dropped"
        if not fact.is_after:
            made_by = by.partition(" by ")[2] or "another session"
            return f"! you {done} the {stash} of {made_by}: git stash store {short} puts it back"
        return f"! your {stash} was {done} {by}: git stash apply {short}"
    if ref.kind == BRANCH:
        branch = f"your branch {shorten(name, NAME_CHARACTERS)}"
        if loss.now:
            way = _command("git branch", f"{name}-{short}", short)
            return f"! {branch} is no longer at {short}, moved {by}: {way}"
        return f"! {branch} was deleted {by}: {_command('git branch', name, short)}"
    worktree = f"your worktree {shorten(name, NAME_CHARACTERS)}"
    if place and place != text:
        return f"! {worktree} was moved {by}: it is {place} now"
    done = "removed and recreated" if place else "removed"
    if fact.files:
        more = len(fact.files) - NAMED_FILES
        files = [*quotable(list(fact.files[:NAMED_FILES])), *([f"{more} more"] if more > 0 else [])]
        edits = "edit of" if len(fact.files) == 1 else "edits of"
        lost = f"with your uncommitted {edits} {enumerated(files)}"
        return f"! {worktree} was {done} {by}, {lost}: {RESCUE}"
    way = _command("git worktree add", text, branch or short) if not place else ""
    return f"! {worktree} was {done} {by}" + (f": {way}" if way else "")


def _command(command: str, name: str, about: str) -> str:
    """Return a command that contains a name.

    If a shell would interpret the name, return only the commit."""
    is_plain = all(
        [letter.isalnum() or letter in _PLAIN for word in (name, about) for letter in word]
    )
    return f"{command} {name} {about}" if is_plain and name[:1] != "-" else f"commit {about}"
