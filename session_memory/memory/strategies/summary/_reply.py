"""Claude's JSON answer: our own check of shapes, lengths and quotations. Pure.

The API guarantees the schema, but not that quotations are real, and a made-up memory would be
believed for years."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ....common.text.format import one_line, shorten
from ....common.text.sanitize import for_people
from ...format import KINDS
from ...strategy import Memory

MOST_MEMORIES = 12
# kinds that only the user can have
_OF_USER = {"preference": "preferences", "question": "questions that stay open"}
LEAST_QUOTE_CHARACTERS = 12
LONGEST = {"title": 160, "summary": 1000, "subject": 80, "text": 1000, "quote": 1000}
SHOWN_CHARACTERS = 80

_TYPOGRAPHY = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "\u00a0": " "}
)


class SummaryReply(NamedTuple):
    """The usable part of an answer about a conversation, and the errors in the rest.

    The memories have no title yet."""

    title: str
    summary: str
    memories: tuple[Memory, ...]
    problems: tuple[str, ...] = ()


class BadReplyError(Exception):
    """An unusable answer; the message says why."""


def checked(value: Any, text: str, of_user: str, known_ids: Collection[str]) -> SummaryReply:
    """Return the answer in `value`, with the memories whose quotation occurs in `text`.

    A preference's or question's quotation must occur in `of_user`, the user's messages. Raises
    BadReplyError."""
    answer = _object(value, ("title", "summary", "memories"), "the answer")
    memories = answer["memories"]
    if not isinstance(memories, list):
        raise BadReplyError("`memories` is not a list")
    comparable_text, comparable_words = comparable(text), comparable(of_user)
    stated: list[Memory] = []
    problems: list[str] = []
    for number, memory in enumerate(memories[:MOST_MEMORIES], 1):
        statement = _stated(memory, number, known_ids)
        problem = _problem_of(statement.quote, comparable_text)
        if (
            not problem
            and statement.kind in _OF_USER
            and comparable(statement.quote) not in comparable_words
        ):
            problem = f"its quote is not the user's: only they have {_OF_USER[statement.kind]}"
        if problem:
            problems.append(
                f"memory {number} ({shorten(one_line(statement.text), SHOWN_CHARACTERS)}): {problem}"
            )
        else:
            stated.append(statement)
    summary = one_line(_string(answer, "summary"))
    return SummaryReply(_string(answer, "title"), summary, tuple(stated), tuple(problems))


def checked_whole(value: Any, questions: int) -> tuple[str, str, frozenset[int]]:
    """Return title, summary and answered questions of a conversation read in parts.

    The questions are numbers, from 1. Raises BadReplyError."""
    answer = _object(value, ("title", "summary", "answered"), "the answer")
    answered = answer["answered"]
    if not isinstance(answered, list) or not all(type(number) is int for number in answered):
        raise BadReplyError("`answered` is not a list of numbers")
    numbers = frozenset([number for number in answered if 1 <= number <= questions])
    return _string(answer, "title"), one_line(_string(answer, "summary")), numbers


def comparable(text: str) -> str:
    """Normalise `text` for comparing quotations: white space, case and typography."""
    return one_line(text.translate(_TYPOGRAPHY)).casefold()


def _problem_of(quote: str, comparable_text: str) -> str:
    """Return the error in a quotation; '' if it has none."""
    wanted = comparable(quote)
    if len(wanted) < LEAST_QUOTE_CHARACTERS and wanted.isascii() and len(wanted.split()) < 3:
        return f"its quote is too short to prove anything: {quote!r}"
    if not wanted or wanted not in comparable_text:
        return f"its quote is not in the record: {shorten(one_line(quote), SHOWN_CHARACTERS)!r}"
    return ""


def _stated(memory: Any, number: int, known_ids: Collection[str]) -> Memory:
    where = f"memory {number}"
    answer = _object(memory, ("kind", "subject", "text", "quote", "replaces"), where)
    if answer["kind"] not in KINDS:
        raise BadReplyError(f"{where}: `kind` is not one of {', '.join(KINDS)}")
    replaces = answer["replaces"]
    if not isinstance(replaces, list) or not all(isinstance(id, str) for id in replaces):
        raise BadReplyError(f"{where}: `replaces` is not a list of ids")
    text = _string(answer, "text", where)
    subject, quote = (
        _string(answer, key, where, may_be_empty=True) for key in ("subject", "quote")
    )
    return Memory(
        answer["kind"], "", text, subject, quote, tuple([id for id in replaces if id in known_ids])
    )


def _object(value: Any, keys: Sequence[str], where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadReplyError(f"{where} is not a JSON object")
    missing = [key for key in keys if key not in value]
    if missing:
        raise BadReplyError(f"{where} lacks {', '.join(f'`{key}`' for key in missing)}")
    return value


def _string(
    answer: Mapping[str, Any], key: str, where: str = "the answer", *, may_be_empty: bool = False
) -> str:
    value = answer[key]
    if not isinstance(value, str) or not (may_be_empty or value.strip()):
        raise BadReplyError(f"{where}: `{key}` is not text")
    return shorten(for_people(value).strip(), LONGEST[key])
