"""Finds parts of the lines that a command wrote, if the command contains them. Pure.

Examples are `sed -i s/one/two/` and `echo two >> a.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .shell_commands import LOOKING, family
from .shell_words import SimpleCommand, Word, simple_commands
from .written_lines import normalised

Parts = tuple[str, ...]  # of a line, which has all of them
_SUBSTITUTERS = frozenset(("sed", "gsed", "perl"))
_OTHER_WRITERS = frozenset(("bash", "cp", "dash", "patch", "sh", "tee", "zsh"))
_PLAIN_OPTIONS = frozenset("-Eeipr")
_ADDRESS = r"\s*(?:[\d$]+(?:,[\d$+~]+)?|/[^/\n]*/(?:,/[^/\n]*/)?)?\s*!?\s*"
_SUBSTITUTION = re.compile(
    _ADDRESS
    + r"s([^\w\s\\{}()\[\]<>;&])((?:\\.|(?!\1)[^\\\n])*)\1((?:\\.|(?!\1)[^\\])*)\1([a-zA-Z\d]*)\s*(?:;|\n|$)"
)
_ADDED = re.compile(_ADDRESS + r"[aic](?:\\\n?|[ \t])\s*(.+)\Z", re.DOTALL)
_DELETED = re.compile(_ADDRESS + r"d\s*(?:;|\n|$)")
_CHANGES_CASE = re.compile(r"\\[ULul]")
_UNKNOWN = "f"  # a script that means nothing
_LINE_END = re.compile(r"\\n|\\?\n")
_INSERTED = re.compile(r"\\[\w&]|&|\$\{?\w+\}?|\$&")  # text that the script does not show
_ESCAPED = re.compile(r"\\(.)")


def _written_parts(command: str) -> list[Parts] | None:
    """Return the parts of each line that a command line wrote.

    Each line has all parts of one of the tuples. Return None if the command may have written other
    lines."""
    shown = [parts for simple in simple_commands(command) for parts in _written_by(simple)]
    return (
        [part for parts in shown for part in parts or ()] if shown and None not in shown else None
    )


def can_have_written(command: str, line: str) -> bool:
    """Check if a command line that writes files can have written a line.

    The line must have the parts that the command contains, if it contains any."""
    shown, text = _written_parts(command), normalised(line)
    return shown is None or any(all(part in text for part in parts) for parts in shown)


def has_replaced_nothing(command: str, content: str) -> bool:
    """Check if a command line that only substitutes in files replaced nothing in a file.

    Nothing wrote the file since then, and it has this content now: no line has the replacement."""
    parts: list[Parts] = []
    for simple in simple_commands(command):
        program, *words = [word.text for word in simple.words] or [""]
        program = program.rpartition("/")[2]
        if simple.outputs or (program in _SUBSTITUTERS and any(map(_drops_lines, words))):
            return False
        for script in _scripts(program, simple.words[1:]) if program in _SUBSTITUTERS else ():
            put = _put_in(script, deleted=((),))
            if put is None:
                return False
            parts += put
    lines = [normalised(line) for line in content.splitlines()]
    is_there = any(
        all(part in line for part in line_parts) for line_parts in parts for line in lines
    )
    return bool(parts) and all(map(any, parts)) and _only_substitutes(command) and not is_there


def _only_substitutes(command: str) -> bool:
    return (_SUBSTITUTERS | {LOOKING}).issuperset(family(command).split(" && "))


def _drops_lines(option: str) -> bool:
    """Check if an option of `sed` or `perl` may drop or change lines besides the script."""
    if option[:2] == "--":
        return option in ("--quiet", "--silent", "--null-data")
    return option[:1] == "-" and not _PLAIN_OPTIONS.issuperset(option)


def _written_by(simple: SimpleCommand) -> list[list[Parts] | None]:
    """Return the parts of the lines that one command wrote; [] if it writes no known file."""
    program, *names = [word.text.rpartition("/")[2] for word in simple.words] or [""]
    if program in ("mv", "touch"):  # a moved file keeps its lines
        return [[]]
    if program in _SUBSTITUTERS and not simple.outputs:
        scripts = _scripts(program, simple.words[1:])
        return [
            [parts for script in scripts for parts in _put_in(script) or ()]
            if all(map(_is_known, scripts))
            else None
        ]
    if program == "echo" and simple.outputs:
        return [_echoed(simple)]
    is_other = (
        program in _OTHER_WRITERS or bool(simple.outputs) or not _SUBSTITUTERS.isdisjoint(names)
    )
    return [None] if is_other or "tee" in names else []


def _echoed(simple: SimpleCommand) -> list[Parts] | None:
    words = [word for word in simple.words[1:] if word.text not in ("-n", "-e", "-E")]
    if not all(word.is_sure for word in words):
        return None
    lines = _LINE_END.split(" ".join([word.text for word in words]))
    return [(normalised(line),) for line in lines if line.strip()]


def _scripts(program: str, words: Sequence[Word]) -> list[str]:
    """Return the scripts of a `sed` or `perl`.

    Scripts in files, and scripts that the shell expands, are `_UNKNOWN`."""
    scripts: list[Word] = []
    operands: list[Word] = []
    before = ""
    for word in words:
        text = word.text
        if _takes_script(program, before):
            scripts.append(word)
            before = ""
            continue
        if text in ("-f", "--file") or text.startswith("--file="):
            return [_UNKNOWN]
        if text.startswith("--expression="):
            scripts.append(Word(text.partition("=")[2], word.is_sure))
        elif text and text[0] != "-":
            operands.append(word)
        before = text
    return [word.text if word.is_sure else _UNKNOWN for word in scripts or operands[:1]]


def _takes_script(program: str, option: str) -> bool:
    """Check if an option takes a script: in `sed -ie` the `e` is a suffix, and `-E` takes none."""
    if option[:1] != "-" or option[:2] == "--":
        return option == "--expression"
    return option[-1] in "eE" if program == "perl" else option[-1] == "e" and "i" not in option


def _is_known(script: str) -> bool:
    return _put_in(script) is not None


def _put_in(script: str, deleted: Sequence[Parts] = ()) -> list[Parts] | None:
    """Return the parts of the lines that a script changes or adds, and `deleted` per deletion.

    Return None if it may do more."""
    put: list[Parts] = []
    at = 0
    while script[at:].strip():
        if matched := _SUBSTITUTION.match(script, at):
            replacement, flags = matched[3], matched[4]
            if _CHANGES_CASE.search(replacement) or "e" in flags or "w" in flags:
                return None
            put += [_parts_of(line) for line in _LINE_END.split(replacement)]
        elif matched := _ADDED.match(script, at):
            put += [(normalised(line.rstrip("\\")),) for line in _LINE_END.split(matched[1])]
        elif matched := _DELETED.match(script, at):
            put += deleted
        else:
            return None
        at = matched.end()
    return put


def _parts_of(replacement: str) -> Parts:
    parts = [_ESCAPED.sub(r"\1", part) for part in _INSERTED.split(replacement)]
    return tuple([normalised(part) for part in parts if part.strip()])
