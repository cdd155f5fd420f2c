"""Reads a transcript for the store: its content as redacted values, and where to continue."""

import os
import re
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from ....common.system.files import Closing, open_regular, read_at
from ....common.system.quick_json import decode_line
from ....common.text.paths import is_id
from ....common.text.sanitize import all_for_people, beginning, for_people
from ....common.text.written_lines import (
    added_lines,
    edit_lines,
    here_documents,
    line_hashes,
    line_in,
    made_commits,
)
from ....sessions.runtimes.base import Runtime
from ....sessions.runtimes.detection import source_of
from ....sessions.runtimes.records import NO_TITLE, CallResult
from ....sessions.settings.forgotten import ForgottenSessions
from ....sessions.transcripts.edits import Edit
from ....sessions.transcripts.entries import Entry, ToolUse
from ....sessions.transcripts.lines import (
    BLOCK_BYTES,
    first_line,
    lines_forward,
)
from ....sessions.transcripts.marks import entry_key, key_of, tool_key
from ....sessions.transcripts.read_cursor import ReadCursor
from ....sessions.transcripts.reader import (
    USER_RANK,
    TitleOwner,
    TranscriptReader,
    first_entry,
)
from .sources import SourceFile
from .values import FileState, NewEntry, NewTool, ToolOutcome

ARGUMENT_CHARACTERS = 4096
MOST_FILES = 40  # of a patch whose result comes in a later part of the transcript
# Search this many more characters for secrets, to remove a secret completely if it begins before
# the limit.
SECRET_CHARACTERS = 512
CACHED_CHARACTERS = 256  # of a text that may be cleaned once for many uses: most paths are shorter


class Extract(NamedTuple):
    """The content of some bytes of a file.

    `reached` is the offset at which to continue, unless it `is_last`. `outcomes` belong to tool
    uses in an earlier extract, by the key of the call. So do `lines`, the hashes of commits that
    they made and of lines that they wrote, instead of the stored ones if `whole` has the call.
    `inode` and `size` (bytes) are the file's at the time of reading. `title` comes with
    its rank; `unreadable` counts records."""

    inode: int
    size: int
    reached: int
    entries: list[NewEntry]
    outcomes: list[tuple[int, ToolOutcome]]
    title: tuple[int, str]
    cwd: str
    unreadable: int
    is_last: bool
    lines: tuple[tuple[int, int], ...] = ()
    whole: tuple[int, ...] = ()


def result_text(content: object) -> str:
    """Return the text of a tool's result, which is a string or a list of blocks with text."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return "\n".join([text for text in texts if isinstance(text, str)])


def _outcome(is_error: bool, text: str) -> ToolOutcome:
    """Return the outcome of a call, whose `error` is text for `_error_line`, to be cleaned."""
    lines = text.count("\n") + 1 if text else 0
    return ToolOutcome(
        "error" if is_error else "ok", _error_text(text) if is_error else "", len(text), lines
    )


class _Part:
    """A part of a transcript as it was read.

    `written` and `ended` have the hashes of lines and the outcome of each call, by the number of
    its entry and its id. `outcomes`, `lines` and `whole` are of calls before this part, by
    `key_of`."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.written: dict[tuple[int, str], tuple[int, ...]] = {}
        self.ended: dict[tuple[int, str], ToolOutcome] = {}
        self.outcomes: list[tuple[int, ToolOutcome]] = []
        self.lines: list[tuple[int, int]] = []
        self.whole: list[int] = []


def _ids_before(result: CallResult) -> Iterator[str]:
    """Yield the ids under which the call of a result may have been stored before.

    The call may be a patch of several files."""
    return islice(result.part_ids(), MOST_FILES)


