"""Finds the effects of a command line on files and worktrees. Pure.

If unsure, it reports nothing. It does not use `re`.
"""

from __future__ import annotations

from .paths import resolved
from .shell_words import Word, simple_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

EDIT, REMOVE, GIT = "edit", "remove", "git"
MOVED = ("mv",)
_DEEPEST = 2  # of `sh -c` in `sh -c`
_LONGEST_PATH = 4096  # no system has longer ones
_KEYWORDS = frozenset(
    ("!", "{", "}", "do", "done", "elif", "else", "fi", "if", "then", "until", "while")
)
_RUNNERS = frozenset(("command", "doas", "env", "exec", "nice", "nohup", "sudo", "time"))
_TESTS = frozenset(("[", "[[", "cmp", "diff", "egrep", "false", "grep", "rg", "test"))
_CHANGING_DIRECTORY = frozenset(("cd", "pushd", "popd"))
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_GIT_WITH_VALUE = frozenset(("-c", "--exec-path", "--namespace", "--config-env"))
# Options of these programs that are followed by their value.
_WITH_VALUE = {
    "sed": ("-e", "-f", "-l", "--expression", "--file", "--line-length"),
    "mv": ("-t", "-S", "--target-directory", "--suffix"),
    "cp": ("-t", "-S", "--target-directory", "--suffix"),
    "touch": ("-t", "-d", "-r", "--date", "--reference"),
    "patch": ("-i", "-p", "-o", "-d", "-D", "--input", "--strip", "--output", "--directory"),
}
# A command line without any of these words has no effect that would be found.
_HINTS = (
    ">",
    "git",
    "sed",
    "perl",
    "mv ",
    "rm ",
    "cp ",
    "ln ",
    "tee ",
    "touch ",
    "patch ",
    "unlink ",
)


