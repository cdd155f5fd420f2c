"""The usage of one answer of a model, from a transcript. Only code that counts costs loads this."""

from typing import NamedTuple

MOST = 10**12  # more tokens than any answer has; a larger number is ignored


class ModelUsage(NamedTuple):
    """Tokens read anew, written as an answer, read from a cache, and cached for minutes or an hour.

    `id` is the same for all records of one answer and its copies, '' if there is none. `dollars` is
    the cost that the runtime reports. `running_total` is the session's total, if reported: a record
    that does not change it repeats the one before. If `is_sum`, the tokens are the sums of the
    session so far. A record without tokens names the model of the next ones, and its id names their
    turn: copies in another session have the same. Web `searches` have their own price. An answer
    `is_advisor` if another model gave it to the one at work."""

    id: str = ""
    model: str = ""
    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    written_for_an_hour: int = 0
    dollars: float | None = None
    running_total: int | None = None
    is_copy: bool = False
    is_sum: bool = False
    searches: int = 0
    is_advisor: bool = False

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.cached + self.written + self.written_for_an_hour


def amount(holder: object, key: str) -> int:
    """Return the number of tokens that `holder` has as `key`; 0 if that is not a number."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST else 0
    )
