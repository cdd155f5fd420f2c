"""Brings the mirrors of Hermes's sessions up to date by adding new rows.

A row never changes. If a person undoes something, Hermes marks rows; a program that uses Hermes may
replace all rows by others with the same content. Then the rows are compared with the mirror, and a
line takes back those from the first difference on. A branch, or a session after a compaction,
begins with copies of rows, which are left out. A mark has the last row that was read, where the
copies are from (the session, the last row copied, the last one that may be), the last link, and the
totals of tokens. Each line with tokens has the difference to the totals before.
"""

from __future__ import annotations

from ....common.system.files import Opened, is_file, make_private_dir, os
from ....common.system.json import objects_in
from ....common.text.paths import is_name
from ....common.text.secrets.redaction import redact
from ...transcripts.lines import lines_forward
from ...transcripts.mirror import Mirror, mark_of
from .._mirrored_database import DatabaseSource, MirroredDatabase
from ..atif.records import TITLE
from . import RUNTIME
from .database import LAST, Error, HermesDatabase
from .rows import HermesMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ...transcripts._mirrored_files import Source
    from .._mirrored import Mirrors
    from .database import ChangedSession
    from .rows import HermesSession, Record

    Mark = dict[str, Any]

# the most rows of one session that a prompt adds to its mirror; a longer one waits for upkeep,
# which adds as many at a time
PROMPT_ROWS = 300


def bring_up_to_date(mirrors: Mirrors, everything: bool) -> None:
    """Add new rows of the database to the mirrors."""
    _Sessions.bring_up_to_date(mirrors, everything, _sources)


def _sources(config_dir: str) -> tuple[list[str], list[Source]]:
    """Return the directories whose listings show a new database, and the databases."""
    databases = RUNTIME.databases(config_dir)
    sources: list[Source] = [DatabaseSource(path, name) for name, path in databases.items()]
    return RUNTIME.watched_dirs(config_dir), sources


class _Sessions(MirroredDatabase):
    """Adds the new rows of the sessions to the mirrors."""

    READER = HermesDatabase

    def add_session(
        self, database: HermesDatabase, changed: ChangedSession, everything: bool
    ) -> int:
        session = database.session(changed.id)
        if session is None:
            return 0
        place = _Place(session, database.ancestors(session))
        exclusion, directory = self.mirrors.exclusion, place.directory
        top = place.parent or session.id
        usual = f"{self.mirrors.folder_of(top, directory)}/{top}.jsonl"
        folder, top = self.mirror_for(usual)
        first = self.mirrors.first_directory(f"{folder}/{top}.jsonl")
        directories = dict.fromkeys((directory, first, *place.directories))
        own_id = session.id if place.parent else top
        if place.parent:
            folder, place.parent = f"{folder}/{top}", top
        ids = [*dict.fromkeys((top, own_id, *place.ids))]
        hidden_by = exclusion.hidden_by(directories, ids, place.titles)
        forgotten = exclusion.forgotten(directory, *ids)
        repeats = self.mirrors.repeats(directory, own_id)
        make_private_dir(folder)
        path, written = f"{folder}/{own_id}.jsonl", 0
        # a mirror that is written again, since no rule hides it any more, keeps its first directory
        place.directory = (
            self.mirrors.first_directory(path) if place.parent else first
        ) or directory
        with Mirror(path, hidden_by, repeats) as mirror:
            addition = _Addition(database, place, mirror, forgotten, self.key)
            count = len(addition.numbers)
            if not everything and count > PROMPT_ROWS:
                raise ValueError("its session is too long for now")
            before = addition.first_lines(own_id, _counted_in(path, usual, place))
            for begin in range(0, max(1, count), PROMPT_ROWS):
                lines = [*before, *addition.lines(begin, begin + PROMPT_ROWS)]
                if addition.compares:  # another update could not go on from here
                    before = lines
                    continue
                before = []
                if lines or addition.mark != mirror.mark:
                    if not database.is_same:
                        raise Error("the database is being changed")
                    written += mirror.append(lines, {**addition.mark}, changed.updated)
        self._remove_without_directory(path)
        return written

    def _remove_without_directory(self, path: str) -> None:
        """Remove the mirror from before the session at `path` had a directory."""
        root = self.mirrors.root
        name = path[len(root) + 1 :].partition("/")[2]
        earlier = f"{root}/{RUNTIME.NO_DIRECTORY}/{name}"
        if earlier != path and is_file(earlier):
            os.unlink(earlier)