class Extractor:
    """Reads one transcript part by part; its session belongs to the group `home`."""

    def __init__(
        self,
        runtime: Runtime,
        descriptor: int,
        session_id: str,
        home: str = "",
        line_key: bytes = b"",
        *,
        project: str = "",
        forgotten: ForgottenSessions | None = None,
    ) -> None:
        """Start an extractor.

        With a `line_key`, lines that edits write are hashed. If `project` is not '', the whole
        session counts as work in that directory. Messages that are `forgotten` are left out, and so
        are titles that may quote them."""
        self._project = project
        self._forgotten = forgotten or None
        self._home = home
        self._line_key = line_key
        self._runtime = runtime
        self._descriptor = descriptor
        self._owner = TitleOwner(session_id, descriptor)
        self._session_id = session_id
        self._has_id = is_id(session_id)
        # the offsets of lines that do not count, by the end of the file
        self.off_branch: dict[int, set[int]] = {}
        self._cleaned: dict[str, str] = {"": ""}
        self._texts: dict[str, str] = {}  # of the entries that are read, cleaned for people
        self._repeats_forgotten: bool | None = None
        self._message = ("", 0)  # the last message's id and key

    def read(self, start: int, end: int, limit: int) -> Extract:
        """Read the records that begin in the `limit` bytes from `start` and end before `end`."""
        reader = self._reader()
        if start:
            reader.begin_at(self._descriptor, start)
        stop = start + limit
        part = self._part(reader, start, end, stop)
        reached = max(start, reader.reached)
        directory = self._project or next((entry.cwd for entry in part.entries if entry.cwd), "")
        rank, title = self._shown_title(reader.title)
        errors = [outcome.error for outcome in part.ended.values()]
        errors += [outcome.error for _, outcome in part.outcomes]
        self._clean([*_texts(part.entries), directory, title, *errors])
        ended = {call: self._with_line(outcome) for call, outcome in part.ended.items()}
        outcomes = [(key, self._with_line(outcome)) for key, outcome in part.outcomes]
        entries = [
            self._new_entry(number, entry, ended, part.written)
            for number, entry in enumerate(part.entries)
        ]
        inode = os.fstat(self._descriptor).st_ino
        is_last = reached < stop or reached == end
        of_file = self._safe(directory), reader.unreadable, is_last
        of_calls = tuple(part.lines), tuple(part.whole)
        return Extract(
            inode, end, reached, entries, outcomes, (rank, self._safe(title)), *of_file, *of_calls
        )

    def _part(self, reader: TranscriptReader, start: int, end: int, stop: int) -> _Part:
        """Return what the lines say, with the hashes of the lines that their calls write."""
        part, lines = _Part(), lines_forward(self._descriptor, start, end, stop)
        called: dict[str, int] = {}  # the latest entry whose call with this id has no result yet
        for event in reader.forward(lines, with_results=True, left_out=self._left_out(end)):
            if isinstance(event, Entry):
                if self._forgotten and self._forgotten.holds(event, self._session_id):
                    continue
                number = len(part.entries)
                called.update([(tool.call_id, number) for tool in event.tools])
                for tool in event.tools if self._line_key else ():
                    if lines_of_call := written_by(self._runtime, tool, reader.record):
                        hashes = tuple(line_hashes(lines_of_call, self._line_key))
                        part.written[number, tool.call_id] = hashes
                part.entries.append(event)
            elif isinstance(event, CallResult):
                output = result_text(event.content)
                result = _outcome(event.has_failed, output)
                made, whole = self._shown_by(event, output, reader.record)
                if event.call_id in called:
                    call = called.pop(event.call_id), event.call_id
                    part.ended[call] = result
                    part.written[call] = (*(whole or part.written.get(call, ())), *made)
                    # unless the other files of a patch get results of their own
                    for other in islice(event.part_ids(), 1, None) if called else ():
                        if called.get(other) != call[0]:
                            break
                        part.ended[call[0], other] = result
                else:
                    part.outcomes += [(key_of(id), result) for id in _ids_before(event)]
                    part.lines += [(key_of(event.call_id), line) for line in (*whole, *made)]
                    part.whole += [key_of(event.call_id)] if whole else []
        return part

    def _clean(self, texts: list[str]) -> None:
        """Clean all texts of a part together, which is quicker than each alone."""
        new = [text for text in dict.fromkeys(texts) if text not in self._cleaned]
        self._texts = dict(zip(new, all_for_people(new)))

    def _with_line(self, outcome: ToolOutcome) -> ToolOutcome:
        """Return an outcome with the line that names the error."""
        text = outcome.error
        return outcome._replace(error=_error_line(self._safe(text))) if text else outcome

    def _shown_by(
        self, result: CallResult, output: str, record: dict[str, Any]
    ) -> tuple[list[int], list[int]]:
        """Return the hashes of the commits and whole lines that a call made, by its result."""
        if result.has_failed or not self._line_key:
            return [], []
        texts = made_commits(output), whole_lines(self._runtime, result.call_id, record)
        made, whole = [line_hashes(each, self._line_key) if each else [] for each in texts]
        return made, whole

    def _shown_title(self, title: tuple[int, str]) -> tuple[int, str]:
        """Return a title, or none if it may quote a forgotten message in the transcript."""
        if self._forgotten is None:
            return title
        if self._repeats_forgotten is None:
            first = first_entry(self._runtime, self._descriptor)
            self._repeats_forgotten = first is not None and self._forgotten.holds(
                first, self._session_id
            )
        is_its_own = title[0] >= USER_RANK and not self._forgotten.has_title(title[1])
        return title if is_its_own or not self._repeats_forgotten else NO_TITLE

    def has_changed_before(self, reached: int, end: int) -> bool:
        """Check if the records that count have changed in the first `reached` bytes.

        They do if the session went back to an earlier message, or took some back."""
        return {offset for offset in self._left_out(end) if offset < reached} != self._left_out(
            reached
        )

    def _left_out(self, end: int) -> set[int]:
        if end not in self.off_branch:
            self.off_branch[end] = self._reader().offsets_off_branch(self._descriptor, end)
        return self.off_branch[end]

    @cached_property
    def _first_line(self) -> bytes:
        """The transcript's first line, which is read late: most extracts come from elsewhere."""
        return first_line(self._descriptor)

    def _reader(self) -> TranscriptReader:
        return TranscriptReader(self._runtime, self._first_line, decode_line, owner=self._owner)

    def _new_entry(
        self,
        number: int,
        entry: Entry,
        ended: dict[tuple[int, str], ToolOutcome],
        written: dict[tuple[int, str], tuple[int, ...]],
    ) -> NewEntry:
        when = None if entry.timestamp is None else round(entry.timestamp * 1000)
        key = entry_key(self._home, entry)
        message = self._key_of_message(entry.message_id) if entry.message_id else 0
        if entry.tools and not message:  # text and tool uses of one record are one message
            message = key
        tools = []
        for place, tool in enumerate(entry.tools, 1):
            result = ended.get((number, tool.call_id))
            argument = self._safe(_argument(tool))
            lines = (
                ()
                if result and result.outcome == "error"
                else written.get((number, tool.call_id), ())
            )
            tools.append(
                NewTool(
                    tool_key(key, place),
                    0 if result else key_of(tool.call_id),
                    self._safe(tool.name),
                    tool.kind,
                    argument[:ARGUMENT_CHARACTERS],
                    result,
                    lines,
                )
            )
        cwd = self._safe(self._project or entry.cwd)
        origin = entry.origin if self._has_id and entry.origin != self._session_id else ""
        text = (self._cleaned if entry.text in self._cleaned else self._texts)[entry.text]
        return NewEntry(
            key, message, entry.offset, entry.role, text, when, cwd, tuple(tools), origin
        )

    def _key_of_message(self, id: str) -> int:
        """Return the key of a message of the API, which often has several records in a row."""
        if id != self._message[0]:
            self._message = id, key_of(id)
        return self._message[1]

    def _safe(self, text: str) -> str:
        """Return a directory, or the name or argument of a tool, cleaned for people.

        Short results are cached, because a transcript has the same ones many times."""
        safe = self._cleaned.get(text)
        if safe is None:
            safe = self._texts.get(text)
            if safe is None:
                safe = for_people(text)
            if len(text) <= CACHED_CHARACTERS:
                self._cleaned[text] = safe
        return safe


