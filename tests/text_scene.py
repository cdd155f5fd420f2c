"""Examples of every kind of secret, and pieces of Markdown with a judge of what it does."""

from __future__ import annotations

import itertools
import random
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from session_memory.common.text.secrets.rules import ROWS, SecretRule

RULES = [SecretRule(number) for number in range(len(ROWS))]

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
SLOT = re.compile(r"\{((?!SSHA)\w+)(?::(\d+))?\}")
# A key without a digit in its beginning is not looked for where only a name speaks for it: none is
# made here.
SURE = 10
BEGINNING = 40
EXAMPLES_FILE = Path(__file__).parent / "common" / "text" / "secrets.txt"


class Sample(NamedTuple):
    """`text` holds `secret`, `text[start:end]`, which is of `kind` by the rule of this number."""

    rule: int
    kind: str
    text: str
    start: int
    end: int

    @property
    def secret(self) -> str:
        return self.text[self.start : self.end]


def samples(seed: int) -> Iterator[Sample]:
    """Yield one sample of every template, of tokens one with each prefix; the same for the same seed."""
    source = random.Random(seed)
    for rule in RULES:
        for template in templates(rule):
            yield sample(rule, template, source)


def templates(rule: SecretRule) -> list[str]:
    examples = EXAMPLES[rule.number]
    if rule.form != "token":
        return examples
    return [prefix + example for prefix in rule.keywords for example in examples]


def read_examples() -> list[list[str]]:
    """Read the examples of each rule. Raise ValueError for those of a rule that is another one now."""
    blocks = re.split(r"\n(?!\t)", EXAMPLES_FILE.read_text().partition("\n\n")[2].strip("\n"))
    found = []
    for rule, block in zip(RULES, blocks, strict=True):
        head, *examples = block.split("\n\t")
        if head.split("\t")[:2] != [rule.form, rule.kind] or not examples:
            raise ValueError(
                f"{EXAMPLES_FILE}: examples of {head!r}, not of the {rule.form} {rule.kind!r}"
            )
        found.append([example.replace("⏎", "\n") for example in examples])
    return found


def sample(rule: SecretRule, template: str, source: random.Random) -> Sample:
    filled = SLOT.sub(lambda slot: fill(slot[1], int(slot[2] or 0), source), template)
    before, _, rest = filled.partition("«") if "«" in filled else ("", "", filled)
    secret, _, after = rest.partition("»")
    return Sample(
        rule.number, rule.kind, before + secret + after, len(before), len(before) + len(secret)
    )


def fill(name: str, size: int, source: random.Random) -> str:
    """`size` characters of an alphabet, a UUID, or as many lines of a PEM block (`pemjson`: with
    escaped line feeds)."""
    if name.lower() == "uuid":
        return "-".join(
            fill("HEX" if name == "UUID" else "hex", part, source) for part in (8, 4, 4, 4, 12)
        )
    if name in ("pem", "pemjson"):
        lines = [fill("b64", 64, source) for _ in range(size)] + [
            fill("b64", source.randint(4, 60), source) + "=="
        ]
        return ("\n" if name == "pem" else "\\n").join(lines)
    if name == "card":
        return card_number(size, source)
    while True:
        text = "".join(source.choice(ALPHABETS[name]) for _ in range(size))
        beginning = text[:BEGINNING]
        mixed = any(c.isdigit() for c in beginning) and any(c.isalpha() for c in beginning)
        if mixed or size < SURE or name in ("dig", "alpha"):
            return text


def card_number(form: int, source: random.Random) -> str:
    """Digits that pass the check of Luhn: 16, 15 as of American Express, or (4) 16 in groups of four."""
    size, first = (15, "37") if form == 15 else (16, "45")
    digits = first + fill("dig", size - 3, source)
    for last in string.digits:
        number = digits + last
        doubled = [sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2]]
        if (sum(map(int, number[::-2])) + sum(doubled)) % 10 == 0:
            return " ".join(number[i : i + 4] for i in range(0, 16, 4)) if form == 4 else number
    raise AssertionError("one of ten digits always passes")


EXAMPLES = read_examples()

