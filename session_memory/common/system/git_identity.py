"""Signs by which a clone of a repository is known again: its origin and its first commit.

The first commit comes from git itself, with a limit on the time."""

from __future__ import annotations

import time

from .files import NotAFileError, is_file, os, read_whole

_PAUSE_SECONDS = 0.002
_COMMIT_BYTES = 100


def origin_of(common_dir: str) -> str:
    """Return `host/path` of the repository's origin, as `github.com/acme/app`, the same for all
    forms of its URL; '' if it has no origin, or one on this machine."""
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
    """Return an address of git's as `host/path`, without a user's name or password; '' for a path
    on this machine."""
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
    """Return the commit that the history of HEAD begins with, by the first parents; '' if there is
    none, if the clone is shallow, or if git does not answer within so many seconds."""
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
