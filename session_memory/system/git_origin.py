"""The origin of a repository: the URL of its remote `origin`, normalized and without credentials."""

from __future__ import annotations

import re

from .files import read_whole

_SECTION = re.compile(r'^\s*\[remote "origin"\]\s*(?:[#;].*)?$')
_ANY_SECTION = re.compile(r"^\s*\[")
_URL = re.compile(r"^\s*url\s*=\s*(.*?)\s*$")
_WITH_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://(?:[^@/]*@)?(\[[^\]]*\]|[^:/]+)(?::\d+)?/(.+)$", re.I)
_LIKE_SCP = re.compile(r"^(?:[^@/:]*@)?([^:/\\]{2,}):(?!//)(.+)$")  # one letter is a drive


def origin_of(common_dir: str) -> str:
    """Return `host/path` of the repository's origin, as `github.com/acme/app`, the same for all forms of its URL; '' if
    it has no origin, or one on this machine."""
    try:
        lines = read_whole(f"{common_dir}/config").decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    is_in, found = False, ""
    for line in lines:
        if _ANY_SECTION.match(line):
            is_in = bool(_SECTION.match(line))
        elif is_in and (url := _URL.match(line)):
            found = url[1].strip('"')
    return normalised(found)


def normalised(url: str) -> str:
    """Return an address of git's as `host/path`; '' for a path on this machine."""
    found = _WITH_SCHEME.match(url)
    if found and url[:5].lower() == "file:":
        return ""
    found = found or _LIKE_SCP.match(url)
    if not found:
        return ""
    path = found[2].partition("?")[0].partition("#")[0].strip("/").removesuffix(".git").rstrip("/")
    return f"{found[1].lower()}/{path}" if path else ""