# Pieces that mean something to Markdown, to HTML or to an archive: random rows of them are where
# escapes go wrong.
PIECES = [
    "`",
    "``",
    "```",
    "~~~",
    "~~~~",
    "<b>",
    "</b>",
    "<!--",
    "-->",
    "<script>alert(1)</script>",
    "<div",
    "<?php",
    "<![CDATA[",
    "\\",
    "\n",
    "\n\n",
    "    ",
    "  ",
    "   ",
    "\t",
    " ",
    "a",
    "word ",
    "é",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "12) ",
    "> ",
    "#",
    "# ",
    "## ",
    "---",
    "===",
    "***",
    "___",
    "* * *",
    "- - -",
    "|",
    "| a | b |",
    "|---|---|",
    ":-:|",
    "[a](javascript:x)",
    "[a](https://x.org)",
    "![a](data:image/png;base64,x)",
    "](",
    "[x]: data:x",
    "]:",
    "![",
    "[",
    "(data:text/html,x)",
    "&lt;",
    "&#58;",
    "&",
    "&amp",
    "<javascript:x>",
    "<https://x.org>",
    "**User**: hi",
    "**G2**:",
    "__User__:",
    "**Tool**: x",
    "](java\nscript:1)",
    "](\njavascript:1)",
    "](<javascript:x>)",
    "](docs/x.md)",
    "](#top)",
    "*Compacted here",
    '"',
    "'",
    ")",
    "<!-- session-memory {} -->",
    "Archived: x",
    "**User:** hi",
    "***User***: hi",
    "**user** (2026-02-21 03:39:07Z): hi",
    "## User",
    "__G2:__",
    "**Us",
    "er:**",
    "[**",
    "**Root cause:** x",
    "User:** hi",
    "\nG2: x",
    "  \nUser:",
    "**bold",
    "__bold",
]


def random_text(source: random.Random) -> str:
    return "".join(source.choice(PIECES) for _ in range(source.randrange(1, 14)))


def text_of_lines(source: random.Random, lines: list[str]) -> str:
    """Return a file of these lines, each numbered at `{}`, with either kind of end and any number
    of empty lines behind."""
    end = source.choice(["\n", "\r\n"])
    text = "\n".join(line.format(number) for number, line in enumerate(lines))
    return text.replace("\n", end) + source.choice(["", end, end * 2])


SPEAKERS = ("User", "G2", "Tool")
_SPEAKER = re.compile(r"\s*(User|G2|Tool|Sentinel)\b\s*(?:[\0:(]|$)", re.IGNORECASE)

# A column may be called by a name.
_SPEAKER_IN_CELL = re.compile(r"\s*(User|G2|Tool|Sentinel)\b[\s\0]*(?::|\(\d)", re.IGNORECASE)


class Judge:
    """Parses a document with a title, `text` as a message, and another message; reports faults."""

    def __init__(self) -> None:
        self._parser = MarkdownIt("commonmark", {"html": True}).enable("table")
        self._parser.validateLink = lambda url: True  # type: ignore[method-assign]

    def parse(self, document: str) -> list[Token]:
        """The document as it is rendered."""
        return self._parser.parse(document)

    def shown(self, text: str) -> str:
        """The HTML that `text` becomes."""
        return str(self._parser.render(text))

    def complaint(self, text: str) -> str:
        """'' if `text` only shows, else what it does."""
        tokens = self.parse(f"# Title\n\n**User**:\n\n{text}\n\n**Sentinel**: end")
        headings = 0
        for token in _all(tokens):
            if token.type in ("html_block", "html_inline"):
                return f"raw HTML: {token.content!r}"
            if token.type == "hr":
                return "a rule"
            headings += token.type == "heading_open" and token.tag == "h1"
            if token.type == "image":
                return "an image"
            if not re.match(
                r"(https?://|mailto:)", str(token.attrs.get("href", "https://")), re.IGNORECASE
            ):
                return f"a link to {token.attrs['href']!r}"
        if headings != 1:
            return "a first-level heading"
        if tokens[-3].level != 0 or tokens[-2].content != "**Sentinel**: end":
            return "it swallows what follows"
        if re.search(r"^(\*\*|__)(User|G2|Tool)(\*\*|__)[^\n:]*:", text, re.MULTILINE):
            return "a line like a speaker's"
        shown = self.speakers(tokens)
        return "" if shown == ["User", "Sentinel"] else f"somebody speaks: {shown}"

    def speakers(self, tokens: list[Token]) -> list[str]:
        """Return the speakers as a reader sees them: names in bold or in headings at line starts."""
        found = []
        for before, token in itertools.pairwise(tokens):
            if token.type != "inline" or (before.type == "heading_open" and before.tag == "h1"):
                continue
            speaker = _SPEAKER_IN_CELL if before.type in ("th_open", "td_open") else _SPEAKER
            line, begins_bold, bold = "", before.type in ("heading_open", "th_open"), 0
            for child in [*(token.children or []), None]:
                if child is None or child.type in ("softbreak", "hardbreak"):
                    name = speaker.match(line) if begins_bold else None
                    found += [name[1]] if name else []
                    line, begins_bold = "", bold > 0
                elif child.type == "strong_open":
                    bold += 1
                    begins_bold = begins_bold or not line.strip()
                elif child.type == "strong_close":
                    bold -= 1
                    line += "\0"
                else:
                    line += child.content.strip() or "`" * (child.type == "code_inline")
        return found


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])
