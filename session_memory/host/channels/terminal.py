"""The channel of a terminal: what is said goes straight into the inbox, and replies are read, host or no host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ..ledger import Ledger, Reply

POLL_SECONDS = 0.1


def say(ledger: Ledger, group: str, text: str, sender: str = "") -> str:
    """Puts a message into a group's inbox; its id. Raises UnknownGroupError."""
    jid = ledger.group(group).jid
    return ledger.take(jid, text, sender=sender or "terminal", sender_name=sender)


def wait_for_reply(ledger: Ledger, group: str, message_id: str, is_hopeful: Callable[[], bool]) -> Reply | None:
    """The reply to a message, when it is there; None where the agent had nothing to say, or once all hope is gone."""
    jid = ledger.group(group).jid
    while True:
        is_answered, reply_id = ledger.reply_to(message_id, jid)
        if is_answered:
            return ledger.replies(reply_id - 1, jid, limit=1)[0] if reply_id else None
        if not is_hopeful():
            return None
        time.sleep(POLL_SECONDS)


def follow(ledger: Ledger, group: str, last: int) -> Iterator[Reply]:
    """The last replies in a group's chat, and then every new one, without end. Raises UnknownGroupError."""
    jid = ledger.group(group).jid
    known = ledger.latest_replies(jid, last)
    yield from known
    after = known[-1].id if known else 0 if last else ledger.last_reply()
    while True:
        for reply in ledger.replies(after, jid):
            yield reply
            after = reply.id
        time.sleep(POLL_SECONDS)
