"""The terminal's channel: writes to the inbox and reads from the database, so it needs no running host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ..ledger import Ledger
from ..values import ChatReply

POLL_SECONDS = 0.1


def say(ledger: Ledger, group: str, text: str, sender: str = "") -> str:
    """Put a message into a group's inbox and return its id. Raises UnknownGroupError."""
    jid = ledger.group(group).jid
    return ledger.receive(jid, text, sender=sender or "terminal", sender_name=sender)


def wait_for_reply(ledger: Ledger, group: str, message_id: str, may_come: Callable[[], bool]) -> ChatReply | None:
    """Wait for the reply to a message. None if the agent had nothing to say, or once `may_come` returns False."""
    jid = ledger.group(group).jid
    while True:
        is_answered, reply_id = ledger.reply_to(message_id, jid)
        if is_answered:
            return ledger.replies(reply_id - 1, jid, limit=1)[0] if reply_id else None
        if not may_come():
            return None
        time.sleep(POLL_SECONDS)


def follow(ledger: Ledger, group: str, last: int) -> Iterator[ChatReply]:
    """Yield the last replies in a group's chat, then every new one, without end. Raises UnknownGroupError."""
    jid = ledger.group(group).jid
    known = ledger.latest_replies(jid, last)
    yield from known
    after = known[-1].id if known else 0 if last else ledger.last_reply()
    while True:
        for reply in ledger.replies(after, jid):
            yield reply
            after = reply.id
        time.sleep(POLL_SECONDS)
