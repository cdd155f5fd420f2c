"""A settings file that is edited as text, and checked by parsing it before and afterwards."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...common.text.json_edit import StrictJsonError
from ...sessions.runtimes.install import Hook, Install
from .settings_file import HookSettings, SettingsFile, SettingsFileError

KEY = "hooks"  # in the root of the file
_LINE = re.compile(r"^[ \t]*\[?[ \t]*hooks\b", re.MULTILINE)


class TextSettings(SettingsFile):
    """A settings file without permission rules. A subclass knows its format and form of hooks."""

    def __init__(
        self, content: bytes | None, path: Path | str, dialect: Install | None = None
    ) -> None:
        super().__init__(content or b"", path, dialect)

    @abstractmethod
    def parsed(self, text: str) -> dict[str, Any]:
        """Return the values of a text. Raises StrictJsonError."""

    @abstractmethod
    def hooks_in(self, values: dict[str, Any]) -> list[Hook]:
        """Return the hooks in the values of the file. Raises SettingsFileError."""

    def read(self) -> HookSettings:
        _, values = self.decoded()
        return HookSettings(self.hooks_in(values), [], values)

    def with_rules(self, wanted: Sequence[str]) -> TextSettings:
        return self

    def without_rules(self, rules: object) -> TextSettings:
        return self

    def keeping_containers(self, stripped: bytes, original: str) -> TextSettings:
        return type(self)(stripped, self._path, self._dialect)

    def decoded(self) -> tuple[str, dict[str, Any]]:
        try:
            text = self.content.decode()
            return text, self.parsed(text)
        except UnicodeDecodeError as error:
            before = self.content[: error.start].decode()
            wrong = StrictJsonError("it is not UTF-8", before, len(before))
            raise SettingsFileError(self._path, wrong) from None
        except StrictJsonError as error:
            raise SettingsFileError(self._path, error) from None

    def values_of(self, text: str) -> dict[str, Any] | None:
        """Return the values of a text, None if it is not valid."""
        try:
            return self.parsed(text)
        except StrictJsonError:
            return None

    def refused(self, message: str, hint: str = "") -> SettingsFileError:
        """Return the error that the hooks, whose place it names, cannot be edited."""
        text = self.content.decode()
        place = _LINE.search(text)
        at = place.start() if place else len(text)
        return SettingsFileError(self._path, StrictJsonError(message, text, at, hint))
