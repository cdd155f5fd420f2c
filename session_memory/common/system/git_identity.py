"""The origin and the first commit of a repository, by which its clones are recognised.

The first commit comes from git itself, within a limited time.
"""

from __future__ import annotations

import time

from .files import NotAFileError, is_file, os, read_whole

_PAUSE_SECONDS = 0.002
_COMMIT_BYTES = 100


def origin_of(common_dir: str) -> str:
    """Return the repository's origin as `host/path`, such as `github.com/acme/app`.

    It is the same for all forms of the URL. Return '' without an origin, or for one on this
    machine."""
    try:
        lines = read_whole(f"{common_dir}/config").decode("utf-8", "replace").splitlines()
    except (OSError, NotAFileError):
        return ""
    is_in, url = False, ""
    for line in lines:
        key, separator, value = line.strip().partition("=")
        if key.startswith("["):
            head, end, comment = line.strip().partition("]")
            is_in = (
                bool(end) and head == '[remote "origin"' and comment.strip()[:1] in ("", "#", ";")
            )
        elif is_in and separator and key.rstrip() == "url":
            url = value.strip().strip('"')
    return _normalised(url)


def _normalised(url: str) -> str:
    """Return a git address as `host/path`, without user and password; '' for a local path."""
    scheme, is_url, address = url.partition("://")
    if is_url and scheme.isascii() and scheme[:1].isalpha():
        authority, _, path = address.partition("/")
        server = authority.rpartition("@")[2]
        server = (
            server[: server.find("]") + 1] if server.startswith("[") else server.partition(":")[0]
        )
        server = "" if scheme.lower() == "file" else server
    else:
        authority, _, path = url.partition(":")
        server = authority.rpartition("@")[2]
        if len(server) < 2 or "/" in authority or "\\" in server or path.startswith("//"):
            return ""  # one letter is a drive
    path = path.partition("?")[0].partition("#")[0].strip("/").removesuffix(".git").rstrip("/")
    return f"{server.lower()}/{path}" if server and path else ""


def first_commit(git_dir: str, common_dir: str, seconds: float) -> str:
    """Return the first commit in the history of HEAD, by first parents, or ''.

    Return '' if there is none, if the clone is shallow, or if git does not answer within `seconds`.
    """
    from .git_process import GitUnavailableError, QuickAnswer, RepositoryPlace

    if is_file(f"{common_dir}/shallow"):
        return ""
    question = ("rev-list", "--first-parent", "--max-parents=0", "HEAD")
    try:
        with RepositoryPlace(git_dir) as place, QuickAnswer(place, question) as git:
            until = time.monotonic() + seconds
            while not git.has_ended() and time.monotonic() < until:
                time.sleep(_PAUSE_SECONDS)
            if git.status != 0:
                return ""
            return os.read(git.answers, _COMMIT_BYTES).decode("ascii", "replace").strip()
    except (OSError, AttributeError, GitUnavailableError):  # Windows has no posix_spawn
        return ""
