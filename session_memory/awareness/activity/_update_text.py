"""Text of an update: all sessions that did something, within a limit of characters. Pure."""

from __future__ import annotations

from ...common.text.format import counted, shorten
from ...common.text.sanitize import quotable
from ...common.text.timestamps import age
from .report import Report, label_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


HEADER = "[Session Activity]"
QUOTE_CHARACTERS = 100
FILE_CHARACTERS = 60
SHORTEST_FILE = 24
COMMAND_CHARACTERS = 64
MOST_COMMANDS = 4
MOST_TOOLS = 2
SHORTEST_QUOTE = 24
SHORTEST_ANSWER = 60
SHORTEST_TITLE = 40
SHORTEST_LINE = 96  # of the seed's form: sessions without room for such a line are only counted
# of four, in 500 characters, each tells less than is worth reading (see bench/research/updates)
MOST_LINES = 3


def most_lines(limit: int) -> int:
    """Return of how many sessions a line of the seed's form has room in `limit` characters."""
    return max(1, (limit - len(HEADER)) // SHORTEST_LINE)


def text_of(
    reports: list[Report],
    now: float,
    limit: int,
    further: int = 0,
    *,
    are_more: bool = False,
    old: int = 0,
    first_lines: Sequence[str] = (),
) -> tuple[str, int]:
    """Return the text of the first `reports`, as many as fit in `limit` characters, and their
    number. The room is shared fairly: a short line leaves what it does not need to the longer ones.
    New sessions without room are counted in a last line, with `further` ones, and if `are_more`
    perhaps others too. The last `old` of the reports are not counted, and have the room that the
    others leave. `first_lines` stand before all others."""
    first = [HEADER, *first_lines]
    room = limit - len("\n".join(first))
    most = most_lines(limit) if any([report.counts_deeds for report in reports]) else MOST_LINES
    lines = _lines(reports[:most], now)
    new = len(reports) - old
    rest: list[str] = []
    for shown in range(min(most, new), -1, -1):
        more = new - shown + further
        rest = [f"+{more} {'or ' if are_more else ''}more"] if more else []
        texts = _fair_texts(lines[:shown], room - sum([len(line) + 1 for line in rest]))
        if all(texts):
            break
    if len(texts) == new:
        room -= sum([len(line) + 1 for line in [*texts, *rest]])
        for shown in range(len(lines), new, -1):
            more_texts = _fair_texts(lines[new:shown], room)
            if all(more_texts):
                texts += more_texts
                break
    if not texts and lines and len(lines[0].head()) < room:
        texts = [lines[0].head()]
    if not texts:
        return "\n".join(first) if first_lines else "", 0
    return "\n".join([*first, *texts, *rest]), len(texts)


def _lines(reports: list[Report], now: float) -> list[_Line]:
    """Return a line for each of `reports`. All texts are sanitized in one call, which is faster."""
    texts: list[str] = []
    for report in reports:
        summary, has_text = report.summary, report.with_text
        texts += [
            *report.texts,
            report.runtime,
            summary.first_request if has_text else "",
            report.named_file[2] if has_text else "",
            report.answer if has_text else "",
            *_filled(report.ran or (), MOST_COMMANDS),
            *_filled(summary.other_tools, MOST_TOOLS),
        ]
    sanitized = iter(quotable(texts))
    width = len(texts) // len(reports) if reports else 1
    return [
        _Line(report, now, list(parts)) for report, parts in zip(reports, zip(*[sanitized] * width))
    ]


def _filled(texts: Sequence[str], number: int) -> list[str]:
    """Return the first texts, as many as `number`, with '' for those missing."""
    return [*texts[:number], *[""] * (number - len(texts))]


def _fair_texts(lines: list[_Line], room: int) -> list[str]:
    """Return the text of each line, with a newline before each at most `room` characters; '' if it
    does not fit. The last assistant texts share what the rest leaves."""
    widths = _fair_shares([len(line.text(room)) + 1 for line in lines], room)
    left = room - sum(widths)
    longer = [
        len(line.text(width + left, with_answer=True)) + 1 for line, width in zip(lines, widths)
    ]
    extra = _fair_shares([max(0, full - width) for full, width in zip(longer, widths)], left)
    return [
        line.text(width + more - 1, with_answer=more > 0)
        for line, width, more in zip(lines, widths, extra)
    ]


def _fair_shares(wanted: list[int], room: int) -> list[int]:
    """Return each one's part of `room`: what it wants if that is at most an equal share of what the
    others leave."""
    shares = [0] * len(wanted)
    left = len(wanted)
    for index in sorted(range(len(wanted)), key=lambda i: wanted[i]):
        shares[index] = min(wanted[index], room // left)
        room -= shares[index]
        left -= 1
    return shares


class _Line:
    """Line about one session: who, when, how much, the request, the actions, the last answer. A
    request that names the session stands once, as its title. Without room for something that the
    session did, there is no line."""

    def __init__(self, report: Report, now: float, texts: list[str]) -> None:
        """`texts` are those that `_lines` made of `report`, sanitized."""
        self._label, (runtime, request, file, self._answer) = texts[:3], texts[3:7]
        self._before_place = report.place[0]
        messages = _counted(report.summary.messages, "message", report.is_partial)
        about = [runtime, age(now - report.last_active), messages]
        self._about = f" ({', '.join([part for part in about if part])})"
        title = texts[1].rstrip("…") if report.is_request else ""
        if title and request.startswith(title):
            self._label[1], request = request, ""
        name, words = [text.casefold().strip(" .!?…") for text in (texts[0] or texts[1], request)]
        self._request = "" if f" {words} " in f" {name} " else request
        commands, tools = texts[7 : 7 + MOST_COMMANDS], texts[7 + MOST_COMMANDS :]
        self._actions = [""]
        if report.with_text and report.counts_deeds:
            self._actions = [*_counted_actions(report, file, tools), ""]
        elif report.with_text:
            self._actions = _named_actions(report, file, commands, tools)
        # At least, there is what the session is about, and what it did: if that has no name, what
        # it answered.
        is_named = report.counts_deeds or file or report.named_commands
        self._least_answer = "" if is_named else _quoted(self._answer, SHORTEST_ANSWER)
        is_subject = report.counts_deeds or not self._label[1]
        self._least_request = _quoted(self._request, SHORTEST_QUOTE + 2) if is_subject else ""

    def text(self, width: int, *, with_answer: bool = False) -> str:
        """Return the line in at most `width` characters, '' if they are too few; with the last
        answer if it fits."""
        room = width - len(self.head())
        for actions in self._actions:
            least = len(_rest(self._least_request, actions, self._least_answer))
            if least <= room:
                break
        else:
            return ""
        head = self.head(max(SHORTEST_TITLE, width - len(self.head(0)) - least))
        room = width - len(head)
        request = _quoted(self._request, room - len(_rest(" ", actions, self._least_answer)) + 1)
        has_answer = with_answer or self._least_answer
        answer = (
            _quoted(self._answer, room - len(_rest(request, actions, " ")) + 1)
            if has_answer
            else ""
        )
        return head + _rest(request, actions, answer)

    def head(self, characters: int = SHORTEST_TITLE) -> str:
        """Return the beginning of the line with so many characters of the title."""
        return (
            f"- "
            f"{label_of(self._label, self._before_place, min(characters, QUOTE_CHARACTERS))}{self._about}"
        )


def _rest(request: str, actions: str, answer: str) -> str:
    """Return what follows the beginning of a line, with what there is of it."""
    words = f"{request} -> {actions}" if request and actions else request or actions
    if answer:
        words += "; last: " if words else "last: "
    return f": {words}{answer}" if words else ""


def _quoted(text: str, room: int) -> str:
    """Return `"text"`, shortened; '' if there is none, or too little room for it to say
    anything."""
    if not text or room < min(len(text), SHORTEST_QUOTE) + 2:
        return ""
    return f'"{shorten(text, min(QUOTE_CHARACTERS, room - 2))}"'


def _counted(number: int, noun: str, is_partial: bool) -> str:
    """Return `3 files`, or `3+ files` if only a part was read."""
    return f"{number}+ {noun}s" if is_partial else counted(number, noun)


def _named_actions(report: Report, file: str, ran: list[str], tools: list[str]) -> list[str]:
    """Return the actions from many words to few, each with the name of a file or a command if there
    is one."""
    summary = report.summary
    verb, files, _ = report.named_file
    others = f" and {files - 1}{'+' if report.is_partial else ''} more" if files > 1 else ""
    whole, short = [
        f"{verb} {_end_of(file, most)}{others}" if file else ""
        for most in (FILE_CHARACTERS, SHORTEST_FILE)
    ]
    names = [_command(name) for name in ran if name]
    if summary.ran and report.ran is None:
        names = [_counted(summary.commands, "command", report.is_partial)]
    elif file and not report.named_commands:
        names = []  # their number says nothing
    commands, last = f"ran {', '.join(names)}" if names else "", ""
    if report.named_commands:
        told = names[: len(report.named_commands)]
        last = "ran " + next(
            (name for name in reversed(told) if name.startswith("git commit")), told[-1]
        )
    used = ", ".join([_command(name) for name in tools if name])
    used = f"used {used}" if used and not (file or names) else ""
    heard = (
        f"got {counted(summary.from_agents, 'message')} from agents" if summary.from_agents else ""
    )
    choices = (
        (heard, whole, commands, used),
        (whole, commands),
        (whole, last),
        (short, last),
        (whole,),
        (short,),
        (last,),
    )
    found = [", ".join([part for part in parts if part]) for parts in choices]
    return [words for words in found if words] + ([] if file or report.named_commands else [""])


def _command(name: str) -> str:
    """Return the name of a command, shortened with its end: `(failed)`, or the mark behind what a
    commit says."""
    words, failed, _ = name.partition(" (failed)")
    short = shorten(words, COMMAND_CHARACTERS)
    return short + ("'" if short != words and "'" in short else "") + failed


def _end_of(path: str, most: int) -> str:
    """Return the end of a path, which says most, in about so many characters."""
    at = path.find("/", len(path) - most + 1) if len(path) > most else 0
    return f"…{path[at:]}" if at > 0 else shorten(path if not at else path.rpartition("/")[2], most)


def _counted_actions(report: Report, edited_file: str, tools: list[str]) -> list[str]:
    """Return the actions in the seed's form: with the one edited file, without it, without the
    reads."""
    summary, is_partial = report.summary, report.is_partial
    edited, named = "", ""
    if summary.edited_files:
        edited = f"edited {_counted(len(summary.edited_files), 'file', is_partial)}"
    if edited_file and not is_partial:
        named = f"edited {shorten(edited_file, FILE_CHARACTERS)}"
    read = f"read {_counted(summary.files_read, 'file', is_partial)}" if summary.files_read else ""
    commands = f"ran {_counted(summary.commands, 'command', is_partial)}" if summary.ran else ""
    used = ", ".join([shorten(name, COMMAND_CHARACTERS) for name in tools if name])
    used = f"used {used}" if used and not (edited or read or commands) else ""
    heard = (
        f"got {counted(summary.from_agents, 'message')} from agents" if summary.from_agents else ""
    )
    choices = (
        (heard, named or edited, read, commands, used),
        (named or edited, commands),
        (edited, commands),
        (edited or commands or read or heard or used,),
    )
    return [", ".join([part for part in parts if part]) for parts in choices]