def _argument(tool: ToolUse) -> str:
    """Return the part of a call's argument that may be stored, with any secret at its end."""
    return beginning(tool.argument, ARGUMENT_CHARACTERS + SECRET_CHARACTERS)


def _texts(entries: list[Entry]) -> Iterator[str]:
    """Yield the texts of entries, their directories, and their calls' names and arguments."""
    for entry in entries:
        yield entry.text
        yield entry.cwd
        for tool in entry.tools:
            yield tool.name
            yield _argument(tool)


def written_by(runtime: Runtime, tool: ToolUse, record: dict[str, Any]) -> list[str]:
    """Return the normalised lines that a call writes into files, each once.

    Short lines include the name of the file."""
    if tool.kind == "edit":
        return _lines_in(tool.argument, runtime.records.edits(record, tool.call_id))
    lines: dict[str, None] = {}
    if tool.kind == "command":
        for text in here_documents(tool.argument):
            lines.update(dict.fromkeys(added_lines("", text)))
    return list(lines)


def whole_lines(runtime: Runtime, call_id: str, record: dict[str, Any]) -> list[str]:
    """Return the lines that an edit wrote as its result has them, like `written_by`.

    An edit may name only parts of lines, or a whole file of which few lines changed. Return [] if
    the record of the result does not have them."""
    path = runtime.records.edited_path(record)
    hunks = runtime.records.hunks(record, call_id) if path else []
    return _lines_in(path, [hunk[:2] for hunk in hunks])


def _lines_in(path: str, edits: Iterable[Edit]) -> list[str]:
    lines: dict[str, None] = {}
    name = path.rpartition("/")[2]
    parts = [edit_lines(*edit) for edit in edits]
    for added, _ in parts:
        lines.update(dict.fromkeys(added))
    for _, short in parts:
        lines.update(dict.fromkeys([line_in(name, line) for line in short]))
    return list(lines)


