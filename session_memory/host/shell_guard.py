"""Refuses shell commands that reveal other groups to a group's agent although the runtime considers them harmless.

The runtime checks the paths of commands that it knows to read files. It allows `du ../..`, `echo ../*` (the shell
expands the path) and `ps` (it shows all processes). The guard refuses anything that may be such a path, quoted or not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..text.shell_words import Word, simple_commands

# Commands that show processes, sockets or mounts of the whole machine.
_REVEALING = {
    "atop", "df", "findmnt", "fuser", "htop", "journalctl", "last", "lsns", "lsof", "mount", "netstat", "pgrep",
    "pidof", "ps", "pstree", "pwdx", "ss", "systemctl", "top", "users", "w", "who",
}  # fmt: skip
_WRAPPERS = {
    "builtin", "command", "doas", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout",
    "xargs",
}  # fmt: skip
_EXPANSION = re.compile(r"`|\$[A-Za-z0-9_{(\[']|<\(|>\(")  # an expansion whose result is unknown in advance
_HIDDEN_GLOB = re.compile(r"\.[^/]*[*?\[]")  # `.*` and `.?` may match `..`
_DOT_IN_BRACES = re.compile(r"\.\{|\}\.|\{[^}]*\.\.?[,}]")
_SEPARATORS = re.compile(r"[\s=:,<>|&;(){}]+")
_QUOTES = re.compile("['\"]")
_BEFORE_COMMAND = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=|(!|[{}]|do|done|elif|else|fi|if|then|until|while)$")
OUTSIDE = "it reaches beyond your directory; name files by paths below it, without `..`, `~` and variables"
OF_THE_MACHINE = "it shows what runs on the whole machine, which is not yours to see"


def refusal(command: str, root: str, allowed_tools: Sequence[str] = ()) -> str:
    """Return the reason why the agent in `root` may not run a shell command; '' to let the runtime decide.

    Commands that `allowed_tools` permits (`Bash`, `Bash(npm test:*)`) are the operator's own decision.
    """
    if any(_allows(one, command) for one in allowed_tools):
        return ""
    text = command.replace("\\", "")
    if _EXPANSION.search(command) or _DOT_IN_BRACES.search(text):
        return OUTSIDE
    for reading in (_QUOTES.sub("", text), _QUOTES.sub(" ", text)):
        if any(_is_outside(word, root) for word in _SEPARATORS.split(reading)):
            return OUTSIDE
    if any(_reveals(one.words) for one in simple_commands(command)):
        return OF_THE_MACHINE
    return ""


def _allows(entry: str, command: str) -> bool:
    if entry in ("Bash", "Bash(*)"):
        return True
    if not (entry.startswith("Bash(") and entry.endswith(")")):
        return False
    rule = entry[len("Bash(") : -1]
    prefix = rule.removesuffix(":*").removesuffix("*")
    return command == rule or (prefix != rule and command.startswith(prefix))


def _is_outside(word: str, root: str) -> bool:
    if word.startswith("/"):
        is_below = word in ("/dev/null", root) or word.startswith(root + "/")
        return not is_below or ".." in word.split("/")
    return word.startswith("~") or any(part == ".." or _HIDDEN_GLOB.match(part) for part in word.split("/"))


def _reveals(words: list[Word]) -> bool:
    """Check if the program is one that shows the whole machine; after a wrapper, any word may be the program."""
    names = [word.text.rpartition("/")[2] for word in words if not _BEFORE_COMMAND.match(word.text)]
    return not _REVEALING.isdisjoint(names if names[:1] and names[0] in _WRAPPERS else names[:1])
