"""Lists of words in files of this package: a name, a tab, the words; # begins a comment line."""

from __future__ import annotations

from ..system.files import read_whole


def word_lists(
    path: str = __file__.rpartition("words.")[0] + "words.tsv",
) -> dict[str, frozenset[str]]:
    """Return the lists in a file by their names."""
    lines = [
        line.partition("\t")
        for line in read_whole(path).decode().splitlines()
        if not line.startswith("#")
    ]
    return {name: frozenset(words.split()) for name, _, words in lines}