def is_unchanged(file: SourceFile, state: FileState | None) -> bool:
    """Check if the store has all of a file, and the file is unchanged."""
    if state is None or state.status != "idle" or state.root != file.directory.root:
        return False
    return (state.inode, state.file_size, state.last_modified) == file.stamp


def is_beginning(state: FileState, descriptor: int, status: os.stat_result) -> bool:
    """Check if a file is a part, from the beginning, of the known file with its key."""
    try:
        known = open_regular(f"{state.root}/{state.file_path}")
    except OSError:
        offset = min(state.offset, status.st_size)
        return ReadCursor.behind(descriptor, status, offset, 0).head == state.head
    with Closing(known):
        return all(
            read_at(known, start, min(start + BLOCK_BYTES, status.st_size))
            == read_at(descriptor, start, start + BLOCK_BYTES)
            for start in range(0, status.st_size, BLOCK_BYTES)
        )


def begun(
    file: SourceFile,
    before: FileState | None,
    descriptor: int,
    status: os.stat_result,
    runtime: Runtime,
) -> tuple[FileState, int]:
    """Return the present state of the file, and the offset to continue from."""
    home, root = file.directory.home, file.directory.root
    given = runtime.given_name(file.plain_path)
    given = given and for_people(given)
    if before is None:
        session_id = runtime.session_id_of(file.plain_path)
        state = FileState(home, file.key, root, source_of(descriptor, runtime), session_id)
        return state._replace(title=given, title_rank=USER_RANK) if given else state, 0
    is_elsewhere = before.root != root
    inode = status.st_ino if is_elsewhere else before.inode
    cursor = ReadCursor(before.offset, inode, before.head, before.tail)
    start = cursor.resume_offset(descriptor, status)
    state = before._replace(root=root)
    if given:
        state = state._replace(title=given, title_rank=USER_RANK)
    if start is None:
        return state._replace(generation=before.generation + 1, unreadable=0), 0
    return state, start


def advanced(
    state: FileState, extract: Extract, descriptor: int, status: os.stat_result
) -> FileState:
    """Return the state once an extract is stored."""
    cursor = ReadCursor.behind(descriptor, status, extract.reached, time.time_ns())
    times = [entry.timestamp for entry in extract.entries if entry.timestamp is not None]
    first = state.first_entry_timestamp
    if state.status == "ingesting":  # the file is read in several extracts, however it is divided
        times += [time for time in (first, state.last_entry_timestamp) if time is not None]
        first = None
    # the later of two titles with the same rank
    is_better = extract.title[0] >= max(state.title_rank, 0)
    rank, title = extract.title if is_better else (state.title_rank, state.title)
    return state._replace(
        status="idle",
        file_size=extract.size,
        last_modified=cursor.mtime if extract.size == status.st_size else 0,
        inode=status.st_ino,
        offset=extract.reached,
        head=cursor.head,
        tail=cursor.tail or 0,
        unreadable=state.unreadable + extract.unreadable,
        first_entry_timestamp=first or min(times, default=None),
        last_entry_timestamp=max(times, default=state.last_entry_timestamp),
        cwd=state.cwd or extract.cwd,
        title=title,
        title_rank=rank,
    )


ERROR_CHARACTERS = 300  # of the returned line
LOOKED_AT_CHARACTERS = 3 * 1024  # at either end of the text
_LINE_CHARACTERS = 1000
_MOST_CHARACTERS = 256 * 1024  # in which secrets are searched for: some milliseconds
_WRAPPING, _WEAKER, _STRONGEST = 1, 2, 3  # how surely a line names the error

_NOISE = re.compile(
    r"> |\(node:\d+\)|\(Use `node |Debugger (?:attached|listening)|Waiting for the debugger|npm "
    r"(?:warn|notice)|"
    r"at .*[(:]\d+|File \"|Traceback \(most recent|\(no output\)|hint:|For help, see|A complete "
    r"log of this run|"
    r"% Total|% +Received|[-=~^*_#\s|\u2500-\u257f]+$|"
    # text that a test runner prints around an error: the command, the package, the number of
    # failures
    r"(?:\[\S+\] )?\$ \S|# \S+$|\[\S+\] ERROR task failed|found \d+ errors?\b|"
    r"fail(?:\t.*| +\S+(?: \[(?:build|setup) failed\])?)?$",
    re.IGNORECASE,
)
_EXIT = re.compile(
    r"(?:exit code|command (?:exited with code|failed with exit code)) -?\d+\.?$", re.IGNORECASE
)
_PYTHON = re.compile(r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)")

