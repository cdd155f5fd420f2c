"""The project that `--project` names. No other module turns its text into directories."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ..common.system.files import expanded, user_dir
from ..history.store.values import Filter
from ..sessions.settings.homes import Home
from ..sessions.settings.rules import covers

_STARTS = ("/", "./", "../", "~")  # of a path, whether or not anything is there


class Project(NamedTuple):
    """A named project: a directory in its possible spellings, or part of a directory's path.

    A directory means its whole repository unless it `is_exact`."""

    paths: tuple[str, ...] = ()
    text: str = ""
    is_exact: bool = False


def read_project(text: str, environ: Mapping[str, str]) -> Project:
    """Return the project called `text`, which is a path or part of one.

    Raises ValueError if it is empty, OSError if the current directory is gone."""
    if _is_path(text) or ("/" in text and os.path.isdir(text)):
        return Project(directory_spellings(text, environ))
    return _called(text)


def read_project_of_agent(text: str, environ: Mapping[str, str]) -> Project:
    """Return the project called `text`, without access to a path that an agent names.

    Only the agent's own directory may be accessed."""
    if text.rstrip("/") == ".":
        return read_project(text, environ)
    if _is_path(text):
        path = os.path.normpath(os.path.join(os.getcwd(), expanded(text, environ)))
        return Project((path,), is_exact=True)
    return _called(text)


def _is_path(text: str) -> bool:
    return text in (".", "..") or text.startswith(_STARTS)


def _called(text: str) -> Project:
    if not text.strip():
        raise ValueError("the project is empty")
    return Project(text=text)


def directory_spellings(path: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the absolute paths of a directory: first without links, then as it was written.

    A session may have recorded either, in either form of Unicode. Raises ValueError if the path is
    empty, OSError if the current directory is gone."""
    if not path.strip():
        raise ValueError("the path is empty")
    written = os.path.join(os.getcwd(), expanded(path, environ))
    real = os.path.realpath(written)
    plain = os.path.normpath(written)
    # `link/..` is the parent of the link's target, but normpath removes both parts
    spellings = [real, plain] if os.path.realpath(plain) == real else [real]
    if not all(spelling.isascii() for spelling in spellings):
        from unicodedata import normalize

        spellings += [
            form
            for spelling in spellings
            for form in (normalize("NFC", spelling), normalize("NFD", spelling))
        ]
    return tuple(dict.fromkeys(spellings))


def project_directories(project: Project, home: Home) -> tuple[str, ...]:
    """Return the roots of all worktrees of the project's repository, then its earlier paths.

    Outside a repository, return the directory itself. Return () if the project is not a path."""
    from ..common.system.git import find_worktree, worktrees_of
    from ..sessions.transcripts.earlier_paths import EarlierPaths

    if not project.paths or project.is_exact or not os.path.isdir(project.paths[0]):
        return project.paths
    worktree = find_worktree(project.paths[0], user_dir(os.environ))
    if worktree is None:
        return project.paths
    trees = (worktree, *worktrees_of(worktree.common_dir))
    roots = sorted({tree.root for tree in trees if tree.root})
    return (*roots, *EarlierPaths(home.repositories_file, worktree).paths) or project.paths


def limited_to(project: Project, wanted: Filter, home: Home) -> Filter:
    """Return the filter, limited to a project."""
    directories = project_directories(project, home)
    folders = _folders_of(directories)
    return wanted._replace(project=project.text, directories=directories, folders=folders)


def is_in_project(directory: str, wanted: Filter) -> bool:
    """Check if a directory is in the project that a filter is limited to, or that it has none."""
    if wanted.directories:
        return any(covers(root, directory) for root in wanted.directories)
    return wanted.project.rstrip("/").casefold() in directory.casefold()


def _folders_of(directories: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the runtimes' transcript folders for sessions in these directories."""
    if not directories:
        return ()
    from ..sessions.runtimes.table import all_runtimes

    names = {
        runtime.project_dir("", directory)[len(runtime.transcripts_dir("")) + 1 :].partition("/")[0]
        for runtime in all_runtimes()
        if runtime.HAS_PROJECT_FOLDERS
        for directory in directories
    }
    return tuple(sorted(names))
