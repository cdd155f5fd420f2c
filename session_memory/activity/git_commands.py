"""What git commands do to what is not committed, by their words. Pure."""

from __future__ import annotations

from ..text.paths import resolved
from .touches import GIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .touches import Touch

_COMMIT_VALUES = ("--message", "--file", "--author", "--date", "--reuse-message", "--reedit-message", "--template")
_NO_STASH = ("list", "show", "drop", "pop", "apply", "branch", "clear", "create", "store")
MOVES = ("switch", "rebase", "pull", "merge")
_TAKE_AWAY = (*MOVES, "restore", "checkout")


def stages(touch: Touch, path: str) -> bool | None:
    """Whether a git command puts what is in the file at `path` into the index; None for one that commits what was there
    before."""
    if touch.words[:1] not in (("add",), ("stage",), ("commit",)):
        return False
    is_commit, is_value, named = touch.words[0] == "commit", False, []
    for word in touch.words[1:]:
        if is_value:
            is_value = False
        elif word.startswith("-") and word != "--":
            is_long = word.startswith("--")
            if word in ("--all", "--update", "--include") or has_flag(word, "aAui"):
                return True
            is_value = is_commit and (word in _COMMIT_VALUES or (not is_long and word[-1] in "mFCct"))
        elif word != "--":
            named.append(word)
    for word in named:
        at = resolved(word, touch.path)
        if not word or word[0] == ":" or set("*?[") & set(word) or path == at or path.startswith(at.rstrip("/") + "/"):
            return True
    return None if is_commit and not named else False


def has_flag(word: str, letters: str) -> bool:
    """Whether a word is some short options with one of these among them: `-am`, but not `-mam`."""
    if word[:1] != "-" or word[1:2] == "-":
        return False
    for letter in word[1:]:
        if letter in "mFCct":  # its value is in the same word
            return False
        if letter in letters:
            return True
    return False


def takes_in(words: tuple[str, ...]) -> bool:
    """Whether a git command stages or commits what lies in the worktree."""
    if words[0] == "add":
        return "-n" not in words and "--dry-run" not in words
    return words[0] == "commit" and "--dry-run" not in words


def may_remove(words: tuple[str, ...]) -> bool:
    """Whether a git command that takes away may remove a file that is not committed."""
    if words[0] == "reset":
        return "--hard" in words
    is_switch = words[0] in ("switch", "checkout") and not {"-b", "-c", "-B", "-C", "--"} & set(words)
    return is_switch or words[0] in ("stash", "clean")


def is_given_back(touch: Touch, touches: list[Touch]) -> bool:
    """Whether what a git command took away came back with the same call, as with `git stash && git pull && git stash
    pop`."""
    return touch.words[0] == "stash" and any(
        one.kind == GIT
        and one.call_id == touch.call_id
        and one.words[:1] == ("stash",)
        and one.words[1:2] in (("pop",), ("apply",))
        for one in touches
    )


def takes_away(words: tuple[str, ...]) -> bool:
    """Whether a git command may write over what is not committed, or remove it."""
    if words[0] == "stash":
        return words[1:2] == () or words[1] not in _NO_STASH
    if words[0] == "reset":
        return bool({"--hard", "--merge", "--keep"} & set(words))
    if words[0] == "clean":
        is_forced = any([has_flag(word, "f") or word == "--force" for word in words])
        return is_forced and not any([has_flag(word, "n") or word == "--dry-run" for word in words])
    return words[0] in _TAKE_AWAY
