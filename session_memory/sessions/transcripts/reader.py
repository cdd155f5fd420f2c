"""The one reader of transcripts: backward from the end, or forward with constant memory.

Backward it reads as far as needed. Both ways yield entries, note the session's title and count
unreadable records. A session without a title gets its most informative request, the heading of a
plan, or its start time."""

from __future__ import annotations

from ...common.system.files import os, read_at
from ...common.system.json import decode_line
from ...common.text.format import ELLIPSIS, one_line
from ...common.text.paths import is_id
from ...common.text.timestamps import local_time
from ..runtimes.records import (
    CALLS,
    MESSAGES,
    NO_TITLE,
    RESULTS,
    SUB_AGENTS,
    CallResult,
    Compaction,
)
from ..runtimes.records import Title as FoundTitle
from .entries import FROM_AGENTS, Entry
from .lines import (
    BLOCK_BYTES,
    SEARCHED_BYTES,
    WINDOW_GROWTH,
    head_lines,
    holds_bytes,
    is_whole,
    last_line_end,
    lines_forward,
    windows_backward,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ..runtimes.base import Runtime
    from ..runtimes.records import Decode, Event, Record, Wanted
    from .lines import Line

Title = tuple[int, str]  # with its rank

HEAD_BYTES = 64 * 1024
FIRST_BYTES = 64  # show how a transcript's JSON is spaced
# this much of a file that begins with copied large files is read before the first prompt
FURTHER_BYTES = 4 * 1024 * 1024
_ENTRIES = MESSAGES | CALLS  # with and without text
OWNER_BYTES = 16 * 1024 * 1024  # of a transcript, searched for the record that a title belongs to
# the same limit at a prompt: it takes .4 x a bare start for two files of 100 MB
BRIEF_OWNER_BYTES = 1024 * 1024
_FEW_TITLES = 2  # they are searched for one by one
FIRST_PROMPT_RANK = 0  # the rank of a first prompt as a title; all other titles rank higher
USER_RANK = 3  # the rank of a title that the user gave; other titles summarize the session


class TitleOwner:
    """A transcript as the owner of titles; it may also contain titles of sessions it continues."""

    def __init__(self, session_id: str, descriptor: int, searched: int = OWNER_BYTES) -> None:
        """`session_id` is the id in the file's name; `searched` bytes are searched for a record."""
        self._session_id = session_id
        self._descriptor = descriptor
        self._searched = searched
        self._found: dict[bytes, bool] = {}
        self._values: dict[tuple[bytes, int], set[bytes]] = {}  # by the key and their length

    def has(
        self, session_id: str = "", within: bytes = b"", *, is_one_of_many: bool = False
    ) -> bool:
        """Return whether this transcript owns a title with this session id and these bytes.

        The bytes must be in the transcript. A file whose name is not an id, such as a copy, owns
        every session's titles. For `is_one_of_many`, all bytes like these are found at once."""
        if session_id not in ("", self._session_id) and is_id(self._session_id):
            return False
        if within and within not in self._found:
            # as another program writes it
            is_spaced = b'": ' in read_at(self._descriptor, 0, FIRST_BYTES)
            separator = b'": "' if is_spaced else b'":"'
            wanted = within.replace(b'":"', separator)
            is_one_of_many = is_one_of_many or False in self._found.values()
            self._found[within] = (
                self._has_value(wanted, separator)
                if is_one_of_many
                else holds_bytes(self._descriptor, wanted, self._searched)
            )
        return self._found.get(within, True)

    def _has_value(self, wanted: bytes, separator: bytes) -> bool:
        """Search for all values of a key, and return whether the wanted one is among them.

        It takes as long as three searches for one. A transcript that continues others may begin
        with many of their titles."""
        key, quote, value = wanted.partition(separator)
        mark, kind = key + quote, (key, len(value))
        if not quote or mark in value:
            return holds_bytes(self._descriptor, wanted, self._searched)
        if kind not in self._values:
            self._values[kind] = self._values_after(mark, len(value))
        return value in self._values[kind]

    def _values_after(self, mark: bytes, length: int) -> set[bytes]:
        """Return the `length` bytes after each `mark` in the bytes that `holds_bytes` searches."""
        values: set[bytes] = set()
        searched = -(-self._searched // BLOCK_BYTES) * BLOCK_BYTES
        for start in range(0, searched, SEARCHED_BYTES):
            end = start + SEARCHED_BYTES + len(mark) + length - 1
            block = read_at(self._descriptor, start, end)
            values.update([part[:length] for part in block.split(mark)[1:]])
            if len(block) < SEARCHED_BYTES:
                break
        return values


class TranscriptReader:
    """Reads one transcript, in one direction.

    `title` is the best title found; of equal ones, the last in the file. `unreadable` counts
    records that could not be decoded, `decoded` the bytes of decoded lines. `reached` is the offset
    after the last line read forward, `record` the last record; {} if it has results without hunks."""

    def __init__(
        self,
        runtime: Runtime,
        first_line: bytes,
        decode: Decode = decode_line,
        *,
        owner: TitleOwner | None = None,
        of_sub_agents: bool = False,
    ) -> None:
        """`first_line` is the transcript's;

        `decode` returns a line's values and its number of unreadable ones. Without an `owner`, only
        titles that name no owner count. With `of_sub_agents` only sub-agents' actions count, read
        forward."""
        self.unreadable = 0
        self.decoded = 0
        self.reached = 0
        self.record: Record = {}
        self._meaning = runtime.records
        self._decode = decode
        self._owner = owner
        self._of_sub_agents = of_sub_agents
        self._branch = runtime.records.open_transcript(first_line)
        # where a line names a directory, up to where no other line does, and the directory
        self._named = 0, 0, ""
        rank, text = self._branch.title if self._branch is not None else NO_TITLE
        self._title = (rank, 0), text  # 0, or the number of the title that was noted
        self._noted = 0
        self._candidates: list[tuple[tuple[int, int], FoundTitle]] = []

    @property
    def title(self) -> Title:
        self._settle_title()
        (rank, _), text = self._title
        return rank, text

    @property
    def is_of_subagent(self) -> bool:
        return self._branch is not None and self._branch.is_of_subagent

    def may_matter(self, line: bytes) -> bool:
        """Return False only for a line that surely has no entry, title or compaction."""
        return self._meaning.prefilter(line, _ENTRIES)

    def backward(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """Yield the entries in `lines`, both from last to first.

        Entries outside the live branch are omitted; for that, `lines` must begin with the last line
        of the file."""
        meaning, branch, is_left_out = self._meaning, self._branch, self.is_of_subagent
        wanted = _ENTRIES
        for offset, line in lines:
            counts = branch is None or (branch.holds(line) and not is_left_out)
            if not line or not meaning.prefilter(line, wanted):
                continue
            for record in reversed(self.records(line)):
                for event in reversed(meaning.events(record, offset, wanted)):
                    if isinstance(event, FoundTitle):
                        self._note_title(event, -1)
                    elif isinstance(event, Entry) and counts:
                        if branch is not None:
                            branch.complete(event)
                        yield event
        self._settle_title()

    def from_end(
        self, descriptor: int, limit: int | None = None, *, with_directories: bool = True
    ) -> Iterator[Entry]:
        """Yield the entries of a transcript from the last to the first, within its last `limit`
        bytes.

        The directory of an entry may be in an earlier line, also before these bytes. That line is
        not searched for without directories."""
        size = os.fstat(descriptor).st_size
        end = last_line_end(descriptor, 0, size, size if limit is None else limit) or 0
        branch = self._branch if with_directories else None
        for lines in windows_backward(descriptor, 0, end, limit):
            entries = self.backward(reversed(lines))
            if branch is not None and branch.DIRECTORY_MARKS:
                entries = iter([*entries])
                if branch.unsettled:
                    self.begin_at(descriptor, lines[0][0])
            yield from entries

    def begin_at(self, descriptor: int, offset: int) -> None:
        """Note the directory that an earlier line names for the records at `offset`.

        Raises OSError."""
        branch = self._branch
        if branch is None or not branch.DIRECTORY_MARKS:
            return
        # the windows of a long turn have one directory, which is searched for once
        start, end, directory = self._named
        if not start < offset <= end:
            lines = _marked_lines(descriptor, offset, branch.DIRECTORY_MARKS)
            naming = ((at, name) for at, line in lines if (name := branch.directory_in(line)))
            start, directory = next(naming, (-1, ""))
            self._named = start, offset, directory
        if directory:
            branch.directory = directory
            branch.settle(directory)

    def forward(
        self,
        lines: Iterable[Line],
        *,
        with_tools: bool = True,
        with_results: bool = False,
        left_out: Collection[int] = (),
    ) -> Iterator[Entry | CallResult | Compaction]:
        """Yield the entries and compactions in `lines`, in order, and on request results of calls.

        Without tools only entries with text count, and lines recognised as having none are not
        decoded. Entries and results in lines at the offsets `left_out` are left out. Records glued
        to a line have the next offsets."""
        meaning, branch = self._meaning, self._branch
        is_left_out = self.is_of_subagent and not self._of_sub_agents
        wanted = self._wanted(with_tools=with_tools, with_results=with_results)
        for offset, line in lines:
            self.reached = offset + len(line)
            if is_left_out or len(line) < 2 or not meaning.prefilter(line, wanted):
                continue
            results = self._results_in(line) if with_results else None
            if results is not None:
                yield from results if offset not in left_out else ()
                continue
            for index, record in enumerate(self.records(line)):
                for event in self._noted_events(record, offset + index, wanted):
                    if isinstance(event, Entry):
                        if offset in left_out or not (event.text or with_tools):
                            continue
                        if branch is not None:
                            branch.complete(event)
                        yield event
                    elif isinstance(event, FoundTitle):
                        self._note_title(event, 1)
                    elif isinstance(event, Compaction) or (
                        isinstance(event, CallResult) and offset not in left_out
                    ):
                        yield event
        self._settle_title()

    def _results_in(self, line: bytes) -> list[CallResult] | None:
        """Return the results in a line of nothing else, and note its record if that has hunks.

        Return None for a line to decode."""
        results, hunks = self._meaning.results_in(line, self._decode), self._meaning.HUNKS
        if results is not None:
            values = self._decode(line)[0] if hunks and hunks in line else ()
            self.record = next((value for value in values if isinstance(value, dict)), {})
        return results

    def _wanted(self, *, with_tools: bool, with_results: bool) -> Wanted:
        """Return the kinds of events to yield."""
        wanted = _ENTRIES if with_tools else MESSAGES
        if with_results:
            wanted = wanted | RESULTS
        return wanted | SUB_AGENTS if self._of_sub_agents else wanted

    def _noted_events(self, record: Record, offset: int, wanted: Wanted) -> list[Event]:
        """Return the events in a record, and note its information about the records after it."""
        self.record = record
        events, branch = self._meaning.events(record, offset, wanted), self._branch
        if branch is not None and not (events and isinstance(events[0], Entry)):
            branch.note(record)
        return events

    def conversation(self, descriptor: int, *, with_tools: bool = True) -> Iterator[Entry | None]:
        """Yield the entries of a whole transcript that count, each id once; None for a compaction.

        They are in file order."""
        size = os.fstat(descriptor).st_size
        left_out = self.offsets_off_branch(descriptor, size)
        ids: set[int] = set()
        for entry in self.forward(
            lines_forward(descriptor, 0, size), with_tools=with_tools, left_out=left_out
        ):
            if isinstance(entry, Entry):
                known = hash(entry.id)
                if entry.id and known in ids:
                    continue
                ids.add(known)
                yield entry
            else:
                yield None

    def take_titles(self, descriptor: int, start: int, end: int) -> None:
        """Search `[start, end)` for titles.

        Only lines with the bytes that mark a title are decoded."""
        meaning, marks = self._meaning, self._meaning.TITLE_MARKS
        for _, line in lines_forward(descriptor, start, end) if marks else ():
            for record in self.records(line) if any([mark in line for mark in marks]) else ():
                for event in meaning.events(record, 0, MESSAGES):
                    if isinstance(event, FoundTitle):
                        self._note_title(event, 1)
        self._settle_title()

    def _note_title(self, title: FoundTitle, step: int) -> None:
        """Note a title that is better than those before, if this transcript may own it.

        `step` is 1 forward and -1 backward, so of equal titles the last in the file is the best."""
        self._noted += 1
        place = title.rank, step * self._noted
        is_named = bool(title.session_id or title.within)
        if place < self._title[0] or (
            is_named and (self._owner is None or not self._owner.has(title.session_id))
        ):
            return
        if title.within:
            self._candidates.append((place, title))
        else:
            self._title = place, title.text

    def _settle_title(self) -> None:
        """Take the best noted title that the transcript owns.

        Each search for a title's record reads the file, so the others are not searched for."""
        is_many = len(self._candidates) > _FEW_TITLES
        for place, title in sorted(self._candidates, reverse=True) if self._candidates else ():
            if place < self._title[0]:
                break
            if self._owner is not None and self._owner.has(
                within=title.within, is_one_of_many=is_many
            ):
                self._title = place, title.text
        self._candidates.clear()

    def records(self, line: bytes) -> list[Record]:
        """Return the records of a line, several if line feeds are missing.

        Values that are not records count as unreadable."""
        self.decoded += len(line)
        values, unreadable = self._decode(line)
        # as of nearly every line
        if not unreadable and len(values) == 1 and isinstance(values[0], dict):
            return values
        records = [value for value in values if isinstance(value, dict)]
        self.unreadable += unreadable + len(values) - len(records)
        return records

    def offsets_off_branch(self, descriptor: int, size: int) -> set[int]:
        """Return the offsets of lines outside the live branch in the first `size` bytes.

        Call it on a new reader."""
        branch = self._branch
        if branch is None or not branch.may_leave_out:
            return set()
        end = last_line_end(descriptor, 0, size, size) or 0
        last = read_at(descriptor, end, size)
        if is_whole(last):
            branch.holds(last)
        windows = windows_backward(descriptor, 0, end)
        return {
            offset
            for lines in windows
            for offset, line in reversed(lines)
            if not branch.holds(line)
        }

    def rewound_offsets(self, descriptor: int) -> set[int]:
        """Return the offsets of records on the live branch that a person took back by rewinding."""
        from ._rewound import RecordTree  # imported late: no prompt needs it

        return RecordTree(self._meaning, descriptor).rewound_offsets()


def _marked_lines(descriptor: int, end: int, marks: tuple[bytes, ...]) -> Iterator[Line]:
    """Yield the lines before `end` that contain one of `marks`, from last to first.

    A line ends at `end`. The bytes are searched at memory speed, and only the lines found are cut
    out."""
    size = SEARCHED_BYTES
    while end > 0:
        begin = max(0, end - size)
        content = read_at(descriptor, begin, end)
        first = content.find(b"\n") + 1 if begin else 0
        if begin and first in (0, len(content)):
            size *= WINDOW_GROWTH  # the last line is longer
            continue
        upto = len(content)
        contained = [mark for mark in marks if mark in content]
        while (
            at := max([content.rfind(mark, first, upto) for mark in contained], default=-1)
        ) >= 0:
            upto = max(first, content.rfind(b"\n", 0, at) + 1)
            yield begin + upto, content[upto : content.index(b"\n", at)]
        end, size = begin + first, SEARCHED_BYTES


def first_entry(runtime: Runtime, descriptor: int) -> Entry | None:
    """Return the first entry of a transcript; None if its beginning has none. Raises OSError."""
    for limit in (HEAD_BYTES, FURTHER_BYTES):
        first_line, lines = head_lines(descriptor, limit)
        for entry in TranscriptReader(runtime, first_line).forward(lines):
            if isinstance(entry, Entry):
                return entry
    return None


def first_directory(runtime: Runtime, descriptor: int) -> str:
    """Return the directory that the first entry of a transcript names, or ''.

    TranscriptHead has it too, but reads on to the first prompt. Raises OSError."""
    for limit in (HEAD_BYTES, FURTHER_BYTES):
        first_line, lines = head_lines(descriptor, limit)
        reader = TranscriptReader(runtime, first_line)
        for entry in reader.forward(lines):
            if isinstance(entry, Entry) and entry.cwd:
                return entry.cwd
    return ""


class TranscriptHead:
    """The first lines of a transcript.

    It has the id of the first entry, the first time, the first directory and the most informative
    request ('' or None if missing), a title with its rank, and whether a compaction precedes all
    entries."""

    def __init__(self, runtime: Runtime, descriptor: int, owner: TitleOwner | None = None) -> None:
        """Read HEAD_BYTES of a transcript, or at most FURTHER_BYTES if they have no prompt.

        Raises OSError."""
        self.begins_compacted = False
        self.first_id = ""
        self.cwd = ""
        self.first_time: float | None = None
        self.prompt = ""
        owner = owner or TitleOwner("", descriptor)
        self._read(runtime, descriptor, HEAD_BYTES, owner)
        if not self.prompt and os.fstat(descriptor).st_size > HEAD_BYTES:
            self._read(runtime, descriptor, FURTHER_BYTES, owner)

    def _read(self, runtime: Runtime, descriptor: int, limit: int, owner: TitleOwner) -> None:
        first_line, lines = head_lines(descriptor, limit)
        reader = TranscriptReader(runtime, first_line, owner=owner)
        left: set[int] | None = None
        for entry in reader.forward(lines):
            if isinstance(entry, Entry):
                self.first_id = self.first_id or entry.id
                self.cwd = self.cwd or entry.cwd
                self.first_time = entry.timestamp if self.first_time is None else self.first_time
                # A rule may hide messages from another directory.
                if entry.role == "user" and entry.cwd == self.cwd and is_request(entry.text):
                    # a better one may be on an abandoned branch
                    if self.prompt and left is None:
                        left = TranscriptReader(runtime, first_line).offsets_off_branch(
                            descriptor, min(limit, os.fstat(descriptor).st_size)
                        )
                    if not left or entry.offset not in left:
                        self.prompt = telling_request(
                            [self.prompt, entry.text] if self.prompt else [entry.text]
                        )
                if self.first_id and says_enough(self.prompt):
                    break
            elif not self.first_id:
                self.begins_compacted = True
        self.title = reader.title

    def best_title(self, later: Title) -> Title:
        """Return the session's title with its rank, given the best `later` one.

        Without any title, its request becomes the title."""
        title = self.title if self.title[0] > later[0] else later
        return title if title[1] else (FIRST_PROMPT_RANK, title_of(self.prompt))


SHORT_CHARACTERS = 40  # a longer text is always a request
# Commands of runtimes that ask nothing of the model, or only a summary.
_WITH_VALUES = """
    /agents /clear /compact /compress /config /cost /exit /help /hooks /login /logout /mcp /mode /model /new
    /permissions /quit /rename /resume /status /theme /usage
"""
_SETTINGS = frozenset(_WITH_VALUES.split())
TELLING_WORDS = 3  # this many words describe a session
_HANDOFF = "# Handoff: "  # begins the page of a handoff, before the title of its session
_PLAN = "implement the following plan"
_PLAN_HEADINGS = ("", "plan", "implementation plan", "context", "overview", "summary", "goal")
_PLAN_LABELS = ("implementation plan:", "plan:")
# Words that agree, thank, or ask to continue, without naming anything. Single characters and
# numbers count as such words too, because they answer a question.
_AGREED = """
    ahead all alright and as commit continue cool correct do done exactly fine go good great it just keep lgtm
    looks nice no nope now ok okay on perfect please proceed push resume right same sounds sure thank thanks
    that the then this very well works yeah yep yes you [document] [image] ja weiter danke oui non 继续 好的
"""
_NO_REQUEST = frozenset(_AGREED.split())
# Answers in several words that name nothing either.
_ANSWERS = """
    nothing to add, nothing else, works for me, fine by me, fine with me, sounds good to me, makes sense, go for it,
    up to you, your call, your choice, as you like, as you wish, whatever you think, whatever you prefer, i agree,
    agreed, no changes, no questions, no more questions, not yet, that's all, that is all, let's go, let's do it,
    all good, no problem, same here, i think so
"""
_ANSWER_PHRASES = [" ".join(phrase.split()) for phrase in _ANSWERS.split(",")]


def is_request(text: str) -> bool:
    """Check if a prompt is a request.

    "3", "yes, continue", "commit" and the message of another agent are not requests."""
    text = _topic(text)
    if text.startswith(FROM_AGENTS) or text.partition(" ")[0] in _SETTINGS:
        return False
    return len(text) > SHORT_CHARACTERS or _telling_words(text) > 0 or _is_command(text)


def says_enough(request: str) -> bool:
    """Check if a request describes a session, unlike "fix it"."""
    request = _topic(request)
    return len(request) > SHORT_CHARACTERS or _telling_words(request) >= TELLING_WORDS


def telling_request(requests: Iterable[str]) -> str:
    """Return the first request that describes a session, else the most informative; '' if none."""
    best = ""
    for request in requests:
        if says_enough(request):
            return request
        if not best or _telling_words(request) > _telling_words(best):
            best = request
    return best


def _is_command(text: str) -> bool:
    """Check if a text is a slash command or skill without words."""
    name = text[1:].replace("-", "").replace("_", "").replace(":", "")
    return text.startswith("/") and len(name) > 1 and name.isalnum()


def _topic(request: str) -> str:
    """Return the part of a request that names its topic."""
    if request.startswith(("<", "[")):
        from ._typed_words import request_words

        return request_words(request)
    return request


def _telling_words(text: str) -> int:
    said = "" if _is_command(text) else " ".join(text.casefold().replace("’", "'").split())
    for answer in _ANSWER_PHRASES if len(said) <= SHORT_CHARACTERS else ():
        said = said.replace(answer, "")
    words = [word.strip(".,;:!?()'\"*`") for word in said.split()]
    telling = [
        word for word in words if len(word) > 1 and word not in _NO_REQUEST and not word.isdigit()
    ]
    # some scripts have no spaces
    return sum([1 if word.isascii() else (len(word) + 1) // 2 for word in telling])


def is_plan(prompt: str) -> bool:
    """Check if a prompt is a plan to implement, as a runtime passes it on."""
    return prompt[: len(_PLAN)].casefold() == _PLAN


def title_of(request: str) -> str:
    """Return the title from a session's request.

    It is the request's own words, a plan's heading, or the title of the session that it
    continues."""
    if request.startswith(_HANDOFF):
        return _title_of_successor(request)
    return (_heading_of_plan(request) if is_plan(request) else "") or _topic(request)


def later_request(title: str, texts: Iterable[str]) -> str:
    """Return the last request of a session whose title is a request; '' if it says little or is
    the one in the title.

    `texts` are the user's, the latest first."""
    request = title_of(telling_request(filter(is_request, texts)))
    return request if says_enough(request) and not is_title_of(title, request) else ""


def is_title_of(title: str, request: str) -> bool:
    """Check if a title is this request, perhaps shortened or without its last punctuation."""
    start = title.rstrip(ELLIPSIS)
    words = one_line(request)
    if start == title and any([character.isalnum() for character in words[len(start) :]]):
        return False
    return words.startswith(start)


def _title_of_successor(page: str) -> str:
    """Return the title of a session that began with the page of a handoff."""
    title = page[len(_HANDOFF) :].partition("\n")[0].strip()
    return title if title.startswith("continues ") else f'continues "{title}"'


def title_by_time(began: float | None) -> str:
    """Return the title of a session if only its start time `began` is known or may be shown."""
    return "unnamed session" if began is None else f"session of {local_time(began)}"


def _heading_of_plan(prompt: str) -> str:
    for line in prompt[len(_PLAN) :].split("\n"):
        heading = line.strip("#*_: \t\r")
        label = next((label for label in _PLAN_LABELS if heading.casefold().startswith(label)), "")
        heading = heading[len(label) :].strip()
        if heading.casefold() not in _PLAN_HEADINGS:
            return heading
    return ""