def _counted_in(path: str, usual: str, place: _Place) -> dict[str, list[int]]:
    """Return the totals of tokens in the mirror `usual`, if `path` is a second one of its session."""
    is_second = path != usual and not place.parent
    totals: dict[str, list[int]] = mark_of(usual).get("usage", {}) if is_second else {}
    return totals


class _Place:
    """The place of a session: its directory, and the `parent` that started a sub-agent.

    A rule that names the parent, or the session before a compaction, applies to it too."""

    def __init__(self, session: HermesSession, ancestors: list[HermesSession]) -> None:
        self.session = session
        self.above = ancestors[0] if ancestors else None
        same, below = [session], session
        for above in ancestors:
            if not (below.is_of_subagent or below.continues(above)):
                break
            same.append(above)
            below = above
        self.ids = [each.id for each in same]
        self.titles = [each.title for each in same]
        self.directories = [each.directory for each in same if each.directory]
        self.directory = next(filter(None, [each.directory for each in (session, *ancestors)]), "")
        self.parent = ""
        if session.is_of_subagent:
            starters = [each.id for each in same if not each.is_of_subagent and is_name(each.id)]
            self.parent = starters[0] if starters else session.id

        # a branch gets the title of its original with a number: no title of its own
        numbered = tuple([f"{each.title} #" for each in ancestors if each.title])
        title = session.title.strip()
        self.title = "" if title.startswith(numbered) else title

    @property
    def original(self) -> str:
        """The session whose rows this one begins with; '' if there is none."""
        above = self.above
        return above.id if above is not None and self.session.copies(above) else ""


