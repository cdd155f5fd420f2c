"""The text of transcripts: prose, code, logs and listings in one invented vocabulary."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from string import capwords
from typing import Any

import yaml

VOCABULARY_WORDS = 24_000
RUNNING_WORDS = 400_000
HAN_CHARACTERS = 1_200
HAN_WORDS = 8_000
FILES = 1_500

_KNOWN = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
TEMPLATES: dict[str, dict[str, Any]] = _KNOWN["templates"]


@cache
def texts_of(seed: int) -> Texts:
    """The texts of a seed, built once in a process: it takes two seconds."""
    return Texts(seed)


class Texts:
    """Everything that transcripts of one seed take their text from."""

    def __init__(self, seed: int) -> None:
        fields = _Fields(Random(f"texts-{seed}"))
        self.files = fields.files
        self._fields = fields
        self._pools = {
            kind: "\n".join(
                [
                    fields.random.choice(template["forms"]).format_map(fields)
                    for _ in range(template["lines"])
                ]
            )
            for kind, template in TEMPLATES.items()
        }

    def cut(self, kind: str, length: int, random: Random) -> str:
        """Return about `length` characters of a kind in TEMPLATES, from the start of a line.

        The text has new ids."""
        pool = self._pools[kind]
        start = pool.find("\n", random.randrange(len(pool) - length)) + 1
        return pool[start : start + length].replace("@ID@", f"{random.getrandbits(40):010x}")

    def words(self, count: int, random: Random) -> str:
        """Return `count` words with realistic frequencies, which fall with their rank."""
        return self._fields.words(count, random)


class _Fields:
    """The fields of a template; `"{name}".format_map(fields)` makes a new value each time."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.vocabulary = _vocabulary(random)
        frequencies = [1 / (rank + 2.7) ** 1.05 for rank in range(VOCABULARY_WORDS)]
        self.running = random.choices(self.vocabulary, frequencies, k=RUNNING_WORDS)
        self.han = "".join(
            random.choices(_han_words(random), frequencies[:HAN_WORDS], k=RUNNING_WORDS)
        )
        self.files = [self._file() for _ in range(FILES)]

    def __getitem__(self, field: str) -> object:
        if field == "name":
            return self._identifier()
        if field == "number":
            return self.random.randrange(10_000)
        if field == "digit":
            return self.random.randrange(1, 10)
        if field == "file":
            return self.random.choice(self.files)
        return _Words(self, field)

    def words(self, count: int, random: Random) -> str:
        start = random.randrange(RUNNING_WORDS - count)
        return " ".join(self.running[start : start + count])

    def _identifier(self) -> str:
        words = self.words(self.random.choice((1, 1, 2, 2, 3)), self.random)
        return (
            words.replace(" ", "_")
            if self.random.random() < 0.6
            else capwords(words).replace(" ", "")
        )

    def _file(self) -> str:
        directory = self.random.choice(
            ("src", "lib", "tests", "pkg/core", "internal", "app", "docs", "scripts")
        )
        extension = self.random.choice(
            ("py", "ts", "tsx", "go", "rs", "md", "json", "yaml", "sql", "sh")
        )
        return f"{directory}/{self.random.choice(self.vocabulary[60:3000])}_{self._identifier()}.{extension}"


class _Words:
    """A field whose width is a number of words (`words`, `Words`) or Chinese characters (`han`)."""

    def __init__(self, fields: _Fields, field: str) -> None:
        self.fields = fields
        self.field = field

    def __format__(self, width: str) -> str:
        random = self.fields.random
        if self.field == "han":
            start = random.randrange(len(self.fields.han) - int(width))
            return self.fields.han[start : start + int(width)]
        words = self.fields.words(int(width), random)
        return words.capitalize() if self.field == "Words" else words


def _vocabulary(random: Random) -> list[str]:
    """Return distinct words: common ones, then invented ones of one to four syllables."""
    words = dict.fromkeys(_KNOWN["common words"].split())
    while len(words) < VOCABULARY_WORDS:
        syllables = random.choice((1, 2, 2, 3, 3, 4))
        words["".join([_syllable(random) for _ in range(syllables)])] = None
    return list(words)


def _han_words(random: Random) -> list[str]:
    """Return words of one to three Chinese characters, some of them in many words."""
    characters = [chr(0x4E00 + number) for number in range(HAN_CHARACTERS)]
    frequencies = [1 / (rank + 10) for rank in range(HAN_CHARACTERS)]
    return [
        "".join(random.choices(characters, frequencies, k=random.choice((1, 2, 2, 2, 3))))
        for _ in range(HAN_WORDS)
    ]


def _syllable(random: Random) -> str:
    consonants = "bcdfghklmnprstvwz"
    closing = random.choice(consonants) if random.random() < 0.35 else ""
    return random.choice(consonants) + random.choice("aeiou") + closing
