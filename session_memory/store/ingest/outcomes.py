"""What is kept of the result of a tool call: whether it went well, how much it was, what went wrong. Pure."""

from __future__ import annotations

from ..values import ToolOutcome
from .error_lines import telling_line

ERROR_CHARACTERS = 300


def outcome(is_error: bool, content: object) -> ToolOutcome:
    """How a call ended whose result is `content`, a string or blocks with text."""
    text = text_of(content)
    lines = text.count("\n") + 1 if text else 0
    return ToolOutcome("error" if is_error else "ok", error_line(text) if is_error else "", len(text), lines)


def text_of(content: object) -> str:
    """The text in `content`, a string or blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
    return "\n".join(texts)


def error_line(text: str) -> str:
    """The line of an error's text that tells most, behind the exit code if that comes first."""
    return telling_line(text)[:ERROR_CHARACTERS]
