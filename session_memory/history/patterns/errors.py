"""Earlier occurrences of an error, equal ones in one block, with their solutions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import for_people
from ..filtering import is_command
from ..recorded import edits_of
from ..store.location import StoreLocation
from ..store.sqlite.engine import SqliteStore
from ..store.sqlite.tool_uses import conversation_steps
from ..store.values import Filter
from .failures import ErrorQuery, normalised
from .habits import ErrorMatch, matching_errors

_EVERY = 10**9
REQUEST_CHARACTERS = 120
CHANGE_CHARACTERS = 80  # of each side


class ErrorBlock(NamedTuple):
    """Equal errors of one command: the best `match` and the `others`.

    `request` is the user's last request before the command worked, `change` what the last edit
    changed, as `old → new`; of several lines it has the first, such as `old → new (3 lines)`. Both
    are '' if unknown."""

    match: ErrorMatch
    others: tuple[ErrorMatch, ...]
    request: str = ""
    change: str = ""

    @property
    def times(self) -> int:
        """The number of occurrences."""
        return sum(each.failure.times for each in (self.match, *self.others))

    @property
    def sessions(self) -> list[str]:
        """The ids of the sessions with this error; the best match's session comes first."""
        matches = (self.match, *self.others)
        return list(dict.fromkeys([each.conversation.session_id for each in matches]))


def error_blocks(
    store: SqliteStore, location: StoreLocation, text: str, wanted: Filter
) -> list[ErrorBlock]:
    """Return errors within a filter that are like `text`, the best match first.

    The first `wanted.limit` blocks include their solutions."""
    query = ErrorQuery(text)
    everywhere = conversation_steps(store, wanted._replace(limit=_EVERY), failing=query.similarity)
    equal: dict[tuple[str, str], list[ErrorMatch]] = {}
    for match in matching_errors(query, everywhere):
        key = normalised(match.failure.tool.error), match.command
        equal.setdefault(key, []).append(match)
    blocks = [ErrorBlock(matches[0], tuple(matches[1:])) for matches in equal.values()]
    explained = [_explained(block, store, location) for block in blocks[: wanted.limit]]
    return [*explained, *blocks[wanted.limit :]]


def _explained(block: ErrorBlock, store: SqliteStore, location: StoreLocation) -> ErrorBlock:
    """Return a block with the request and the change that solved it."""
    failure, conversation = block.match.failure, block.match.conversation
    if failure.fixed is None:
        return block
    edits = [step for step in failure.steps if step.kind == "edit"]
    solved_at = edits[-1].id if edits else failure.fixed.id
    requests = [
        entry.text
        for entry in store.entries(conversation.id)
        if entry.id < solved_at and entry.role == "user" and not is_command(entry.text)
    ]
    request = shorten(one_line(for_people(requests[-1])), REQUEST_CHARACTERS) if requests else ""
    change = _change_in(edits_of(location, conversation, edits[-1])) if edits else ""
    return block._replace(request=request, change=change)


def _change_in(edits: Sequence[tuple[str, str]]) -> str:
    """Return the last change of a single line in the texts of an edit, else the last change, by its
    first lines and their number; '' if there is none."""
    # a secret may have several lines
    redacted = [(for_people(old), for_people(new)) for old, new in reversed(edits)]
    changes = [_differing(old.splitlines(), new.splitlines()) for old, new in redacted]
    changes = [change for change in changes if any(change)]
    of_one_line = (change for change in changes if [len(side) for side in change] == [1, 1])
    change = next(of_one_line, None) or next(iter(changes), None)
    if change is None:
        return ""
    removed, added = (_first_line(side) for side in change)
    text = (
        f"{removed} → {added}" if removed and added else f"+ {added}" if added else f"- {removed}"
    )
    most = max(len(side) for side in change)
    return f"{text} ({counted(most, 'line')})" if most > 1 else text


def _differing(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    """Return the lines between the equal lines at the beginning and at the end."""
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return before, after


def _first_line(lines: Iterable[str]) -> str:
    """Return the first line with text; '' if there is none."""
    return shorten(one_line(next(filter(str.strip, lines), "")), CHANGE_CHARACTERS)
