"""Text of an update: all sessions that did something, within a limit of characters. Pure."""

from __future__ import annotations

from ..text.format import counted, one_line, shorten
from ..text.sanitize import all_for_prompt, beginning
from ..text.timestamps import age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .report import Report, SessionSummary

HEADER = "[Session Activity]"
QUOTE_CHARACTERS = 100
NAME_CHARACTERS = 40
FILE_CHARACTERS = 60
PLACE_CHARACTERS = 24
SHORTEST_QUOTE = 24
SHORTEST_LINE = 76  # sessions without room for such a line are only named
_RAW_CHARACTERS = 500  # the rest of a longer text is ignored


def most_lines(limit: int) -> int:
    """Return how many sessions have room for a line of their own in `limit` characters."""
    return max(1, (limit - len(HEADER)) // SHORTEST_LINE)


def text_of(
    reports: list[Report], now: float, limit: int, unread: int = 0, first_lines: list[str] | None = None
) -> tuple[str, int]:
    """Return the text of the first `reports`, as many as fit in `limit` characters, and their number.

    The room is shared fairly: a short line leaves what it does not need to the longer ones. Sessions without room are
    named in a last line, which also counts `unread` further ones. `first_lines` stand before all others.
    """
    first = [HEADER, *(first_lines or ())]
    room = limit - len("\n".join(first))
    shown = min(len(reports), most_lines(limit))
    lines = _lines(reports, shown, now)
    while shown > 0:
        rest = _rest_line([line.name for line in lines[shown:]], unread, SHORTEST_LINE // 2)
        texts = _fair_texts(lines[:shown], room - (len(rest) + 1 if rest else 0))
        if all(texts):
            return "\n".join([*first, *texts, *([rest] if rest else [])]), shown
        shown -= 1
    return "\n".join(first) if first_lines else "", 0


def _lines(reports: list[Report], shown: int, now: float) -> list[_Line]:
    """Return a line for each of `reports`, more than a name for the first `shown`.

    All texts but the last answers are sanitized in one call, which is faster.
    """
    texts: list[str] = []
    for index, report in enumerate(reports):
        has_text = report.with_text and index < shown
        files = report.summary.edited_files
        texts += [
            report.name,
            report.place[1],
            report.title,
            report.summary.first_request if has_text else "",
            files[0] if has_text and len(files) == 1 else "",
        ]
    sanitized = iter(_sanitized(texts))
    return [_Line(report, now, *parts) for report, parts in zip(reports, zip(*[sanitized] * 5))]


def _fair_texts(lines: list[_Line], room: int) -> list[str]:
    """Return the text of each line, with a newline before each at most `room` characters; '' if it does not fit.

    The last assistant texts share what the rest leaves.
    """
    widths = _fair_shares([len(line.text(room)) + 1 for line in lines], room)
    left = room - sum(widths)
    if not left:
        return [line.text(width - 1) for line, width in zip(lines, widths)]
    answers = _sanitized([line.raw_answer for line in lines])
    longer = [len(line.text(width + left, answer)) + 1 for line, width, answer in zip(lines, widths, answers)]
    extra = _fair_shares([max(0, full - width) for full, width in zip(longer, widths)], left)
    return [
        line.text(width + more - 1, answer if more > 0 else "")
        for line, width, more, answer in zip(lines, widths, extra, answers)
    ]


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
    session stands once, in place of the name."""

    def __init__(
        self, report: Report, now: float, name: str, place: str, title: str, request: str, edited_file: str
    ) -> None:
        """The given texts of `report` are sanitized; `raw_answer` is not."""
        summary = report.summary
        self._place = report.place[0] + shorten(place, PLACE_CHARACTERS)
        self._runtime = f"{report.runtime}: " if report.runtime else ""
        self.name = self._runtime + (shorten(name, NAME_CHARACTERS) or "unnamed") + self._place
        self.raw_answer = summary.last_assistant_text if report.with_text else ""
        self._when = f" ({age(now - report.last_active)}, {_counted(summary.messages, 'message', report.is_partial)})"
        self._title = request if title and request.startswith(title) else ""
        self._request = "" if self._title or _is_said_by(name, request) else request
        self._actions = _actions(summary, edited_file, report.is_partial) if report.with_text else [""]

    def text(self, width: int, answer: str = "") -> str:
        """Return the line in at most `width` characters, '' if they are too few; with the last `answer` if it fits."""
        head = f"- {self.name}{self._when}"
        if self._title:
            head = self._titled(SHORTEST_QUOTE)
        if len(head) > width:
            return ""
        room = width - len(head) - len(": ")
        kept_for_request = min(len(self._request), SHORTEST_QUOTE) + len('"" -> ') if self._request else 0
        actions = next((words for words in self._actions if len(words) <= room - kept_for_request), "")
        if self._title:
            fixed = len(self._titled(0)) + (len(": ") + len(actions) if actions else 0)
            head = self._titled(max(SHORTEST_QUOTE, min(QUOTE_CHARACTERS, width - fixed)))
            room = width - len(head) - len(": ")
        shown = _quoted(self._request, room - (len(" -> ") + len(actions) if actions else 0))
        if actions:
            shown = f"{shown} -> {actions}" if shown else actions
        before = f"{shown}; last: " if shown else "last: "
        last = _quoted(answer, room - len(before))
        shown = before + last if last else shown
        return f"{head}: {shown}" if shown else head

    def _titled(self, characters: int) -> str:
        """Return the beginning of the line with so many characters of the request as its name."""
        return f'- {self._runtime}"{shorten(self._title, characters)}"{self._place}{self._when}'


def _sanitized(texts: list[str]) -> list[str]:
    """Return the beginning of each text on one line, sanitized and without quotation marks."""
    beginnings = all_for_prompt([beginning(text, 2 * _RAW_CHARACTERS) for text in texts])
    return [one_line(text[:_RAW_CHARACTERS]).replace('"', "'") for text in beginnings]


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


def _actions(summary: SessionSummary, edited_file: str, is_partial: bool) -> list[str]:
    """Return the actions from many words to few: with the name of the one edited file, without it, without the
    reads."""
    edited, named = "", ""
    if summary.edited_files:
        edited = f"edited {_counted(len(summary.edited_files), 'file', is_partial)}"
    if len(summary.edited_files) == 1 and not is_partial:
        named = f"edited {shorten(edited_file, FILE_CHARACTERS)}"
    read = f"read {_counted(summary.files_read, 'file', is_partial)}" if summary.files_read else ""
    ran = f"ran {_counted(summary.commands, 'command', is_partial)}" if summary.commands else ""
    choices = ((named or edited, read, ran), (named or edited, ran), (edited, ran), (edited or ran or read,))
    return [", ".join([part for part in parts if part]) for parts in choices]


def _rest_line(names: list[str], unread: int, room: int) -> str:
    """Return `+3 more: email, slack, cron`, with as many names as fit."""
    if not names and not unread:
        return ""
    head = f"+{len(names) + unread} more"
    fitting: list[str] = []
    for name in names:
        if len(head) + len(": ") + len(", ".join([*fitting, name])) > room:
            break
        fitting.append(name)
    return f"{head}: {', '.join(fitting)}" if fitting else head
