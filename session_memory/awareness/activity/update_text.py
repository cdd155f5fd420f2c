"""Text of an update: all sessions with activity, within a limit of characters."""

from __future__ import annotations

from ...common.text.format import counted, shorten
from ...common.text.sanitize import quotable
from ...common.text.timestamps import age
from .report import Report, label_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._new_entries import NewEntries
    from .changes import OwnSession

    Reports = list[tuple[Report, NewEntries]]

HEADER = "[Session Activity]"
QUOTE_CHARACTERS = 100
SHORTEST_FILE = 24
LONGEST_NAME = 40  # of a file without its directory
COMMAND_CHARACTERS = 64
MOST_COMMANDS = 4
MOST_FILES = 3
MOST_TOOLS = 2
SHORTEST_QUOTE = 24
SHORTEST_ANSWER = 60
SHORTEST_TITLE = 40
SHORTEST_LINE = 96  # in the seed's form, sessions without room for such a line are only counted
# four lines in 500 characters are each too short to be worth reading (see bench/research/updates)
MOST_LINES = 3


_STARTS = ("agent", "task")  # tools that start sub-agents: their work is told, not their start


class Selection:
    """The `reports` that get a line, as far as there is room.

    The last `old` reports are not counted, and use room that the others leave. `further` sessions
    are only counted. `are_more` means that still others may have news."""

    def __init__(
        self, reports: list[Report], further: int = 0, *, are_more: bool = False, old: int = 0
    ) -> None:
        self.reports = reports
        self.further = further
        self.are_more = are_more
        self.old = old

    def count(self, shown: int) -> list[str]:
        """Return the last line, which counts the sessions that are not `shown`, or []."""
        more = len(self.reports) - self.old - shown + self.further
        return [f"{'at least ' if self.are_more else '+'}{more} more"] if more else []


