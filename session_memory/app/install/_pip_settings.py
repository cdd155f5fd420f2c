"""Reads pip's settings for package sources from its files and variables, without starting pip."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ...common.system.files import user_dir as home_of

_SECTIONS = ("global", "install")
_VARIABLE = "PIP_"
_UV_SOURCES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
)
# uv has no equivalent of these settings, so if any is set, only pip follows the person's wishes.
_PIP_ONLY = ("proxy", "trusted-host", "client-cert", "require-hashes", "no-binary", "only-binary")


def pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return pip's settings in force for `install`, by their names in pip's files.

    An example of a name is `index-url`."""
    settings: dict[str, str] = {}
    for path in _files(environ):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeError):  # pip itself reports it
            continue
        for section in filter(parser.has_section, _SECTIONS):
            settings |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    for name, value in environ.items():
        if name.startswith(_VARIABLE) and value:
            settings[name.removeprefix(_VARIABLE).lower().replace("_", "-")] = value
    return settings


def uv_variables(environ: Mapping[str, str]) -> dict[str, str] | None:
    """Return the variables that make uv install from pip's sources; None if no variable can."""
    settings = pip_settings(environ)
    if any(settings.get(name) for name in _PIP_ONLY):
        return None
    constraints = " ".join(settings.get("constraint", "").split())
    variables = {"SSL_CERT_FILE": settings.get("cert", "").strip(), "UV_CONSTRAINT": constraints}
    if not any(environ.get(name) for name in _UV_SOURCES):
        variables |= {"UV_DEFAULT_INDEX": settings.get("index-url", "").strip()}
        variables |= {"UV_INDEX": " ".join(settings.get("extra-index-url", "").split())}
        variables |= {"UV_FIND_LINKS": ",".join(settings.get("find-links", "").split())}
    return {name: value for name, value in variables.items() if value and name not in environ}


def is_without_index(environ: Mapping[str, str]) -> bool:
    """Check if pip is told to use no package index."""
    return pip_settings(environ).get("no-index", "").strip().lower() in (
        "1",
        "true",
        "yes",
        "on",
        "y",
        "t",
    )


def _files(environ: Mapping[str, str]) -> list[Path]:
    """Return the files that pip reads; the last one takes precedence. They need not exist."""
    chosen = environ.get("PIP_CONFIG_FILE", "")
    if chosen == os.devnull:
        return []
    home = home_of(environ)
    shared = [
        *environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep)[::-1],
        "/Library/Application Support",
    ]
    user_dir = Path(home, "Library", "Application Support", "pip")
    if sys.platform != "darwin" or not user_dir.is_dir():
        user_dir = Path(environ.get("XDG_CONFIG_HOME") or Path(home, ".config"), "pip")
    paths = [*(Path(place, "pip", "pip.conf") for place in shared if place), Path("/etc/pip.conf")]
    paths += [Path(home, ".pip", "pip.conf"), user_dir / "pip.conf"] if home else []
    return [*paths, Path(sys.base_prefix, "pip.conf"), *([Path(chosen)] if chosen else [])]
