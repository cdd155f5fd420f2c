"""Examples of every secret that rules.yaml knows, made up anew from its templates: none stands in the repository."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from session_memory.text.secrets import build

ALPHABETS = {
    "dig": string.digits,
    "alpha": string.ascii_letters,
    "hex": string.digits + "abcdef",
    "HEX": string.digits + "ABCDEF",
    "b32": string.ascii_uppercase + "234567",
    "b32l": string.ascii_lowercase + "234567",
    "b36": string.digits + string.ascii_lowercase,
    "B36": string.digits + string.ascii_uppercase,
    "b62": string.digits + string.ascii_letters,
    "b64": string.digits + string.ascii_letters + "+/",
    "url": string.digits + string.ascii_letters + "-_",
}
SLOT = re.compile(r"\{(\w+)(?::(\d+))?\}")
# A key without a digit in its beginning is not looked for where only a name speaks for it: none is made here.
SURE = 10
BEGINNING = 40


class Sample(NamedTuple):
    """`text` holds `secret`, `text[start:end]`, which is of `kind` by the rule `rule`."""

    rule: str
    kind: str
    text: str
    start: int
    end: int

    @property
    def secret(self) -> str:
        return self.text[self.start : self.end]


def samples(seed: int) -> Iterator[Sample]:
    """One sample of every template, the same for the same seed."""
    source = random.Random(seed)
    for rule in build.read():
        for template in rule["sample"]:
            yield sample(rule["id"], rule["kind"], template, source)


def sample(rule: str, kind: str, template: str, source: random.Random) -> Sample:
    filled = SLOT.sub(lambda slot: fill(slot[1], int(slot[2] or 0), source), template)
    before, _, rest = filled.partition("«") if "«" in filled else ("", "", filled)
    secret, _, after = rest.partition("»")
    return Sample(rule, kind, before + secret + after, len(before), len(before) + len(secret))


def fill(name: str, size: int, source: random.Random) -> str:
    """`size` characters of an alphabet, a UUID, or as many lines of a PEM block (`pemjson`: with escaped line feeds)."""
    if name.lower() == "uuid":
        return "-".join(fill("HEX" if name == "UUID" else "hex", part, source) for part in (8, 4, 4, 4, 12))
    if name in ("pem", "pemjson"):
        lines = [fill("b64", 64, source) for _ in range(size)] + [fill("b64", source.randint(4, 60), source) + "=="]
        return ("\n" if name == "pem" else "\\n").join(lines)
    while True:
        text = "".join(source.choice(ALPHABETS[name]) for _ in range(size))
        beginning = text[:BEGINNING]
        mixed = any(c.isdigit() for c in beginning) and any(c.isalpha() for c in beginning)
        if mixed or size < SURE or name in ("dig", "alpha"):
            return text
