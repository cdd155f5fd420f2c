"""The projects of Gemini: folders in `tmp/`, each with the chats of one directory, which is told beside them."""

from __future__ import annotations

from ...system.files import path_text, read_whole
from ...system.json import as_string, decode

CHATS = "chats"
MOST_CHARACTERS = 200  # of the name of a folder
UNKNOWN = "unknown"  # the folder for the mirrors of chats of which nothing tells the directory


def folder_name(directory: str) -> str:
    """Return what the folder for chats that are started in `directory` is called."""
    from ...text.paths import dashed

    return dashed(directory)[:MOST_CHARACTERS] or UNKNOWN


def project_root(config_dir: str, name: str) -> str:
    """Return the directory of the project whose chats lie in `tmp/<name>`: older versions called that by its SHA-256.
    '' where nothing tells it."""
    try:
        return path_text(
            read_whole(f"{config_dir}/tmp/{name}/.project_root").decode("utf-8", "surrogateescape").strip()
        )
    except OSError:
        pass
    try:
        projects = decode(read_whole(f"{config_dir}/projects.json").decode("utf-8", "replace"))["projects"]
        named = [path for path, one in projects.items() if one == name]
        return as_string(named[0]) if named else next(iter([path for path in projects if _sha256(path) == name]), "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


def _sha256(path: str) -> str:
    from hashlib import sha256

    return sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
