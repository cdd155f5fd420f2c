"""The family of a shell command line, such as `npm run check` or `git commit`. Pure.

It does not use `re`.
"""

from __future__ import annotations

from .shell_words import Word, simple_commands
from .words import word_lists

MOST_PARTS = 3
LOOKING = "(looking around)"

_WORDS = word_lists()  # words.tsv says what each of them is

_WITH_SUBCOMMAND = _WORDS["with subcommand"]
_RUNNERS = _WORDS["runners"]
_BEFORE = _WORDS["before"]
_TAKES_A_NUMBER = frozenset(("timeout", "nice"))
_INTERPRETERS = _WORDS["interpreters"]
_SILENT = _WORDS["silent"]
_RUNS_OTHERS = frozenset((".", "eval", "source", "xargs"))
_WITH_ACTIONS = {
    "find": frozenset(("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint")),
    "fd": frozenset(("-x", "-X", "--exec", "--exec-batch")),
    "sort": frozenset(("-o", "--output")),
}
_LOOKERS = _WORDS["lookers"]
_GIT_LOOKERS = _WORDS["git lookers"]
_PRINTERS = frozenset(("awk", "bat", "cat", "head", "less", "more", "nl", "sed", "tail"))
_WRITERS = ("cp", "mv", "patch", "perl", "sed", "tee", "touch")
_CARRYING = frozenset(("am", "cherry-pick", "merge", "pull", "rebase", "revert"))
COMMITTING = _CARRYING | {"commit"}  # commands of git that make commits
_KEYWORDS = frozenset(
    ("do", "done", "elif", "else", "fi", "function", "if", "in", "then", "until", "while")
)
_FINDS_NOTHING = _WORDS["find nothing"]
_TESTS, _CHECKS = _WORDS["tests"], _WORDS["checks"]
_IN_NAMES = str.maketrans(":-_./", 5 * " ")


def family(command: str) -> str:
    """Return programs and subcommands without their arguments; '' if nothing is left.

    `cd /x && npm run check 2>&1 | tail -5` gives `npm run check`. A command that only reads gives
    LOOKING."""
    parts = [name for words in _simple_commands(command) if (name := _name(words))]
    doing = [name for name in parts if name != LOOKING]
    return " && ".join(list(dict.fromkeys(doing or parts))[:MOST_PARTS])


def purpose(command: str) -> str:
    """Return `test` for a command line that runs tests, such as `npm run test:unit`.

    Return `check` for one that checks or builds something, such as `make check`, else ''."""
    words = family(command).lower().translate(_IN_NAMES).split()
    if not _TESTS.isdisjoint(words):
        return "test"
    return "" if _CHECKS.isdisjoint(words) else "check"


def is_looking(command: str) -> bool:
    """Check if a command line only reads or does nothing."""
    return family(command) in (LOOKING, "")


def only_reads(command: str) -> bool:
    """Check if all commands of a line, also after a pipe, only read and write no file."""
    for command_part in simple_commands(command):
        words = [word.text or word.typed for word in command_part.words]
        program, arguments = _program(words)
        if any([not word.text.startswith("/dev/") for word in command_part.outputs]):
            return False
        if program in _RUNS_OTHERS or (
            program in _WITH_ACTIONS and not _WITH_ACTIONS[program].isdisjoint(arguments)
        ):
            return False
        if program and _name(command_part.words) not in (LOOKING, ""):
            return False
    return True


def only_writes(command: str) -> bool:
    """Check if a command line that wrote files did nothing else worth naming.

    Examples are `echo` and `sed -i`."""
    return {LOOKING, "", *_WRITERS}.issuperset(family(command).split(" && "))


def prints(command: str, path: str) -> bool:
    """Check if a part of a command line prints the file at `path`, or the diff of all files."""
    name = path.rpartition("/")[2]
    for simple_command in simple_commands(command):
        program, arguments = _program([word.text or word.typed for word in simple_command.words])
        is_diff = program == "git" and arguments[:1] == ["diff"] and "--stat" not in arguments
        named = [word.rpartition("/")[2] for word in arguments if not word.startswith("-")]
        if (
            simple_command.outputs
            or not (program in _PRINTERS or is_diff)
            or any([word.startswith("-i") for word in arguments])
        ):
            continue
        if name in named or (is_diff and len(named) == 1):
            return True
    return False


