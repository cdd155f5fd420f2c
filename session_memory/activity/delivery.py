"""Delivery of an update: prepare, print, commit.

The new state is written beside the old one before the update is printed, and replaces it afterwards: a hook killed in
between repeats the update. If the transcript will show the update, the state is replaced before: then the transcript
proves what arrived (see `acknowledgement`).
"""

from __future__ import annotations

from .state import LAST, MEMORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .changes import OwnSession
    from .state import Cursors, StateFile
    from .updates import Update


class Delivery:
    """An update on its way to the session `own`, under the lock of its state. For use in a `with` block: at its end the
    update counts as delivered, unless an exception ends it. `text` is None for nothing."""

    def __init__(self, own: OwnSession, file: StateFile, update: Update) -> None:
        self.text = update.text
        self._own = own
        self._file = file
        self._update = update
        self._is_prepared = self._is_over = False

    def __enter__(self) -> Delivery:
        return self

    @property
    def state(self) -> Cursors:
        """The state of the session after the update."""
        return self._update.cursors or self._file.cursors.get(self._own.key, {})

    def is_first_to_answer(self, prompt: str) -> bool:
        """Check that no other copy of our hook, such as a plugin beside an install, has answered this prompt; if one
        has, nothing is delivered now. Raises OSError."""
        is_first = self._file.is_first_to_answer(prompt)
        self._is_over = not is_first
        return is_first

    def prepare(self, memories: Iterable[str] = ()) -> None:
        """Write the new state beside the old one, with the ids of the injected `memories`. Raises OSError."""
        update, cursors = self._update, self._file.cursors
        is_changed = update.cursors is not None or self._file.was_corrupt
        is_changed = is_changed or update.standstill not in (None, self._file.standstill)
        if update.cursors is not None:
            cursors[self._own.key] = update.cursors
        if memories:
            own = cursors.setdefault(self._own.key, {})
            own[MEMORIES] = [*own.get(MEMORIES, ()), *memories]
        if is_changed or memories:
            self._file.prepare(update.standstill)
            self._is_prepared = True

    def commit_first(self) -> None:
        """Commit before printing if the transcript will show the update. Raises OSError."""
        last = (self._update.cursors or {}).get(LAST, {})
        if "cursors" in last and self._update.is_shown:
            self._commit()

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        try:
            if error_type is None and not self._is_over:
                self._commit()
        finally:
            self._file.close()

    def _commit(self) -> None:
        if not self._is_prepared:
            self.prepare()
        if self._is_prepared:
            self._file.commit()
        self._is_over = True
