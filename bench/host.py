"""`python -m bench.host`: a host with many groups that is killed repeatedly; checks its ledger.

Messages arrive at random times while `kill -9` ends the host every few seconds, every other time
with the runtimes that it has started. At the end three books are compared: the messages put in, the
requests seen by the fake API, and the replies sent. The tests' harness runs the real Claude Code of
the SDK's wheel; it needs what the tests need.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from contextlib import closing
from importlib import import_module
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

from .command import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
harness: Any = import_module("host_scene")

LIVES_SECONDS = (2.0, 8.0)
THINKING_SECONDS = (0.0, 0.0, 0.3, 1.0, 3.0)


class Books(NamedTuple):
    """The content of the three books. Every non-empty list of `problems` is a fault of the host."""

    messages: int
    replies: int
    requests: int
    prompts: int
    asked_again: int
    kills: int
    seconds: float
    problems: dict[str, list[str]]


def main(
    groups: int = 20, messages: int = 100, kills: int = 100, seed: int = 7, json: bool = False
) -> int:
    """Return the exit code: 1 if the books disagree. Each group gets `messages` messages."""
    dice = random.Random(seed)
    with (
        harness.Echo(lambda: dice.choice(THINKING_SECONDS)) as api,
        closing(harness.HostMachine(api)) as machine,
    ):
        books = play(machine, groups, messages, kills, dice)
    print(dumps(books._asdict(), indent=2) if json else _as_text(books, groups))
    return 1 if any(books.problems.values()) else 0


def play(
    machine: Any,
    groups: int,
    messages: int,
    kills: int,
    dice: random.Random,
    lives_seconds: tuple[float, float] = LIVES_SECONDS,
) -> Books:
    """Run the scene on a fresh machine.

    The host lives as many times as `kills`, each time with its share of the messages, and once more
    to the end."""
    names = ["main", *[f"g{number}" for number in range(1, groups)]]
    machine.init(*names, config="groups_at_once: 4\nidle_seconds: 5\n")
    said = {f"m-{name}-{number}": name for name in names for number in range(messages)}
    tokens = list(said)
    dice.shuffle(tokens)
    ids: dict[str, str] = {}
    began = time.monotonic()
    for life in range(kills + 1):
        share, tokens = _split(tokens, len(tokens) // (kills + 1 - life))
        born, length = time.monotonic(), dice.uniform(*lives_seconds)
        machine.start()
        for at, token in zip(sorted(dice.uniform(0, length) for _ in share), share):
            time.sleep(max(0.0, born + at - time.monotonic()))
            ids[token] = machine.say(said[token], f"message {token}")
        if life < kills:
            time.sleep(max(0.0, born + length - time.monotonic()))
            machine.kill(with_runtimes=life % 2 == 1)
    machine.wait(
        lambda: not any(sum(machine.ledger.inbox_counts(name)) for name in names), "end of the work"
    )
    machine.wait(lambda: not machine.ledger.undelivered(), "delivery of the last reply")
    machine.stop()
    return compare(
        machine,
        {token: (said[token], ids[token]) for token in said},
        kills,
        time.monotonic() - began,
    )


def _split(tokens: list[str], count: int) -> tuple[list[str], list[str]]:
    return tokens[:count], tokens[count:]


def compare(machine: Any, said: dict[str, tuple[str, str]], kills: int, seconds: float) -> Books:
    """Return the books of an idle machine; `said` has the group and the message's id by token."""
    requests = machine.api.prompts()
    seen = Counter(token for request in requests for token in harness.tokens(request.news))
    replies = machine.ledger.replies(limit=10**9)
    answers = Counter(message_id for reply in replies for message_id in reply.answers)
    by_message = {message_id: reply for reply in replies for message_id in reply.answers}
    problems: dict[str, list[str]] = {
        "never seen by the API": [token for token in said if not seen[token]],
        "not answered": [
            token for token, (_, message_id) in said.items() if not answers[message_id]
        ],
        "answered more than once": [
            token for token, (_, message_id) in said.items() if answers[message_id] > 1
        ],
        "answered without regard to it": [
            token
            for token, (_, message_id) in said.items()
            if message_id in by_message and token not in harness.tokens(by_message[message_id].text)
        ],
        "answered in another chat": [
            token
            for token, (group, message_id) in said.items()
            if message_id in by_message and by_message[message_id].group != group
        ],
        "not delivered": [str(reply.id) for reply in machine.ledger.undelivered()],
        "replies to nothing": [
            f"{reply.id}: {reply.text}" for reply in replies if not reply.answers
        ],
        "errors": [f"{reply.id}: {reply.text}" for reply in replies if reply.kind == "error"],
        "out of order": _disordered(machine),
    }
    prompts = int(
        machine.ledger.connection.execute("SELECT count(*) FROM prompts").fetchall()[0][0]
    )
    again = sum(1 for count in seen.values() if count > 1)
    return Books(
        len(said), len(replies), len(requests), prompts, again, kills, round(seconds, 1), problems
    )


def _disordered(machine: Any) -> list[str]:
    """Return the messages that were answered after a later message of their group."""
    query = (
        "SELECT i.message_id, i.group_folder, p.reply_id FROM inbox i JOIN prompts p ON p.id = "
        "i.prompt_id "
        "ORDER BY i.group_folder, i.seq"
    )
    disordered: list[str] = []
    last: dict[str, int] = {}
    for message_id, group, reply in machine.ledger.connection.execute(query):
        if reply is not None and reply < last.get(group, 0):
            disordered.append(f"{group}: {message_id}")
        last[group] = max(reply or 0, last.get(group, 0))
    return disordered


def _as_text(books: Books, groups: int) -> str:
    lines = [
        f"{groups} groups, {books.messages} messages, {books.kills} kills in {books.seconds} s",
        f"  {books.prompts} prompts were made of the messages; the API saw "
        f"{books.requests} requests, "
        f"in which {books.asked_again} messages were new more than once",
        f"  {books.replies} replies went out",
    ]
    for name, failures in books.problems.items():
        lines.append(
            f"  {name}: {len(failures) or 'none'}{'  ' + ', '.join(failures[:5]) if failures else ''}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    run(main)
