"""Commands that change a repository or its packages, such as `git push` and `npm install x`.

Without `re`, which takes long to import. Pure."""

from __future__ import annotations

_MOST_CHARACTERS = 4000  # of a command line; the rest is ignored
PACKAGE_PROGRAMS = (
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "npx",
    "bunx",
    "pip",
    "pip3",
    "pipx",
    "uv",
    "uvx",
    "poetry",
    "conda",
    "cargo",
    "go",
    "gem",
    "bundle",
    "composer",
    "brew",
    "deno",
    "dotnet",
)
_RUNS_PACKAGES = ("npx", "bunx", "uvx")
_BEFORE = (
    "sudo",
    "env",
    "command",
    "exec",
    "time",
    "nohup",
    "nice",
    "then",
    "do",
    "else",
    "if",
    "!",
)
_READING = (
    "blame",
    "branch",
    "cat-file",
    "config",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "reflog",
    "remote",
    "rev-parse",
    "shortlog",
    "show",
    "status",
)
_NAMES_REFS = ("fetch", "merge", "pull", "push", "rebase", "tag")
_GIT_VALUES = ("-C", "-c", "--git-dir", "--work-tree", "--namespace")
_VALUES = ("-m", "-am", "--message", "-F", "-r", "--requirement", "--prefix", "--filter", "-w")
_RUNNING = ("run", "run-script", "exec", "x", "dlx")
_INSTALLING = ("install", "i", "add", "get", "require")
_UPGRADING = ("update", "upgrade", "up")
_REMOVING = ("remove", "uninstall", "rm", "un")


class Act:
    """The actions of a command in `words`, such as `push`, and the `names` it acts on.

    The names are of packages or branches."""

    def __init__(self, words: list[str], names: list[str]) -> None:
        self.words = words
        self.names = names


def may_act(command: str) -> bool:
    """Check quickly if a command line may have acts."""
    if "git" in command:
        return True
    return any([f"{program} " in command for program in PACKAGE_PROGRAMS])


def acts_in(command: str) -> list[Act]:
    """Return the actions of a command line's git and package commands, in order.

    Commands that only read are left out."""
    from .shell_words import simple_commands  # imported late: most calls need none

    acts = []
    for simple in simple_commands(command[:_MOST_CHARACTERS]):
        program, words = _program([word.text for word in simple.words])
        if program == "git":
            act = _of_git(words)
        elif program in PACKAGE_PROGRAMS:
            act = _of_packages(program, words)
        else:
            continue
        if act is not None:
            acts.append(act)
    return acts


def _program(words: list[str]) -> tuple[str, list[str]]:
    """Return the program that runs, without its directory, and its arguments."""
    for at, word in enumerate(words):
        is_assignment = word.partition("=")[0].isidentifier() and "=" in word
        if not is_assignment and word not in _BEFORE:
            program, arguments = word.rpartition("/")[2], words[at + 1 :]
            is_module = program.startswith("python") and arguments[:2] == ["-m", "pip"]
            return ("pip", arguments[2:]) if is_module else (program, arguments)
    return "", []


def _of_git(words: list[str]) -> Act | None:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUES else 1
    if at >= len(words) or words[at] in _READING:
        return None
    names = _plain(words[at + 1 :]) if words[at] in _NAMES_REFS else []
    return Act([words[at]], [name for name in names if "/" not in name and "." not in name])


def _of_packages(program: str, words: list[str]) -> Act | None:
    plain = _plain(words)
    if program == "uv" and plain[:1] == ["pip"]:
        plain = plain[1:]
    if program in _RUNS_PACKAGES:
        return Act([], [_package(name) for name in plain[:1]])
    if plain and plain[0] in _RUNNING:
        return Act(plain[1:2], [])
    if not plain:
        return None
    names = [_package(name) for name in plain[1:] if not name.startswith(".") and ":" not in name]
    if plain[0] in _INSTALLING:
        return Act(["install", "dependency"], names) if names else None  # else of known packages
    if plain[0] in _UPGRADING:
        return Act(["upgrade", "dependency"], names)
    return Act(["dependency"], names) if plain[0] in _REMOVING else Act(plain[:1], [])


def _plain(words: list[str]) -> list[str]:
    """Return the arguments that are neither options nor the values of options."""
    return [
        word
        for before, word in zip(["", *words], words)
        if word and not word.startswith("-") and before not in _VALUES
    ]


def _package(name: str) -> str:
    """Return the name of a package without the @ of its scope, its version and its extras."""
    name = name[:1].replace("@", "") + name[1:]
    for mark in ("@", "=", "<", ">", "~", "!", "["):
        name = name.partition(mark)[0]
    return name
