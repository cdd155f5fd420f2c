"""The settings file at a path, in the format that its name shows."""

from __future__ import annotations

from pathlib import Path

from ...sessions.runtimes.install import Install
from ._toml_settings import TomlSettings
from ._yaml_settings import YamlSettings
from .settings_file import SettingsFile

_KINDS = {".toml": TomlSettings, ".yaml": YamlSettings}


def settings_at(content: bytes | None, path: Path | str, dialect: Install) -> SettingsFile:
    """Return the settings file at `path`, as TOML or YAML if its name says so, else as JSON."""
    return _KINDS.get(Path(path).suffix, SettingsFile)(content, path, dialect)
