"""Shell commands that a group's agent may not run because they reveal other groups, although the runtime considers them
harmless.

The runtime checks the paths of commands that it knows to read files. It allows `du ../..`, `echo ../*` (the shell
expands the path) and `ps` (it shows all processes). This guard refuses anything that may be such a path or command,
quoted or not. `text/shell_words` does the opposite: it finds only what is certain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Commands that show processes, sockets or mounts of the whole machine.
_TELLING = {
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
_SEGMENTS = re.compile(r"[|&;(){}\n]+")
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
    if any(_tells(segment) for segment in _SEGMENTS.split(text)):
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


def _tells(segment: str) -> bool:
    words = [word for word in re.split(r"[\s'\"]+", segment) if word]
    while words and re.match(r"[A-Za-z_][A-Za-z0-9_]*=", words[0]):
        words.pop(0)
    first = words[:1] if words and words[0].rpartition("/")[2] not in _WRAPPERS else words
    return any(word.rpartition("/")[2] in _TELLING for word in first)