class ShellEffect:
    """One effect of a command line.

    `kind` is EDIT or REMOVE of the file or directory at `path`, or GIT: a git command with its
    `words` from the subcommand on, run in the directory `path`, as it was `typed`. Paths are
    absolute. The words of an EDIT are MOVED if a file was moved or linked there (which keeps its
    modification time), else none. `is_doubtful` means that the command runs only if another one
    succeeds or fails. `is_followed` means that another command runs after it, which may be the one
    that failed."""

    def __init__(self, kind: str, path: str, words: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.path = path
        self.words = words
        self.typed = ""
        self.is_doubtful = False
        self.is_followed = False

    def __repr__(self) -> str:
        return f"ShellEffect({self.kind!r}, {self.path!r}, {self.words!r})"


def effects_of(command: str, cwd: str) -> list[ShellEffect]:
    """Return the effects of a command line run in the directory `cwd` ('' if unknown), in order.

    Paths that the shell would have to expand are omitted."""
    if not any([hint in command for hint in _HINTS]):
        return []
    return _effects(command, cwd, 0)


def _effects(command: str, cwd: str, depth: int) -> list[ShellEffect]:
    effects_so_far: list[ShellEffect] = []
    outer: list[str] = []
    is_doubtful = False
    for simple_command in simple_commands(command):
        if simple_command.before == "(":
            outer.append(cwd)
        elif simple_command.before == ")" and outer:
            cwd = outer.pop()
        elif simple_command.before not in ("|", "&&"):
            is_doubtful = simple_command.before == "||"
        if simple_command.words and simple_command.before != "|":
            for effect in effects_so_far:
                effect.is_followed = True
        program, words = _program(simple_command.words)
        if program in _CHANGING_DIRECTORY:
            cwd = _entered(program, words, cwd, is_piped=simple_command.before == "|")
        effects = _effects_of_program(program, words, cwd, depth)
        effects += _redirected(simple_command.outputs, cwd)
        for effect in effects:
            effect.is_doubtful = effect.is_doubtful or is_doubtful
        effects_so_far += effects
        # A command after `&&` runs only if this one succeeds; most commands are expected to.
        first = simple_command.words[0].text if simple_command.words else ""
        is_doubtful = is_doubtful or program in _TESTS or first in _TESTS
    return effects_so_far


def _entered(program: str, words: list[Word], cwd: str, *, is_piped: bool) -> str:
    """Return the directory after `cd`, `pushd` or `popd`; '' if unknown."""
    if program == "cd":
        return cwd if is_piped else _changed(words, cwd)
    return _changed(words, cwd) if program == "pushd" else ""


def _effects_of_program(program: str, words: list[Word], cwd: str, depth: int) -> list[ShellEffect]:
    """Return the effects of a program with these arguments, or of a shell's command line."""
    if program == "git":
        return list(_git(words, cwd))
    if program in _SHELLS:
        command = _shell_command(words) if depth < _DEEPEST else ""
        return _effects(command, cwd, depth + 1) if command else []
    if program in _PROGRAMS:
        return [effect for effect in _PROGRAMS[program](program, words, cwd) if effect.path]
    return []


def _shell_command(words: list[Word]) -> str:
    """Return the command line in the arguments of a shell; '' if none or uncertain."""
    for at, option in enumerate(words[:-1]):
        if option.text in ("-c", "-lc", "-ec"):
            return words[at + 1].text if words[at + 1].is_sure else ""
    return ""


def _redirected(outputs: list[Word], cwd: str) -> list[ShellEffect]:
    """Return the edits of the files to which a command's output is redirected."""
    paths = [resolved(word.text, cwd) for word in outputs if word.is_sure and word.text]
    return [ShellEffect(EDIT, path) for path in paths if path and not path.startswith("/dev/")]


def _program(words: list[Word]) -> tuple[str, list[Word]]:
    """Return the name of the program and its arguments."""
    at = 0
    while at < len(words):
        text = words[at].text
        if text == "for":
            return "", []
        name, separator, _ = text.partition("=")
        if (
            separator and name.replace("_", "a").isalnum() and not name[:1].isdecimal()
        ) or text in _KEYWORDS:
            at += 1
        elif text in _RUNNERS:
            at += 1
            while at < len(words) and words[at].text.startswith("-"):
                at += 1
        else:
            return (text.rpartition("/")[2] if words[at].is_sure else ""), words[at + 1 :]
    return "", []


def _changed(words: list[Word], cwd: str) -> str:
    """Return the directory that `cd` enters; '' if unknown."""
    plain = [word for word in words if word.text not in ("-L", "-P", "--")]
    return "" if len(plain) != 1 or plain[0].text.startswith("-") else _below(cwd, plain[0])


def _below(cwd: str, word: Word) -> str:
    """Return the directory that a word names, relative to `cwd`; '' if unknown."""
    path = resolved(word.text, cwd) if word.is_sure else ""
    return path if len(path) <= _LONGEST_PATH else ""


def _operands(program: str, words: list[Word]) -> tuple[list[Word], dict[str, Word | None]]:
    """Split the arguments into operands and options, each option with its value if it takes one."""
    with_value = _WITH_VALUE.get(program, ())
    operands: list[Word] = []
    options: dict[str, Word | None] = {}
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        if text == "--":
            return operands + words[at + 1 :], options
        if not text.startswith("-") or len(text) < 2:
            operands.append(word)
        elif text in with_value:
            at += 1
            options[text] = words[at] if at < len(words) else None
        elif text.startswith("--"):
            name, separator, value = text.partition("=")
            options[name] = Word(value, word.is_sure) if separator else None
        else:
            options[text] = None
        at += 1
    return operands, options


def _sed(program: str, words: list[Word], cwd: str) -> Iterator[ShellEffect]:
    operands, options = _operands(program, words)
    is_in_place = "--in-place" in options
    has_script = False
    for name in options:
        if not name.startswith("--"):
            is_in_place = is_in_place or "i" in name[1:].partition("e")[0]
            has_script = (
                has_script or name in ("-e", "-f") or (name[-1:] == "e" and "i" not in name)
            )
        has_script = has_script or name in ("--expression", "--file")
    if is_in_place and operands:
        if not operands[0].text:
            del operands[0]  # `-i ''`, as on macOS
        for word in operands if has_script else operands[1:]:
            yield _effect(EDIT, word, cwd)


def _perl(program: str, words: list[Word], cwd: str) -> Iterator[ShellEffect]:
    """Only in the usual form: `perl -pi -e SCRIPT FILES`."""
    is_in_place = has_script = False
    at = 0
    while at < len(words) and words[at].text.startswith("-") and len(words[at].text) > 1:
        letters = words[at].text[1:]
        is_in_place = is_in_place or "i" in letters.partition("e")[0]
        at += 1
        if letters[-1] in "eE" and "i" not in letters[:-1].replace("pi", "").replace("ni", ""):
            has_script = True
            at += 1
    if is_in_place and has_script:
        for word in words[at:]:
            yield _effect(EDIT, word, cwd)


def _move(program: str, words: list[Word], cwd: str) -> Iterator[ShellEffect]:
    operands, options = _operands(program, words)
    target = next((options[name] for name in ("-t", "--target-directory") if name in options), None)
    is_directory = target is not None
    if target is None:
        if len(operands) < 2:
            return
        target = operands.pop()
        is_directory = len(operands) > 1 or target.text.endswith("/")
    if program == "cp" and any(name[1:2] in ("r", "R", "a") for name in options):
        return
    for word in operands:
        if program == "mv":
            yield _effect(REMOVE, word, cwd)
        moved = MOVED if program in ("ln", "mv") else ()
        if not is_directory:
            yield _effect(EDIT, target, cwd, moved)
        elif word.is_sure:
            name = word.text.rstrip("/").rpartition("/")[2]
            yield _effect(EDIT, Word(f"{target.text}/{name}", target.is_sure), cwd, moved)


def _remove(program: str, words: list[Word], cwd: str) -> Iterator[ShellEffect]:
    for word in _operands(program, words)[0]:
        yield _effect(REMOVE, word, cwd)


def _write(program: str, words: list[Word], cwd: str) -> Iterator[ShellEffect]:
    for word in _operands(program, words)[0]:
        yield _effect(EDIT, word, cwd)


def _patch(program: str, words: list[Word], cwd: str) -> Iterator[ShellEffect]:
    operands, options = _operands(program, words)
    if operands and not {"-d", "--directory", "-o", "--output", "--dry-run"} & set(options):
        yield _effect(EDIT, operands[0], cwd)


_PROGRAMS = {
    "sed": _sed,
    "gsed": _sed,
    "perl": _perl,
    "mv": _move,
    "cp": _move,
    "ln": _move,
    "rm": _remove,
    "tee": _write,
    "touch": _write,
    "patch": _patch,
    "unlink": _remove,
}


def _git(words: list[Word], cwd: str) -> Iterator[ShellEffect]:
    """Yield the git command, and the effects of `git mv` and `git rm` on files."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if text.startswith(("--git-dir", "--work-tree")):
            return
        if text == "-C":
            at += 1
            cwd = _below(cwd, words[at]) if at < len(words) else ""
        elif text in _GIT_WITH_VALUE:
            at += 1
        at += 1
    arguments = words[at:]
    if not arguments or not cwd:
        return
    subcommand = arguments[0].text
    if subcommand == "mv":
        effects = list(_move("mv", arguments[1:], cwd))
    elif subcommand == "rm" and not any(
        word.text in ("--cached", "-n", "--dry-run") for word in arguments
    ):
        effects = list(_remove("rm", arguments[1:], cwd))
    else:
        effects = [
            ShellEffect(GIT, cwd, tuple([word.text if word.is_sure else "" for word in arguments]))
        ]
        effects[0].typed = " ".join(["git", *[word.typed for word in words]])
    yield from [effect for effect in effects if effect.path]


def _effect(kind: str, word: Word, cwd: str, words: tuple[str, ...] = ()) -> ShellEffect:
    """Return an effect on the path in a word; without a path if the shell would expand the word."""
    return ShellEffect(kind, resolved(word.text, cwd) if word.is_sure and word.text else "", words)
