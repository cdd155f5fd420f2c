"""Finds a person's words in the result of a tool call: answers, or reasons to refuse.

Only results that begin as runtimes write them count, so a file or page that a tool read cannot pass
for the person.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...common.system.json import as_list, as_object, as_string, objects_in

# The beginnings of results of answered dialogs, and of refused calls.
ANSWERED = (
    "User has answered your questions: ",
    "Your questions have been answered: ",
    "The user answered: ",
    "The user responded: ",
    "User has provided the following answers:",
    "User responded:",
    "User selected: ",
    '{"answers":{',
)
REFUSED = (
    "The user doesn't want to proceed with this tool use.",
    "Plan rejected. User feedback: ",
    "Plan not approved. User feedback:",
    "The user rejected permission to use this specific tool call with the following feedback: ",
    "The user rejected this tool call. User feedback: ",
)
# before the words
_SAID = ("the user said:\n", "the user said: ", "with the following feedback: ", "User feedback:")
# The text that runtimes add after the words.
_BEHIND = (
    ". You can now continue with ",
    " You can now continue with ",
    ". Read the answers carefully",
    " Read the answers ",
    "\n\nNote: The user's next message may contain ",
    "\n\nThe plan is stored at: ",
    "\n\nPlease update the plan based on this feedback",
)
# begins a list of the answers given so far
_CLARIFIED = "The user wants to clarify these questions"
_NOTE = "user_note: "  # before words typed beside a choice


def words_in(text: str) -> str:
    """Return the person's words in a result, one paragraph for each answer; '' if it has none."""
    text = text.strip()
    if text.startswith(REFUSED):
        at = min([text.find(mark) + len(mark) for mark in _SAID if mark in text], default=len(text))
        said = _before(text[at:], _BEHIND).strip()
        return _joined(_answers_listed(said)) if said.startswith(_CLARIFIED) else said
    if not text.startswith(ANSWERED):
        return ""
    if text.startswith("{"):
        return answers_in(
            as_object(next(iter(objects_in(text.encode("utf-8", "replace"))), {}).get("answers"))
        )
    opening = next(opening for opening in ANSWERED if text.startswith(opening))
    given = _before(text[len(opening) :], _BEHIND)
    if '"="' in given or '"=(no option' in given:
        return _joined(_answers_quoted(given))
    if opening.endswith("answers:"):  # from Qwen Code: `**Header**: words`
        return _joined([answer.partition("**: ")[2] for answer in given.split("\n**")])
    return given.strip()


def answers_in(answers: dict[str, object], notes: object = None) -> str:
    """Return the words in a dialog's answers, by question, with notes beside a choice.

    An answer is a text, a list of texts, or an object with either."""
    words: list[str] = []
    for question, answer in answers.items():
        given = as_object(answer).get("answers", answer)
        words += [
            as_string(text).removeprefix(_NOTE)
            for text in (given if isinstance(given, list) else [given])
        ]
        words.append(as_string(as_object(as_object(notes).get(question)).get("notes")))
    return _joined(words)


def answer_lists(answers: object) -> str:
    """Return the words in answers given as lists of texts, in the order of the questions."""
    return _joined([as_string(text) for texts in as_list(answers) for text in as_list(texts)])


def _answers_quoted(text: str) -> list[str]:
    """Return the answers in `"question"="answer", ...`, with the notes beside them."""
    answers = []
    parts = text.replace('"=(no option selected)', '"=""').split('"="')[1:]
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        answer, is_noted, note = part.partition('" notes: ')
        if not is_noted:
            answer = answer.rpartition('"')[0] or answer if is_last else answer.partition('", "')[0]
        answers += [answer, note if is_last else note.rpartition(', "')[0]]
    return answers


def _answers_listed(text: str) -> list[str]:
    lines = [line.strip() for line in text.split("\n")]
    return [
        line.partition(": ")[2] for line in lines if line.startswith(("Answer: ", "User notes: "))
    ]


def _before(text: str, marks: Iterable[str]) -> str:
    """Return the text up to the first of `marks` in it."""
    return text[: min([text.find(mark) for mark in marks if mark in text], default=len(text))]


def _joined(words: Iterable[str]) -> str:
    return "\n\n".join([text.strip() for text in words if text.strip()])
