"""Finds the stashes, branches and worktrees of a repository that a git command takes away."""

from __future__ import annotations

from ...common.system.git import BRANCH_REFS
from ...common.system.git_refs import BRANCH, STASH, STASH_REF, SharedRef
from ...common.text.format import shorten
from ...common.text.paths import resolved
from ...common.text.sanitize import quotable
from .collisions._git import has_flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_TEXT_CHARACTERS = 40
_FORCED = ("--force", "-f", "--force-with-lease", "--mirror", "--delete", "-d")
_RESET_BRANCH = ("-B", "-C", "--force-create")


def reached_refs(words: tuple[str, ...], refs: Iterable[SharedRef]) -> list[SharedRef]:
    """Return the stashes and branches among `refs` that a git command takes away.

    A command that takes only commits from a branch counts too. `words` are the command's; `refs`
    begin with the newest stash."""
    stashes = [ref for ref in refs if ref.kind == STASH]
    verb, arguments = "".join(words[:1]), words[1:]
    if (verb == "stash" and arguments[:1] == ("clear",)) or (
        verb == "update-ref" and STASH_REF in arguments
    ):
        return stashes
    if verb == "stash" and arguments and arguments[0] in ("pop", "drop"):
        number = next((word for word in arguments[1:] if not word.startswith("-")), "0")
        number = number.removeprefix("stash@{").removesuffix("}")
        return stashes[int(number) : int(number) + 1] if number.isdecimal() else []
    names = _taken_branches(verb, arguments)
    return [ref for ref in refs if ref.kind == BRANCH and ref.name in names]


def _taken_branches(verb: str, arguments: tuple[str, ...]) -> list[str]:
    """Return the branches that a command deletes or moves.

    The name that a branch had before, and the commit it moves to, are not among them."""
    names = [word for word in arguments if not word.startswith("-")]
    if verb == "push":
        pushed = [name.lstrip("+").rpartition(":")[2] for name in names[1:]]
        deleted = [name[1:] for name in names[1:] if name.startswith(":")]
        return pushed if any([word.startswith(_FORCED) for word in arguments]) else deleted
    if verb == "update-ref":
        return [name.removeprefix(BRANCH_REFS) for name in names[:1]]
    if verb in ("checkout", "switch"):
        return _after(_RESET_BRANCH, arguments)
    return _taken_by_branch(arguments, names) if verb == "branch" else []


def _after(options: tuple[str, ...], arguments: tuple[str, ...]) -> list[str]:
    """Return the values of the options in `arguments`."""
    return [arguments[at] for at in range(1, len(arguments)) if arguments[at - 1] in options]


def _taken_by_branch(arguments: tuple[str, ...], names: list[str]) -> list[str]:
    """Return the branches that `git branch` deletes or moves."""
    if any([has_flag(word, "Dd") or word == "--delete" for word in arguments]):
        return names
    if any([word in ("-M", "-C") for word in arguments]):
        return names[-1:]
    is_forced = any([has_flag(word, "f") or word == "--force" for word in arguments])
    return names[:1] if is_forced else []


def removed_worktree(words: tuple[str, ...], directory: str) -> str:
    """Return the directory that `git worktree remove` or `move` takes away, or ''."""
    if words[:1] != ("worktree",) or words[1:2] not in (("remove",), ("move",)):
        return ""
    paths = [word for word in words[2:] if word and not word.startswith("-")]
    return resolved(paths[0], directory) if paths else ""


def effect_on(ref: SharedRef) -> str:
    """Return a command's effect on a ref, in words for the user."""
    name, text = quotable([ref.name, ref.text])
    if ref.kind == STASH:
        return f'removes the stash "{shorten(text, _TEXT_CHARACTERS)}"'
    return f"removes commits from branch {shorten(name, _TEXT_CHARACTERS)}"
