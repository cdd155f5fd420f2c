"""Text of an update: all sessions that did something, within a limit of characters. Pure."""

from __future__ import annotations

from ..text.format import counted, shorten
from ..text.sanitize import quotable
from ..text.timestamps import age
from .report import label_of, says_something

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .report import Report

HEADER = "[Session Activity]"
QUOTE_CHARACTERS = 100
FILE_CHARACTERS = 60
COMMAND_CHARACTERS = 40
MOST_COMMANDS = 4
MOST_TOOLS = 2
SHORTEST_QUOTE = 24
SHORTEST_TITLE = 40
SHORTEST_LINE = 96  # sessions without room for such a line are only counted


class Further:
    """Sessions without a line: `count` of them have news, and if `are_more` perhaps others too. The last `old` of the
    reports are not counted."""

    def __init__(self, count: int = 0, *, are_more: bool = False, old: int = 0) -> None:
        self.count = count
        self.are_more = are_more
        self.old = old


def most_lines(limit: int) -> int:
    """Return how many sessions have room for a line of their own in `limit` characters."""
    return max(1, (limit - len(HEADER)) // SHORTEST_LINE)


def text_of(
    reports: list[Report], now: float, limit: int, further: Further | None = None, first_lines: list[str] | None = None
) -> tuple[str, int]:
    """Return the text of the first `reports`, as many as fit in `limit` characters, and their number.

    The room is shared fairly: a short line leaves what it does not need to the longer ones. New sessions without room
    are counted in a last line, with `further` ones. `first_lines` stand before all others.
    """
    further = further or Further()
    first = [HEADER, *(first_lines or ())]
    room = limit - len("\n".join(first))
    shown = min(len(reports), most_lines(limit))
    lines = _lines(reports[:shown], now)
    while shown > 0:
        more = max(0, len(reports) - further.old - shown) + further.count
        rest = [f"+{more} {'or ' if further.are_more else ''}more"] if more else []
        texts = _fair_texts(lines[:shown], room - sum([len(line) + 1 for line in rest]))
        if all(texts):
            return "\n".join([*first, *texts, *rest]), shown
        shown -= 1
    return "\n".join(first) if first_lines else "", 0


def _lines(reports: list[Report], now: float) -> list[_Line]:
    """Return a line for each of `reports`. All texts are sanitized in one call, which is faster."""
    texts: list[str] = []
    for report in reports:
        summary, has_text = report.summary, report.with_text
        answer = summary.last_assistant_text if has_text else ""
        texts += [
            *report.texts,
            report.runtime,
            summary.first_request if has_text else "",
            summary.edited_files[-1] if has_text and summary.edited_files and _names_file(report) else "",
            answer if says_something(answer) else "",
            *_filled(report.ran or (), MOST_COMMANDS),
            *_filled(summary.other_tools, MOST_TOOLS),
        ]
    sanitized = iter(quotable(texts))
    width = len(texts) // len(reports) if reports else 1
    return [_Line(report, now, list(parts)) for report, parts in zip(reports, zip(*[sanitized] * width))]


def _names_file(report: Report) -> bool:
    """Check that a file is named: the seed names only a single one."""
    return len(report.summary.edited_files) == 1 or not report.counts_deeds


def _filled(texts: Sequence[str], number: int) -> list[str]:
    """Return the first texts, as many as `number`, with '' for those missing."""
    return [*texts[:number], *[""] * (number - len(texts))]


def _fair_texts(lines: list[_Line], room: int) -> list[str]:
    """Return the text of each line, with a newline before each at most `room` characters; '' if it does not fit.

    The last assistant texts share what the rest leaves.
    """
    widths = _fair_shares([len(line.text(room)) + 1 for line in lines], room)
    left = room - sum(widths)
    longer = [len(line.text(width + left, with_answer=True)) + 1 for line, width in zip(lines, widths)]
    extra = _fair_shares([max(0, full - width) for full, width in zip(longer, widths)], left)
    return [line.text(width + more - 1, with_answer=more > 0) for line, width, more in zip(lines, widths, extra)]


def _fair_shares(wanted: list[int], room: int) -> list[int]:
    """Return each one's part of `room`: what it wants if that is at most an equal share of what the others leave."""
    shares = [0] * len(wanted)
    left = len(wanted)
    for index in sorted(range(len(wanted)), key=lambda i: wanted[i]):
        shares[index] = min(wanted[index], room // left)
        room -= shares[index]
        left -= 1
    return shares


class _Line:
    """Line about one session: who, when, how much, the request, the actions, the last answer. A request that names the
    session stands once, as its title."""

    def __init__(self, report: Report, now: float, texts: list[str]) -> None:
        """`texts` are those that `_lines` made of `report`, sanitized."""
        self._label, (runtime, request, edited_file, self._answer) = texts[:3], texts[3:7]
        self._before_place = report.place[0]
        messages = _counted(report.summary.messages, "message", report.is_partial)
        about = [runtime, age(now - report.last_active), messages]
        self._about = f" ({', '.join([part for part in about if part])})"
        title = texts[1].rstrip("…") if report.is_request else ""
        if title and request.startswith(title):
            self._label[1], request = request, ""
        self._request = "" if _is_said_by(texts[0] or texts[1], request) else request
        commands, tools = texts[7 : 7 + MOST_COMMANDS], texts[7 + MOST_COMMANDS :]
        self._actions = _actions(report, edited_file, commands, tools) if report.with_text else [""]

    def text(self, width: int, *, with_answer: bool = False) -> str:
        """Return the line in at most `width` characters, '' if they are too few; with the last answer if it fits."""
        head = self._head(SHORTEST_TITLE)
        if len(head) > width:
            return ""
        kept = min(len(self._request), SHORTEST_QUOTE) + len('"" -> ') if self._request else 0
        room = width - len(head) - len(": ")
        actions = next((words for words in self._actions if len(words) <= room - kept), "")
        said = kept + len(actions)
        head = self._head(max(SHORTEST_TITLE, width - len(self._head(0)) - (len(": ") + said if said else 0)))
        room = width - len(head) - len(": ")
        shown = _quoted(self._request, room - (len(" -> ") + len(actions) if actions else 0))
        if actions:
            shown = f"{shown} -> {actions}" if shown else actions
        before = f"{shown}; last: " if shown else "last: "
        last = _quoted(self._answer, room - len(before)) if with_answer else ""
        shown = before + last if last else shown
        return f"{head}: {shown}" if shown else head

    def _head(self, characters: int) -> str:
        """Return the beginning of the line with so many characters of the title."""
        return f"- {label_of(self._label, self._before_place, min(characters, QUOTE_CHARACTERS))}{self._about}"


def _quoted(text: str, room: int) -> str:
    """Return `"text"`, shortened; '' if there is none, or too little room for it to say anything."""
    if not text or room < min(len(text), SHORTEST_QUOTE) + 2:
        return ""
    return f'"{shorten(text, min(QUOTE_CHARACTERS, room - 2))}"'


def _is_said_by(name: str, request: str) -> bool:
    """Check if a name contains all words of a request."""
    words = [text.casefold().strip(" .!?…") for text in (name, request)]
    return f" {words[1]} " in f" {words[0]} "


def _counted(number: int, noun: str, is_partial: bool) -> str:
    """Return `3 files`, or `3+ files` if only a part was read."""
    return f"{number}+ {noun}s" if is_partial else counted(number, noun)


def _actions(report: Report, edited_file: str, ran: list[str], tools: list[str]) -> list[str]:
    """Return the actions from many words to few: with the names of the file edited last and of the commands, without
    them, without the reads."""
    summary, is_partial = report.summary, report.is_partial
    edited, named = "", ""
    if summary.edited_files:
        edited = f"edited {_counted(len(summary.edited_files), 'file', is_partial)}"
    if edited_file:
        others = len(summary.edited_files) - 1
        named = f"edited {shorten(edited_file, FILE_CHARACTERS)}" + (
            f" and {others}{'+' if is_partial else ''} more" if others else ""
        )
    read = f"read {_counted(summary.files_read, 'file', is_partial)}" if summary.files_read else ""
    commands = f"ran {_counted(summary.commands, 'command', is_partial)}" if summary.ran and report.ran != [] else ""
    names = [shorten(name, COMMAND_CHARACTERS) for name in ran if name]
    ran_named = f"ran {', '.join(names)}" if names else commands
    used = ", ".join([shorten(name, COMMAND_CHARACTERS) for name in tools if name])
    used = f"used {used}" if used and not (edited or read or commands) else ""
    heard = f"got {counted(summary.from_agents, 'message')} from agents" if summary.from_agents else ""
    choices = (
        (heard, named or edited, read, ran_named, used), (named or edited, ran_named), (edited, ran_named),
        (edited, commands), (edited or commands or read or heard or used,),
    )  # fmt: skip
    return [", ".join([part for part in parts if part]) for parts in choices]
