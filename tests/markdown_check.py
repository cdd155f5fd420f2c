"""Whether Markdown does more than show text: judged by a CommonMark parser, which shares nothing with what is tested."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Pieces that mean something to Markdown, to HTML or to an archive: random rows of them are where escapes go wrong.
PIECES = [
    "`", "``", "```", "~~~", "~~~~", "<b>", "</b>", "<!--", "-->", "<script>alert(1)</script>", "<div", "<?php", "<![CDATA[",
    "\\", "\n", "\n\n", "    ", "  ", "   ", "\t", " ", "a", "word ", "é", "- ", "* ", "+ ", "1. ", "12) ", "> ", "#", "# ", "## ",
    "---", "===", "***", "___", "* * *", "- - -", "|", "| a | b |", "|---|---|", ":-:|", "[a](javascript:x)", "[a](https://x.org)",
    "![a](data:image/png;base64,x)", "](", "[x]: data:x", "]:", "![", "[", "(data:text/html,x)", "&lt;", "&#58;", "&", "&amp",
    "<javascript:x>", "<https://x.org>", "**User**: hi", "**G2**:", "__User__:", "**Tool**: x", "](java\nscript:1)", "](\njavascript:1)",
    "](<javascript:x>)", "](docs/x.md)", "](#top)", "*Compacted here", '"', "'", ")", "<!-- session-memory {} -->", "Archived: x",
]  # fmt: skip


def random_text(source: random.Random) -> str:
    return "".join(source.choice(PIECES) for _ in range(source.randrange(1, 14)))


class Judge:
    """Parses a document with a title, `text` as a message, and a message behind it, and says what is wrong with it."""

    def __init__(self) -> None:
        self._parser = MarkdownIt("commonmark", {"html": True}).enable("table")
        self._parser.validateLink = lambda url: True  # type: ignore[method-assign]

    def complaint(self, text: str) -> str:
        """'' if `text` only shows, else what it does."""
        tokens = self._parser.parse(f"# Title\n\n**User**:\n\n{text}\n\n**Sentinel**: end")
        headings = 0
        for token in _all(tokens):
            if token.type in ("html_block", "html_inline"):
                return f"raw HTML: {token.content!r}"
            if token.type == "hr":
                return "a rule"
            headings += token.type == "heading_open" and token.tag == "h1"
            for key in ("href", "src"):
                if re.match(r"\s*(javascript|data|vbscript|file):", str(token.attrs.get(key, "")), re.IGNORECASE):
                    return f"a link to {token.attrs[key]!r}"
        if headings != 1:
            return "a first-level heading"
        if tokens[-3].level != 0 or tokens[-2].content != "**Sentinel**: end":
            return "it swallows what follows"
        if re.search(r"^ {0,3}(\*\*|__)(User|G2|Tool)(\*\*|__):", text, re.MULTILINE):
            return "a line like a speaker's"
        return ""


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])
