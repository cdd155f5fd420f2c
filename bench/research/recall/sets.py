"""Sets of questions, and their sessions as transcripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.records import assistant, user

BETWEEN_MESSAGES = timedelta(seconds=40)


class SetError(Exception):
    """A file is not a set of questions."""


class Message(NamedTuple):
    role: str
    text: str


class Session(NamedTuple):
    id: str
    date: datetime
    messages: list[Message]


class Question(NamedTuple):
    """`evidence` are the ids of the sessions in which the answer is."""

    text: str
    evidence: frozenset[str]


class Collection(Protocol):
    """Sessions, and the questions about them."""

    @property
    def questions(self) -> list[Question]:
        """What is asked."""

    def write_transcripts(self, directory: Path) -> dict[str, str]:
        """Write each session's transcript into a new directory; return session ids by
        transcript."""


class Group(NamedTuple):
    """The sessions of a group of a set, and the questions about them."""

    sessions: list[Session]
    questions: list[Question]

    def write_transcripts(self, directory: Path) -> dict[str, str]:
        """As Claude Code would."""
        directory.mkdir(parents=True)
        sessions = {}
        for session in self.sessions:
            digits = blake2b(session.id.encode(), digest_size=16).hexdigest()
            name = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
            lines = [json.dumps(record, ensure_ascii=False) for record in _records(session, name)]
            (directory / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
            sessions[name] = session.id
        return sessions


def read_set(path: Path) -> list[Group]:
    """Return the groups in a file. Raises SetError with the problem and its place."""
    try:
        groups = [_group(group) for group in json.loads(path.read_bytes())["groups"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SetError(f"{path}: {type(error).__name__}: {error}") from error
    for number, group in enumerate(groups):
        known = {session.id for session in group.sessions}
        for question in group.questions:
            if not question.evidence or not question.evidence <= known:
                raise SetError(f"{path}: group {number}: no such evidence: {question.text!r}")
    return groups


def _group(group: dict[str, Any]) -> Group:
    sessions = [
        Session(
            session["id"],
            datetime.fromisoformat(session["date"].replace("Z", "+00:00")),
            _messages(session),
        )
        for session in group["sessions"]
    ]
    questions = [
        Question(question["question"], frozenset(question["evidence"]))
        for question in group["questions"]
    ]
    return Group(sessions, questions)


def _messages(session: dict[str, Any]) -> list[Message]:
    first = session["messages"][0].get("speaker")
    return [
        Message(
            "user" if message["speaker"] == first else "assistant",
            f"{message['speaker']}: {message['text']}",
        )
        if "speaker" in message
        else Message(message["role"], message["text"])
        for message in session["messages"]
    ]


def _records(session: Session, name: str) -> Iterator[dict[str, Any]]:
    parent = None
    for number, message in enumerate(session.messages):
        uuid, at = (
            f"{name[:-4]}{number:04x}",
            (session.date + number * BETWEEN_MESSAGES).timestamp(),
        )
        fields = {"parentUuid": parent, "sessionId": name, "uuid": uuid, "at": at}
        if message.role == "user":
            yield user(message.text, **fields)
        else:
            yield assistant(message.text, message_id=f"msg_{uuid}", **fields)
        parent = uuid
