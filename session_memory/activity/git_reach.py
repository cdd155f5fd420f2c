"""What a git command would do to a worktree that others work in, by its words. Pure."""

from __future__ import annotations

from ..text.paths import resolved
from .git_commands import MOVES, has_flag, takes_away, takes_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NEW_BRANCH = ("-b", "-B", "--orphan", "--detach", "-d")


class Reach:
    """What a command reaches: with `moves` the worktree as a whole, which is at another commit then; else what is not
    committed below one of `paths` (absolute; '' for all that is in the worktree)."""

    __slots__ = ("moves", "paths")

    def __init__(self, paths: tuple[str, ...] = (), *, moves: bool = False) -> None:
        self.paths = paths
        self.moves = moves

    def covers(self, path: str) -> bool:
        """Whether it reaches what is not committed of the file at `path`."""
        return any([not one or path == one or path.startswith(one.rstrip("/") + "/") for one in self.paths])


def reach_of(words: tuple[str, ...], directory: str, is_there: Callable[[str], bool]) -> Reach | None:
    """What the git command with these `words`, from the subcommand on, reaches when it is run in `directory`; None for
    one that takes nothing from others. `is_there` tells whether a path exists."""
    command, rest = words[0], words[1:]
    if not (takes_in(words) or takes_away(words)):
        return None
    if command in MOVES:
        return None if set(rest) & {"--abort", "--continue", "--skip", "--quit"} else Reach(moves=True)
    if command in ("checkout", "restore"):
        return _checked_out(command, rest, directory, is_there)
    if command == "reset" and [word for word in rest if not word.startswith("-") and word != "HEAD"]:
        return Reach(moves=True)
    if command == "clean":
        return Reach(_paths(rest, directory) or (directory,))
    if command == "commit":
        return Reach(("",)) if any([has_flag(word, "a") or word == "--all" for word in rest]) else None
    if command == "add":
        is_all = any([has_flag(word, "Au") or word in ("--all", "--update") for word in rest])
        return Reach(_paths(rest, directory) or (("",) if is_all else ()))
    return Reach(("",))  # a stash, or a reset to HEAD


def _checked_out(command: str, rest: tuple[str, ...], directory: str, is_there: Callable[[str], bool]) -> Reach | None:
    """`checkout` of a branch moves the worktree; of paths, as `restore`, it takes away what is not committed there."""
    if "--" in rest:
        return Reach(_paths(rest[rest.index("--") + 1 :], directory))
    if command == "restore":
        return None if "--staged" in rest and "--worktree" not in rest else Reach(_paths(rest, directory))
    paths = _paths(rest, directory)
    if not paths or any([word in _NEW_BRANCH for word in rest]):
        return Reach(moves=True) if rest else None
    if len(paths) > 1 and not is_there(paths[0]):  # out of a commit
        paths = paths[1:]
    return Reach(paths) if all([is_there(path) for path in paths]) else Reach(moves=True)


def _paths(words: tuple[str, ...], directory: str) -> tuple[str, ...]:
    return tuple([resolved(word, directory) for word in words if word and not word.startswith("-")])
