"""The family of a shell command line: what it does in a few words, as `npm run check` or `git commit`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

MOST_PARTS = 3
LOOKING = "(looking around)"

# Programs with subcommands, which say more than the program.
_WITH_SUBCOMMAND = frozenset((
    "apt", "apt-get", "aws", "az", "brew", "bun", "bundle", "cargo", "composer", "conda", "deno", "docker",
    "docker-compose", "dotnet", "flutter", "gcloud", "gem", "gh", "git", "go", "gradle", "helm", "just", "kubectl",
    "make", "mix", "mvn", "npm", "pip", "pip3", "pnpm", "poetry", "rails", "rustup", "systemctl", "terraform", "uv",
    "xcodebuild", "yarn"
))  # fmt: skip
# Programs whose subcommands `run` and `exec` are followed by the name of what runs.
_RUNNERS = frozenset(("bun", "bundle", "deno", "npm", "pnpm", "poetry", "uv", "yarn"))
_BEFORE = frozenset((
    "bunx", "command", "doas", "env", "exec", "nice", "nohup", "npx", "pnpx", "sudo", "time", "timeout", "uvx",
    "xvfb-run"
))  # fmt: skip
_TAKES_A_NUMBER = frozenset(("timeout", "nice"))
_INTERPRETERS = re.compile(r"(?:python|pypy|node|ruby|perl|php|bash|sh|zsh|tsx|ts-node|deno)[\d.]*$")
_SILENT = frozenset((
    ".", ":", "cd", "echo", "eval", "export", "false", "for", "popd", "printf", "pushd", "set", "sleep", "source",
    "true", "unset", "wait"
))  # fmt: skip
_LOOKERS = frozenset((
    "[", "[[", "ack", "ag", "awk", "basename", "bat", "cat", "column", "cut", "date", "df", "diff", "dirname", "du",
    "egrep", "env", "fd", "fgrep", "file", "find", "grep", "head", "hexdump", "id", "jq", "less", "locate", "ls",
    "lsof", "md5sum", "more", "nl", "pgrep", "ps", "pwd", "readlink", "realpath", "rg", "sed", "sha256sum", "sort",
    "stat", "strings", "tail", "test", "top", "tr", "tree", "type", "uname", "uniq", "wc", "whereis", "which",
    "whoami", "xxd", "yq"
))  # fmt: skip
_GIT_LOOKERS = frozenset((
    "blame", "branch", "describe", "diff", "grep", "log", "ls-files", "reflog", "remote", "rev-parse", "shortlog",
    "show", "status"
))  # fmt: skip
_KEYWORDS = frozenset(("do", "done", "elif", "else", "fi", "function", "if", "in", "then", "until", "while"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_FINDS_NOTHING = frozenset((
    "[", "[[", "ack", "ag", "cmp", "diff", "egrep", "fd", "fgrep", "git", "grep", "pgrep", "rg", "test", "which"
))  # fmt: skip


@lru_cache(maxsize=1024)  # callers ask for the same command several times in a row
def family(command: str) -> str:
    """Return programs and subcommands without their arguments; '' if nothing is left.

    `cd /x && npm run check 2>&1 | tail -5` is `npm run check`. Returns LOOKING if the command only reads.
    """
    parts = [name for words in _simple_commands(command) if (name := _name(words))]
    doing = [name for name in parts if name != LOOKING]
    return " && ".join(list(dict.fromkeys(doing or parts))[:MOST_PARTS])


def is_looking(command: str) -> bool:
    """Check if a command line only reads or does nothing."""
    return family(command) in (LOOKING, "")


def may_find_nothing(command: str) -> bool:
    """Check if the exit code may mean "not found", as with grep, diff and test."""
    last = next(reversed(_simple_commands(command, every=True)), [])
    program = _program(last)[0]
    return program in _FINDS_NOTHING and (program != "git" or last[1:2] in (["grep"], ["diff"]))


def commit_message(command: str) -> str:
    """Return the first line of the message of a `git commit -m`; '' for any other command."""
    for words in _simple_commands(command):
        if words[:1] == ["git"] and "commit" in words[1:4]:
            for at, word in enumerate(words[:-1]):
                if word in ("-m", "-am", "--message"):
                    return _first_line(words[at + 1])
    return ""


def _first_line(message: str) -> str:
    """Return the first line of a message, which may be a here-document: `$(cat <<'EOF' ...`."""
    lines = [line.strip() for line in message.splitlines()]
    told = [line for line in lines if line and not line.startswith("$(cat") and line not in ("EOF", ")", 'EOF"')]
    return told[0] if told else ""


def _simple_commands(command: str, every: bool = False) -> list[list[str]]:
    """Return the words of each command without their quotes; of a pipeline only the first command, unless `every`."""
    found: list[list[str]] = []
    words: list[str] = []
    is_piped = False
    for operator, word in [*_tokens(command), (";", "")]:
        if operator:
            if words and (every or not is_piped):
                found.append(words)
            words, is_piped = [], operator == "|"
        elif words or word not in _KEYWORDS:
            words.append(word)
    return found


_TOKEN = re.compile(
    r"""(?P<operator>&&|\|\||;|\n|\|&?|&(?!>))|(?P<redirection>\d*(?:>>?|<)&?\s*[^\s;|&]*|&>>?\s*\S+)|"""
    r"""(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;|&<>'"\\]|['"])+)|[ \t\r]+|.""",
    re.DOTALL,
)
_QUOTES = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""", re.DOTALL)


def _tokens(command: str) -> Iterator[tuple[str, str]]:
    """Yield operators and words in order, as pairs of which one is ''."""
    command = command.replace("\\\n", " ")
    here = re.search(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n", command)
    if here and not re.search(r"-m\s+\"\$\(cat", command[: here.start()]):
        command = command[: here.end()]  # the here-document follows
    for match in _TOKEN.finditer(command):
        if match["operator"]:
            yield match["operator"].removesuffix("&") or "&", ""
        elif match["word"]:
            yield "", _QUOTES.sub(_unquoted, match["word"])


def _unquoted(quoted: re.Match[str]) -> str:
    if quoted[2]:
        return re.sub(r'\\([\\"`$])', r"\1", quoted[2])
    return quoted[1] or quoted[3] or ""


def _name(words: list[str]) -> str:
    """Return the name of a simple command; '' for one that does nothing by itself."""
    program, rest = _program(words)
    if not program or program in _SILENT or program.startswith("#"):
        return ""
    if program in _LOOKERS and not (program == "sed" and any(word.startswith("-i") for word in rest)):
        return LOOKING
    plain = [word for word in rest if not word.startswith("-")]
    if program == "git":
        plain = [word for word in plain if "/" not in word and "=" not in word]
        return LOOKING if plain[:1] and plain[0] in _GIT_LOOKERS else " ".join(["git", *plain[:1]])
    if program in _WITH_SUBCOMMAND:
        more = 2 if program in _RUNNERS and plain[:1] in (["run"], ["exec"]) else 1
        return " ".join([program, *plain[:more]])
    if _INTERPRETERS.match(program):
        if "-m" in rest[:-1]:
            return f"{program} -m {rest[rest.index('-m') + 1]}"
        if plain and not {"-c", "-e", "--eval", "-p"} & set(rest):
            return f"{program} {plain[0].rpartition('/')[2]}"
    return program


def _program(words: list[str]) -> tuple[str, list[str]]:
    """Return the program and its arguments, without assignments and programs that run others."""
    at = 0
    while at < len(words):
        word = words[at].strip("(){}!'\"`")
        if not word or _ASSIGNMENT.match(word):
            at += 1
        elif word in _BEFORE:
            at += 1
            while at < len(words) and words[at].startswith("-"):
                at += 1
            at += word in _TAKES_A_NUMBER and at < len(words)
        else:
            return word.rpartition("/")[2], words[at + 1 :]
    return "", []