class UpdateForm:
    """The form of an update: which sessions get a line, and its contents.

    Another form overrides these methods."""

    FILE_CHARACTERS = 60
    KEEPS_LEFTOVERS = False  # for the next prompt, if they had no room
    RECALLS = True  # what concerns the prompt, even if it was told

    def most_lines(self, limit: int) -> int:
        """Return how many sessions get a line in `limit` characters."""
        return MOST_LINES

    def most_with_room(self, limit: int) -> int:
        """Return how many lines of the seed's form fit into `limit` characters."""
        return max(1, (limit - len(HEADER)) // SHORTEST_LINE)

    def worth_a_line(self, own_session: OwnSession, reports: Reports, most: int) -> Reports:
        """Return the sessions that get a line, at most `most`, with the names of their commands.

        These are the sessions with activity that can be named, or all if there are none."""
        concrete: Reports = []
        for report, new in reports[:most]:
            if len(concrete) == MOST_LINES:
                break
            if report.with_text:
                _add_names(own_session, report, new)
            if report.is_concrete:
                concrete.append((report, new))
        return concrete or reports[:most]

    def named_files(self, report: Report) -> list[str]:
        """Return the files that a line names, the best first."""
        return report.named_files[2]

    def request(self, report: Report) -> str:
        """Return the request that a line quotes before the actions: what led to the last edit,
        else what the session is about now."""
        return report.summary.edit_request

    def actions(
        self, report: Report, files: list[str], ran: list[str], tools: list[str]
    ) -> list[str]:
        """Return phrases for a session's actions, from long to short.

        The `files`, the commands that it `ran` and the other `tools` are sanitized."""
        return _named_actions(self, report, files, ran, tools)

    def used(self, tools: list[str]) -> str:
        """Return a phrase for the other tools that a session used, or ''."""
        names = ", ".join(
            [_command(name) for name in tools if name and name.lower() not in _STARTS]
        )
        return f"used {names}" if names else ""

    def heard(self, report: Report) -> str:
        """Return a phrase for the messages that a session got from agents, or ''."""
        messages = report.summary.from_agents
        return f"got {counted(messages, 'message')} from agents" if messages else ""

    def least(self, report: Report, *, has_file: bool, has_title: bool) -> tuple[bool, bool]:
        """Return whether a line needs the request, and whether it needs the answer.

        The request says what the session is about, the answer what it did. If its activity has no
        name, the line quotes its answer."""
        return not has_title, not (has_file or report.named_commands)


def _add_names(own_session: OwnSession, report: Report, new: NewEntries) -> None:
    """Add to a report the names of its commands, and the files that its sub-agents edited."""
    if report.summary.calls:
        report.ran = own_session.deadline.attempt("commands", _names_of, report, new)
    if not report.summary.edited_files and own_session.sub_agents_of(new.session):
        from ._commands import add_sub_agents

        own_session.deadline.attempt(
            "sub-agents", add_sub_agents, report, new, own_session.sub_agents_of(new.session)
        )


def _names_of(report: Report, new: NewEntries) -> list[str]:
    from ._commands import names_of, note_outcomes

    if not new.session.is_remote:
        note_outcomes(report.summary, new.runtime, new.session.path)
    return names_of(report.summary.ran)


def text_of(
    selection: Selection,
    now: float,
    limit: int,
    first_lines: Sequence[str] = (),
    form: UpdateForm | None = None,
) -> tuple[str, int]:
    """Return the text of the first selected reports that fit in `limit`, and their number.

    `limit` counts characters. The room is shared fairly: a short line leaves its unused room to
    longer ones. `first_lines` come before all others."""
    form = form or UpdateForm()
    first = [HEADER, *first_lines]
    room = limit - len("\n".join(first))
    lines = _lines(selection.reports[: form.most_lines(limit)], now, form)
    texts, count = _fitting(lines, selection, room)
    if not texts and lines and len(lines[0].head()) < room:
        texts = [lines[0].head()]
    if not texts:
        return "\n".join(first) if first_lines else "", 0
    return "\n".join([*first, *texts, *count]), len(texts)


def _fitting(lines: list[_Line], selection: Selection, room: int) -> tuple[list[str], list[str]]:
    """Return the texts of as many lines as fit, and the line that counts the others, if any."""
    new = len(selection.reports) - selection.old
    texts: list[str] = []
    count: list[str] = []
    for shown in range(min(len(lines), new), -1, -1):
        count = selection.count(shown)
        texts = _fair_texts(lines[:shown], room - sum([len(line) + 1 for line in count]))
        if all(texts):
            break
    if len(texts) == new:
        room -= sum([len(line) + 1 for line in [*texts, *count]])
        for shown in range(len(lines), new, -1):
            more_texts = _fair_texts(lines[new:shown], room)
            if all(more_texts):
                texts += more_texts
                break
    return texts, count


def _lines(reports: list[Report], now: float, form: UpdateForm) -> list[_Line]:
    """Return a line for each of `reports`.

    All texts are sanitized in one call, which is faster."""
    texts: list[str] = []
    named: set[str] = set()
    for report in reports:
        summary, has_text = report.summary, report.with_text
        files = _new_first(form.named_files(report), named, report) if has_text else []
        named.update(files)
        texts += [
            *report.texts,
            report.runtime,
            form.request(report) if has_text and not report.goes_on else "",
            report.answer if has_text else "",
            *_filled(files, MOST_FILES),
            *_filled(report.ran or (), MOST_COMMANDS),
            *_filled(summary.other_tools, MOST_TOOLS),
        ]
    sanitized = iter(quotable(texts))
    width = len(texts) // len(reports) if reports else 1
    return [
        _Line(report, now, list(parts), form)
        for report, parts in zip(reports, zip(*[sanitized] * width))
    ]


def _new_first(files: list[str], named: set[str], report: Report) -> list[str]:
    """Return the first MOST_FILES of a line's files: those that lines before it named come last,
    unless they concern the prompt."""
    known = [path for path in files if path in named and path not in report.preferred]
    return [*[path for path in files if path not in known], *known][:MOST_FILES]


def _filled(texts: Sequence[str], number: int) -> list[str]:
    """Return the first `number` texts, with '' for missing ones."""
    return [*texts[:number], *[""] * (number - len(texts))]


def _fair_texts(lines: list[_Line], room: int) -> list[str]:
    """Return the text of each line, in `room` characters in all; '' for a line that does not fit.

    Each text begins with a newline. The last assistant texts share the remaining room."""
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
    """Return each line's share of `room`.

    It is the wanted width, or an equal share of the room that narrower lines leave."""
    shares = [0] * len(wanted)
    left = len(wanted)
    for index in sorted(range(len(wanted)), key=lambda i: wanted[i]):
        shares[index] = min(wanted[index], room // left)
        room -= shares[index]
        left -= 1
    return shares


class _Line:
    """The line about one session: who, when, how much, the request, the actions, the last answer.

    A request that names the session appears only as its title. Without room for at least one
    action, there is no line."""

    def __init__(self, report: Report, now: float, texts: list[str], form: UpdateForm) -> None:
        """`texts` are those that `_lines` made from `report`, sanitized."""
        self._label, (runtime, request, self._answer) = texts[:4], texts[4:7]
        files = [path for path in texts[7 : 7 + MOST_FILES] if path]
        self._before_place = report.place[0]
        messages = report.counted(report.summary.messages, "message")
        about = [runtime, age(now - report.last_active), messages]
        self._about = f" ({', '.join([part for part in about if part])})"
        title = texts[1].rstrip("…") if report.is_request else ""
        if title and request.startswith(title):
            self._label[1], request = request, ""
        name, words = [text.casefold().strip(" .!?…") for text in (texts[0] or texts[1], request)]
        self._request = "" if f" {words} " in f" {name} " else request
        ran = texts[7 + MOST_FILES :]
        commands, tools = ran[:MOST_COMMANDS], ran[MOST_COMMANDS:]
        self._actions = form.actions(report, files, commands, tools) if report.with_text else [""]
        needs_request, needs_answer = form.least(
            report, has_file=bool(files), has_title=bool(self._label[1])
        )
        self._least_answer = _quoted(self._answer, SHORTEST_ANSWER) if needs_answer else ""
        self._before_answer = "earlier: " if report.summary.is_earlier else "last: "
        self._least_request = _quoted(self._request, SHORTEST_QUOTE + 2) if needs_request else ""

    def text(self, width: int, *, with_answer: bool = False) -> str:
        """Return the line in at most `width` characters; '' if they are too few.

        It includes the last answer if that fits."""
        room = width - len(self.head())
        for actions in self._actions:
            least = len(self._rest(self._least_request, actions, self._least_answer))
            if least <= room:
                break
        else:
            return ""
        head = self.head(max(SHORTEST_TITLE, width - len(self.head(0)) - least))
        room = width - len(head)
        request = _quoted(
            self._request, room - len(self._rest(" ", actions, self._least_answer)) + 1
        )
        has_answer = with_answer or self._least_answer
        answer = (
            _quoted(self._answer, room - len(self._rest(request, actions, " ")) + 1)
            if has_answer
            else ""
        )
        return head + self._rest(request, actions, answer)

    def _rest(self, request: str, actions: str, answer: str) -> str:
        """Return the line's text after its beginning."""
        words = f"{request} -> {actions}" if request and actions else request or actions
        if answer:
            words += f"; {self._before_answer}" if words else self._before_answer
        return f": {words}{answer}" if words else ""

    def head(self, characters: int = SHORTEST_TITLE) -> str:
        """Return the beginning of the line with so many characters of the title."""
        return (
            f"- "
            f"{label_of(self._label, self._before_place, min(characters, QUOTE_CHARACTERS))}{self._about}"
        )


def _quoted(text: str, room: int) -> str:
    """Return `"text"`, shortened; '' if it is empty or the room is too small to say anything."""
    if not text or room < min(len(text), SHORTEST_QUOTE) + 2:
        return ""
    return f'"{shorten(text, min(QUOTE_CHARACTERS, room - 2))}"'


def _named_actions(
    form: UpdateForm, report: Report, files: list[str], ran: list[str], tools: list[str]
) -> list[str]:
    """Return phrases for the actions, from long to short.

    Each has the name of a file or a command if there is one."""
    several, brief, two, short = _files_phrases(report, files, form.FILE_CHARACTERS)
    file = files[0] if files else ""
    names = _names_of_commands(report, ran)
    commands = f"ran {', '.join(names)}" if names else ""
    named = names[: len(report.named_commands)]
    last = f"ran {_most_telling(named)}" if named else ""
    used = form.used(tools) if not (file or names) else ""
    choices = (
        (form.heard(report), several, commands, used),
        (several, commands),
        (several, last),
        (brief, last),
        (brief,),
        (two,),
        (short,),
        ("" if report.preferred else last,),
    )
    phrases = [", ".join([part for part in parts if part]) for parts in choices]
    return [words for words in phrases if words] + ([] if file or report.named_commands else [""])


def _files_phrases(report: Report, files: list[str], most: int) -> list[str]:
    """Return phrases such as `edited src/a.py, …/b.py and 3 more`, from long to short; the longest
    has the first path in about `most` characters."""
    if not files:
        return [""] * 4
    verb, number, _ = report.named_files
    ends = [_end_of(path, SHORTEST_FILE) for path in files]

    def phrase(paths: list[str]) -> str:
        further = number - len(paths)
        others = f" and {further}{'+' if report.is_partial else ''} more" if further > 0 else ""
        return f"{verb} {', '.join(paths)}{others}"

    longest = [_end_of(files[0], most), *ends[1:]]
    return [phrase(longest), phrase(ends), phrase(ends[:2]), phrase(ends[:1])]


def _names_of_commands(report: Report, ran: list[str]) -> list[str]:
    """Return the names of the commands, [] if they have none."""
    return [_command(name) for name in ran if name] if report.named_commands else []


def _most_telling(names: list[str]) -> str:
    """Return the last commit, or the last of these commands."""
    commits = [name for name in names if name.startswith("git commit")]
    return (commits or names)[-1]


def _command(name: str) -> str:
    """Return the name of a command, shortened, but with its end.

    The end is `(failed)`, or the mark after a commit's message."""
    words, failed, _ = name.partition(" (failed)")
    short = shorten(words, COMMAND_CHARACTERS)
    return short + ("'" if short != words and "'" in short else "") + failed


def _end_of(path: str, most: int) -> str:
    """Return the end of a path, its most informative part, in about `most` characters."""
    at = path.find("/", len(path) - most + 1) if len(path) > most else 0
    if at > 0:
        return f"…{path[at:]}"
    return shorten(path.rpartition("/")[2], LONGEST_NAME) if at else path
