"""The patterns of phrases.yaml.

English is matched broadly, other languages only if a match is unambiguous: a missed sentence can still be found by
search, a wrong one stays in the memories.
"""

from __future__ import annotations

import os
import re

import yaml

from ....system.files import read_whole

_INSERTED = re.compile(r"\{([a-z_]+)\}")
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "phrases.yaml")
_PHRASES = yaml.load(read_whole(_FILE), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
WORDS: dict[str, list[str]] = {name: words.split() for name, words in _PHRASES["words"].items()}


def pattern(name: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Return the pattern of this name."""
    return re.compile(_expanded(_PHRASES["patterns"][name]), flags)


def examples(section: str) -> dict[str, re.Pattern[str]]:
    """Return the patterns of a section, each with an example of it."""
    return {example: re.compile(_expanded(text), re.IGNORECASE) for example, text in _PHRASES[section].items()}


def _expanded(text: str) -> str:
    """Return a pattern on one line, with the patterns and words that it names."""
    return _INSERTED.sub(lambda found: _inserted(found[1]), text.replace("\n", ""))


def _inserted(name: str) -> str:
    return "|".join(WORDS[name]) if name in WORDS else _expanded(_PHRASES["patterns"][name])
