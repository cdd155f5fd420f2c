"""Files that a command line may write without naming them in its words. Pure.

A script in it, a variable, a glob or another program writes them. It does not use `re`.
"""

from __future__ import annotations

from .paths import ANY

_LONGEST = 64 * 1024  # characters of a command that are looked at
_IN_PATHS = "._-/+@~%"


def names_in(command: str, *, rewrites: bool) -> set[str]:
    """Return the names of the files that a command line may write; none if it only reads.

    ANY is among them if the command line has a program that `rewrites` files."""
    text = command[:_LONGEST]
    words = "".join(
        [letter if letter.isalnum() or letter in _IN_PATHS else " " for letter in text]
    ).split()
    paths = [word.rstrip(".") for word in words if "/" in word or "." in word[1:-1]]
    names = {path.rpartition("/")[2] for path in paths} - {""}
    if rewrites:
        names.add(ANY)
    if not names:
        return names
    from .shell_commands import only_reads

    return set() if only_reads(command) else names
