"""What a git command would do to a worktree that others work in, by its words. Pure."""

from __future__ import annotations

from ..text.paths import resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MOVES = ("switch", "rebase", "pull", "merge")
_NO_STASH = ("list", "show", "drop", "pop", "apply", "branch", "clear", "create", "store")
_DRY = ("-n", "--dry-run")
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
    if command in _MOVES:
        return None if set(rest) & {"--abort", "--continue", "--skip", "--quit"} else Reach(moves=True)
    if command in ("checkout", "restore"):
        return _checked_out(command, rest, directory, is_there)
    if command == "stash":
        return None if rest[:1] and rest[0] in _NO_STASH else Reach(("",))
    if command == "reset" and {"--hard", "--merge", "--keep"} & set(rest):
        to = [word for word in rest if not word.startswith("-") and word != "HEAD"]
        return Reach(moves=True) if to else Reach(("",))
    if command == "clean":
        is_forced = any([_has_letter(word, "f") or word == "--force" for word in rest])
        is_dry = any([_has_letter(word, "n") or word == "--dry-run" for word in rest])
        return Reach(_paths(rest, directory) or (directory,)) if is_forced and not is_dry else None
    if command == "commit" and not set(rest) & {"--dry-run"}:
        return Reach(("",)) if any([_has_letter(word, "a") or word == "--all" for word in rest]) else None
    if command == "add" and not set(rest) & set(_DRY):
        is_all = any(
            [_has_letter(word, "A") or _has_letter(word, "u") or word in ("--all", "--update") for word in rest]
        )
        return Reach(_paths(rest, directory) or (("",) if is_all else ()))
    return None


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


def _has_letter(word: str, letter: str) -> bool:
    """Whether a word is some short options with this one among them: `-am`, but not `-mam`."""
    return word[:1] == "-" and word[1:2] != "-" and letter in word[1:].partition("m")[0]
