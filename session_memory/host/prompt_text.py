"""What an agent reads of messages and tasks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

TASK_INTRODUCTION = "[A scheduled task: nobody has just written this. What you answer goes to the chat.]"


class Message(NamedTuple):
    """A message as it came in; `sender` is '' for the one person at the terminal. `timestamp` is ISO 8601."""

    sender: str
    timestamp: str
    text: str


def of_messages(messages: Sequence[Message]) -> str:
    """The prompt for messages: the text alone of a single one from nobody in particular, else each with who and when.

    Nobody can write in another's name: what would end a message or begin one is escaped.
    """
    if len(messages) == 1 and not messages[0].sender:
        return messages[0].text
    return "\n".join(_marked(message) for message in messages)


def of_task(prompt: str) -> str:
    """The prompt for a scheduled task."""
    return f"{TASK_INTRODUCTION}\n\n{prompt}"


def _marked(message: Message) -> str:
    sender = f' from="{escape(message.sender)}"' if message.sender else ""
    return f'<message{sender} at="{escape(message.timestamp)}">{escape(message.text, quote=False)}</message>'
