"""What upkeep will copy for a home, how large that is, and what summaries by a model would cost: for an install."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass

from .. import NAME
from ..errors import SessionMemoryError
from ..hooks.upkeep_start import path_of
from ..settings.yaml_file import has_parser
from ..store.location import find_location
from ..system.terminal import Terminal, byte_size
from ..text.format import counted
from .homes import Target

# Of real transcripts: what the store takes of their bytes, and what the strategy `summary` with its usual model costs
# at most for a megabyte of them.
EMPTY_DATABASE = 200_000
DATABASE_SHARE = 0.12
SUMMARY_MODEL = "haiku"
SUMMARY_DOLLARS_A_MEGABYTE = 0.13
WEEKS = 4  # that are looked back
_WEEK_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True)
class UpkeepForecast:
    """What upkeep does for a home: `mode` is the setting, `transcripts` and their `size` in bytes are what it copies
    into `database`, which takes about `database_size`; `weekly_dollars` is what summaries of a usual week would cost
    at most, 0.0 where nothing was said lately. `option` names the home for commands ('' for a person's)."""

    mode: str
    transcripts: int
    size: int
    database: str
    database_size: int
    weekly_dollars: float
    option: str


def forecast(target: Target, environ: Mapping[str, str]) -> UpkeepForecast | None:
    """The forecast for a home; None where there is no store, as where nothing was said there yet, or where it cannot be
    told."""
    try:
        location = find_location(path_of(target.home), environ)
        files = [file for one in location.watched if one.is_expected() for file in one.files([])]
        settings = location.home.settings()
    except (SessionMemoryError, OSError):
        return None
    if settings.faults and not has_parser():  # what config.yaml says a bare Python cannot tell
        return None
    size = sum(file.size for file in files)
    is_there = os.path.exists(location.database)
    return UpkeepForecast(
        settings.upkeep,
        len(files),
        size,
        location.database,
        os.path.getsize(location.database) if is_there else EMPTY_DATABASE + round(size * DATABASE_SHARE),
        _weekly([(file.modified / 1000, file.size) for file in files], time.time()),
        "" if target.home.user_dir and not target.home.rules_files else target.home.root,
    )


def show_upkeep(found: UpkeepForecast, terminal: Terminal) -> None:
    """What upkeep will do in a home, and how to have it otherwise."""
    if found.mode != "sessions":
        terminal.item("upkeep", f"{found.mode}, as config.yaml says")
        return
    what = f"{counted(found.transcripts, 'transcript')}, {byte_size(found.size)}"
    terminal.item(
        "upkeep",
        f"takes what is said into {terminal.short(found.database)}, in the background, as sessions start and end: "
        f"{what}, which make about {byte_size(found.database_size)} there. To turn that off: {NAME} config upkeep off"
        f"{_option(found, terminal)}",
    )


def show_summary(found: UpkeepForecast, command: str, terminal: Terminal) -> None:
    """How to have a model summarise conversations, as `command` does that, and what it would cost."""
    if found.mode == "sessions" and found.weekly_dollars:
        terminal.line(f"  {command} install --with sdk")
        terminal.line(f'  {command} config memories.strategies "[extractive, summary]"{_option(found, terminal)}')
        dollars = max(0.01, found.weekly_dollars)
        about = f"at most ${dollars:.2f} for a week like your last ones"
        terminal.line(f"      has Claude ({SUMMARY_MODEL}) summarise conversations as well: {about}")


def _option(found: UpkeepForecast, terminal: Terminal) -> str:
    return f" --home {terminal.short(shlex.quote(found.option))}" if found.option else ""


def _weekly(files: list[tuple[float, int]], now: float) -> float:
    """Dollars for a usual week: of files with the time of their last change and their size, those of the last weeks,
    by the time that they span. `now` is in seconds since the epoch."""
    lately = [(modified, size) for modified, size in files if now - modified < WEEKS * _WEEK_SECONDS]
    if not lately:
        return 0.0
    weeks = max(1.0, (now - min(modified for modified, _ in lately)) / _WEEK_SECONDS)
    return sum(size for _, size in lately) / 1e6 * SUMMARY_DOLLARS_A_MEGABYTE / weeks
