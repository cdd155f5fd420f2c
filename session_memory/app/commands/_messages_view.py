"""Messages and tool uses of a session, for people: Markdown is rendered on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...common.system.terminal import Terminal

if TYPE_CHECKING:
    from ...sessions.transcripts.log import LogBlock


def print_log(terminal: Terminal, blocks: Iterable[LogBlock]) -> None:
    """Print a log, with an empty line between two messages."""
    for number, block in enumerate(blocks):
        if block.head:
            if number:
                terminal.line()
            terminal.line(terminal.paint("bold", block.head))
        print_message(terminal, block.text, is_user_s=block.is_user_s)
        for tool in block.tools:
            print_tool_use(terminal, tool)


def print_message(terminal: Terminal, text: str, *, is_user_s: bool) -> None:
    """Print a message, unless it is empty: a user's as it was typed, an agent's as Markdown."""
    if is_user_s and text:
        terminal.line(text)
    elif text:
        terminal.markdown(text)


def print_tool_use(terminal: Terminal, line: str) -> None:
    """Print the line of a tool use."""
    terminal.line(terminal.paint("dim", line))