class _Addition:
    """The rows of a session that its mirror lacks; `mark` is the mark after those that were read."""

    def __init__(
        self,
        database: HermesDatabase,
        place: _Place,
        mirror: Mirror,
        forgotten: float,
        key: str,
    ) -> None:
        """Find the rows; `key` names the database."""
        self._database = database
        self._place = place
        self._session = place.session
        self._forgotten = forgotten
        self._title = "" if forgotten else redact(place.title)
        self._compacted = database.compacted(self._session.id)
        self._originals: Iterator[HermesMessage] | None = None
        # lines of the mirror that are looked for in the rows, because rows are gone
        self._known: list[Record] = []
        self._is_new = not mirror.mark
        self.mark: Mark = {**mirror.mark} if mirror.mark else {"title": "", **self._at_start}
        self._compared = ""  # the mirror, until these lines are read
        self._files = {key: 1}
        if self._are_rows_gone:
            self._compared = mirror.path
            self.mark.update(self._at_start)
        self.numbers = database.numbers(self._session.id, self.mark["last"] + 1)

    @property
    def _at_start(self) -> Mark:
        original = self._place.original
        copied = [original, 0, self._last_original(original)] if original else []
        return {"last": 0, "copied": copied, "compacted": 0, "link": ["", "", ""]}

    def _last_original(self, original: str) -> int:
        """Return the number of the last row that may have been copied from a session.

        Its later rows are younger than the copies, unless all its rows were replaced since."""
        numbers = self._database.numbers(self._session.id, 0)
        last = numbers[0] - 1 if numbers else LAST
        return last if self._database.all_numbers(original, 0, last) else LAST

    @property
    def compares(self) -> bool:
        """Return whether lines of the mirror are still looked for in the rows."""
        return bool(self._known)

    @property
    def _are_rows_gone(self) -> bool:
        """Return whether the last row that was read is gone, or was another database's."""
        last = self.mark["last"]
        is_same = self.mark.get("files", self._files) == self._files
        return bool(last) and not (is_same and self._database.numbers(self._session.id, last, last))

    def first_lines(self, own_id: str, counted: Mapping[str, list[int]]) -> list[Record | bytes]:
        """Return the first record of a new mirror, which has the id `own_id`, and a new title.

        Lines with the tokens follow. `counted` are the totals of the other mirror of a session that
        is in two databases."""
        lines: list[Record | bytes] = []
        if self._is_new:
            lines.append(self._session.header(own_id, self._place.directory, self._place.parent))
        if self._title != self.mark["title"]:
            lines.append({"type": TITLE, "title": self._title})
        self.mark.update(title=self._title, files=self._files)
        return [*lines, *self._used(counted if self._is_new else {})]

    def _used(self, counted: Mapping[str, list[int]]) -> Iterator[Record]:
        """Yield lines with the tokens since the last totals; none if these were forgotten."""
        totals: dict[str, list[int]] = {**counted, **self.mark.get("usage", {})}
        for usage in self._database.usages(self._session.id):
            line = usage.line(totals.get(usage.key, [0] * len(usage.totals)))
            totals[usage.key] = usage.totals
            if line is not None and not (self._forgotten and self._is_new):
                yield line
        if totals:
            self.mark["usage"] = totals

    def lines(self, begin: int, end: int) -> Iterator[Record]:
        """Yield the lines of these rows, without copies and messages from before `forgotten`."""
        if self._compared:
            self._known, self._compared = _lines_in(self._compared), ""
        for number in self.numbers[begin:end]:
            message = HermesMessage(self._database.message(number))
            try:
                line = self._line(message)
            except _UnansweredError:
                break
            self.mark["last"] = number
            if line is None or self._is_known(line):
                continue
            yield from self._taken_back()
            self._link(line)
            yield line
        if end >= len(self.numbers):
            yield from self._taken_back()

    def _line(self, message: HermesMessage) -> Record | None:
        """Return the line of a message; None for a copy or for a message that nobody said."""
        own_id = self._session.id
        if self._compacted > self.mark["compacted"] and message.number > self._compacted:
            self.mark.update(compacted=self._compacted, copied=[own_id, 0, self._compacted])
        if message.is_summary:
            self.mark["copied"] = self.mark["copied"] or [own_id, 0, message.number - 1]
            return message.compaction()
        if self.mark["copied"]:
            if message.line(self._session, "") is None or self._is_copy(message):
                return None
            self.mark["copied"], self._originals = [], None
        if self._forgotten and message.seconds <= self._forgotten:
            return None
        last, role, above = self.mark["link"]
        # without an answer, a prompt's context is not sent again
        return message.line(self._session, above if role == message.role == "user" else last)

    def _is_copy(self, message: HermesMessage) -> bool:
        """Check if a message is a copy of the next one that a compaction kept, or of any later one.

        The original may have been undone since."""
        original, at, last = self.mark["copied"]
        if self._originals is None:
            self._originals = self._messages_after(at)
        copied = _equal(message, self._originals)
        if copied is None or (copied.is_undone and self._is_asked_again(message, copied.number)):
            return False
        self.mark["copied"] = [original, copied.number, last]
        return True

    def _messages_after(self, number: int) -> Iterator[HermesMessage]:
        """Yield the messages after this number that may have been copied, with those undone."""
        original, _, last = self.mark["copied"]
        for each in self._database.all_numbers(original, number + 1, last):
            yield HermesMessage(self._database.message(each))

    def _is_asked_again(self, message: HermesMessage, undone: int) -> bool:
        """Check if a message repeats the prompt of the row `undone`, and has another answer.

        Raises _UnansweredError if the answer is not known yet."""
        if message.role != "user":
            return False
        later = self._database.numbers(self._session.id, message.number + 1)
        if not later:
            raise _UnansweredError
        answer = HermesMessage(self._database.message(later[0]))
        return answer.role != "user" and _equal(answer, self._messages_after(undone)) is None

    def _is_known(self, line: Record) -> bool:
        """Check if the mirror has a line already, under another number."""
        is_known = bool(self._known) and self._known[0]["sum"] == line["sum"]
        if is_known:
            self._link(self._known.pop(0))
        return is_known

    def _link(self, line: Record) -> None:
        if "parent" in line:
            self.mark["link"] = [line["id"], line["source"], line["parent"]]

    def _taken_back(self) -> Iterator[Record]:
        """Yield a line that takes back the known lines that were not found."""
        if self._known:
            yield {"type": "taken_back", "number": self._known[0]["number"]}
            self._known = []


class _UnansweredError(Exception):
    """A message cannot be judged before the next one is there."""


def _equal(message: HermesMessage, others: Iterator[HermesMessage]) -> HermesMessage | None:
    """Return the next one of the others with the same content; None if there is none."""
    for other in others:
        if other.key[: len(message.key)] == message.key:
            return other
    return None


def _lines_in(path: str) -> list[Record]:
    """Return what identifies the lines of rows that count in a mirror. Raises OSError."""
    known: list[Record] = []
    names = ("id", "source", "parent", "number", "sum")
    with Opened(path) as descriptor:
        for _, content in lines_forward(descriptor, 0, os.fstat(descriptor).st_size):
            for record in objects_in(content):
                if record.get("type") == "taken_back":
                    known = [line for line in known if line["number"] < record["number"]]
                elif "sum" in record:
                    known.append({name: record[name] for name in names if name in record})
    return known