def may_find_nothing(command: str) -> bool:
    """Check if the exit code may mean "not found", as for grep, diff and test."""
    last = [word.text for word in next(reversed(_simple_commands(command, every=True)), [])]
    program = _program(last)[0]
    return program in _FINDS_NOTHING and (program != "git" or last[1:2] in (["grep"], ["diff"]))


def commit_message(command: str) -> str:
    """Return the first line of the message of a `git commit -m`; '' for any other command."""
    for words in _simple_commands(command):
        program, arguments = _program([word.text for word in words])
        if program == "git" and "commit" in arguments[:3]:
            for word, following in zip(arguments, words[len(words) - len(arguments) + 1 :]):
                # -m, -am, -qam
                if word == "--message" or (word.endswith("m") and word[:1] == "-" != word[1:2]):
                    return _first_line(
                        following.text if following.is_sure else following.typed.strip("\"'")
                    )
    return ""


def is_rewriting(command: str) -> bool:
    """Check if a command line makes a commit from committed changes.

    It amends, picks, reverts or merges, for example."""
    return is_carrying(command) or "--amend" in command or "--fixup" in command


def is_carrying(command: str) -> bool:
    """Check if a command line makes a commit of others' changes, with none from the index."""
    words = [[word.text for word in simple] for simple in _simple_commands(command)]
    verbs = [arguments[:3] for program, arguments in map(_program, words) if program == "git"]
    return not any("commit" in verb for verb in verbs) and any(
        _CARRYING.intersection(verb) for verb in verbs
    )


def _first_line(message: str) -> str:
    """Return the first line of a message, which may be a here-document: `$(cat <<'EOF' ...`."""
    lines = [line.strip() for line in message.splitlines()]
    lines_of_text = [
        line
        for line in lines
        if line and not line.startswith("$(cat") and line not in ("EOF", ")", 'EOF"')
    ]
    return lines_of_text[0] if lines_of_text else ""


def _simple_commands(command: str, every: bool = False) -> list[list[Word]]:
    """Return the words of each command; in a pipeline of the first command only, unless `every`."""
    commands: list[list[Word]] = []
    for simple_command in simple_commands(command):
        at = 0
        while at < len(simple_command.words) and simple_command.words[at].text in _KEYWORDS:
            at += 1
        if simple_command.words[at:] and (every or simple_command.before != "|"):
            commands.append(simple_command.words[at:])
    return commands


def _name(words: list[Word]) -> str:
    """Return the name of a simple command; '' if it does nothing by itself."""
    program, arguments = _program([word.text or word.typed for word in words])
    if not program or program in _SILENT or program.startswith("#"):
        return ""
    if program in _LOOKERS and not (program == "sed" and _has_option(arguments, "-i")):
        return LOOKING
    plain = [word for word in arguments if not word.startswith("-")]
    if program == "git":
        return _name_of_git([word for word in plain if "/" not in word and "=" not in word])
    if program in _WITH_SUBCOMMAND:
        more = 2 if program in _RUNNERS and plain[:1] in (["run"], ["exec"]) else 1
        return " ".join([program, *plain[:more]])
    if program.rstrip("0123456789.") in _INTERPRETERS:
        return f"{program} {_code_of(arguments, plain)}".rstrip()
    return program


def _has_option(arguments: list[str], start: str) -> bool:
    return any(word.startswith(start) for word in arguments)


def _name_of_git(words: list[str]) -> str:
    """Return the name of a git command with these arguments."""
    is_looking = bool(words) and words[0] in _GIT_LOOKERS
    return LOOKING if is_looking else " ".join(["git", *words[:1]])


def _code_of(arguments: list[str], plain: list[str]) -> str:
    """Return the module or the script that an interpreter runs; '' if neither is named.

    `plain` are the arguments that are not options."""
    if "-m" in arguments[:-1]:
        return f"-m {arguments[arguments.index('-m') + 1]}"
    if plain and not {"-c", "-e", "--eval", "-p"} & set(arguments):
        return plain[0].rpartition("/")[2]
    return ""


def _program(words: list[str]) -> tuple[str, list[str]]:
    """Return the program and its arguments, without assignments and programs that run others."""
    at = 0
    while at < len(words):
        word = words[at].strip("(){}!'\"`")
        variable, is_assigned, _ = word.partition("=")
        if not word or (is_assigned and variable.isidentifier()):
            at += 1
        elif word in _BEFORE:
            at += 1
            while at < len(words) and words[at].startswith("-"):
                at += 1
            at += word in _TAKES_A_NUMBER and at < len(words)
        else:
            return word.rpartition("/")[2], words[at + 1 :]
    return "", []