# The following patterns are for lowercased lines, and each alternative begins with letters; the
# text before them is checked afterwards. Ignoring case, or matching from the beginning of a word,
# takes several times as long.
_CODE_AND_COLON = r"\b(?:[ \[(]+[a-z]*\d+[\])]?)?\s*:"
_STRONG = re.compile(
    rf"error(?:: |(?<=\berror)(?:{_CODE_AND_COLON}| ts\d+))|exception(?:: "
    rf"|(?<=\bexception){_CODE_AND_COLON})|"
    rf"fatal(?<=\bfatal){_CODE_AND_COLON}|panic(?<=\bpanic)(?:ked)?{_CODE_AND_COLON}|"
    r"e(?<=\be)(?:noent|acces|perm|exist|connrefused|addrinuse|timedout|pipe)\b|"
    r"command not found|no such file or directory|permission denied|cannot find|could not "
    r"(?:find|resolve)|"
    r"is not recognized as|undefined(?<=\bundefined) (?:symbol|reference)\b"
)
_STRONG_BEGINNING = re.compile(
    r"(?:error|fatal|fail(?:ed)?)\b|e {2,}\S|[✗✘✖×] |assertionerror|segmentation fault"
)
_WRAPPER = re.compile(r"npm (?:error|err!) (?:code|errno|syscall|path|command|lifecycle|failed at)")
_WEAK = re.compile(
    r"(?:errors?|fail(?:s|ed|ure|ures|ing)?|denied|invalid|unexpected|missing|unable|refused|reject(?:ed)?|aborted|"
    r"blocked|timed out|timeout|not found|not "
    r"allowed|cannot|can't|conflicts?|unknown|unrecognized)\b"
)
_NOTHING_WRONG = re.compile(
    r"(?:0(?<=\b0)|no(?<=\bno)) "
    r"(?:errors?|failures?|failed|conflicts?)\b|error\W{0,3}\s?(?:false|null|none)\b"
)


def _error_text(output: str) -> str:
    """Return the part of a failed call's output in which the error is looked for."""
    text = output.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    if len(text) > _MOST_CHARACTERS:
        # no line, and no secret in it, is cut in two
        last = text[-_MOST_CHARACTERS // 2 :].partition("\n")[2]
        text = f"{beginning(text, LOOKED_AT_CHARACTERS)}\n{last}"
    return text


def _error_line(text: str) -> str:
    """Return the line that names the error, in an `_error_text` that was cleaned for people.

    It follows an exit code at the beginning of `text`, if there is one. If no line names the error,
    return the first line that is not noise, or ''. The result has at most ERROR_CHARACTERS."""
    if len(text) > 2 * LOOKED_AT_CHARACTERS:
        text = f"{text[:LOOKED_AT_CHARACTERS]}\n{text[-LOOKED_AT_CHARACTERS:]}"
    lines = [
        stripped[:_LINE_CHARACTERS] for line in text.splitlines() if (stripped := line.strip())
    ]
    return _chosen(lines).strip()[:ERROR_CHARACTERS]


def _chosen(lines: list[str]) -> str:
    first = next((number for number, line in enumerate(lines) if _is_candidate(line)), None)
    if first is None:
        return next((line for line in lines if _EXIT.match(line)), lines[0] if lines else "")
    exit_code = f"{lines[0]}: " if _EXIT.match(lines[0]) else ""
    raised = None
    # the program ends with the last exception
    if any(line.startswith("Traceback (most recent") for line in lines):
        raised = next(
            (line for line in reversed(lines) if _PYTHON.match(line) and _is_candidate(line)), None
        )
    return exit_code + (raised or _best(lines[first:]))


def _is_candidate(line: str) -> bool:
    return not _NOISE.match(line) and not _EXIT.match(line)


def _best(lines: list[str]) -> str:
    """Return the heaviest of `lines`; the first if it has any weight at all."""
    best, most = lines[0], _weight(lines[0], 0)
    if most:
        return best
    for line in lines[1:]:
        weight = _weight(line, most)
        if weight > most and _is_candidate(line):
            best, most = line, weight
            if most == _STRONGEST:
                break
    return best


def _weight(line: str, least: int) -> int:
    """Return how certainly a line names the error, up to _STRONGEST.

    The result may be 0 for any value up to `least`."""
    small = line.lower()
    if _STRONG_BEGINNING.match(small) or _STRONG.search(small):
        weight = _WRAPPING if _WRAPPER.match(small) else _STRONGEST
    else:
        weight = _WEAKER if least < _WEAKER and _WEAK.search(small) else 0
    return 0 if weight and _NOTHING_WRONG.search(small) else weight
