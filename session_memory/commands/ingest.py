"""`session-memory ingest`: takes into the store what is new in the transcripts. Where nothing is, little is loaded."""

from __future__ import annotations

import os

from ..store.ingest.unchanged import unchanged_files
from ..store.location import find_place
from ..system.screen import Screen
from ..text.timestamps import now_milliseconds
from .options import HOME, JSON, Option, add

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from .options import Arguments

SUMMARY = "take what is new in the transcripts into the store"
OPTIONS = (
    Option("--file", "only this transcript", metavar="FILE"),
    Option("--dir", "the transcripts below this directory, such as a backup's", metavar="DIR"),
    Option("--reimport", "forget what is known of them, and read them anew"),
    HOME,
    JSON,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ingest."""
    add(parser, OPTIONS)


def run(arguments: Arguments) -> int:
    """Takes in what was asked for; 1 if something could not be read. Raises SessionMemoryError."""
    if not (arguments.file or arguments.dir or arguments.reimport or arguments.json):
        files = unchanged_files(find_place(arguments.home, os.environ), now_milliseconds())
        if files:
            Screen(os.environ).line(nothing_new(files))
            return 0
    from .ingest_report import ingest
    from .opened_store import at_desk

    return at_desk(arguments, lambda desk: ingest(desk, arguments))


def nothing_new(files: int) -> str:
    """What is said where all files are as the store knows them."""
    return f"Nothing new in {files} file{'' if files == 1 else 's'}."
