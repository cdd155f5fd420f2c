"""`session-memory proof`: the updates, their effect, and similar moments without an update."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...app.commands.arguments import NO_LIMIT, add_common, add_project, filter_of
from ...app.commands.opened_store import OpenStore, check_names, on_store, refresh
from ...app.commands.progress import shown
from ...common.errors import WrongCallError
from ...common.system.garbage import without_collection
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted
from ...history.costs import SessionFiles
from ._chart import svg_of
from ._proof import Proof, prove
from .words import HEEDED, as_json, compared_lines, rows_of, sum_lines, told_lines

SUMMARY = (
    "show what agents did after their updates, compared with similar moments without an update"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument(
        "--svg",
        metavar="FILE",
        help="also write the comparison as a picture; - writes only that, to stdout",
    )
    parser.set_defaults(session="", since=None, until=None, limit=NO_LIMIT)
    add_common(parser)


@on_store
def run(opened: OpenStore, arguments: argparse.Namespace) -> int:
    if arguments.svg == "-" and arguments.json:
        raise WrongCallError("--svg - and --json both print to stdout", "name a file for --svg")
    refresh(opened)
    with without_collection():
        proof = _proof_of(opened, arguments)
    if arguments.svg == "-":
        opened.terminal.verbatim(svg_of(proof))
        return 0
    opened.terminal.show(ShownProof(proof))
    if arguments.svg:
        Path(arguments.svg).write_text(svg_of(proof), encoding="utf-8")
    return 0


def _proof_of(opened: OpenStore, arguments: argparse.Namespace) -> Proof:
    wanted = filter_of(arguments, opened.location)
    sessions = SessionFiles(opened.location.watched, opened.store, wanted)
    files = sessions.files
    with shown(
        opened.terminal, lambda: (len(files), sum(file.size for file, _ in files))
    ) as advance:
        proof = prove(opened.store, wanted, sessions, advance)
    if not proof.sessions:
        check_names(opened, wanted)
    return proof


@dataclass(frozen=True)
class ShownProof(Result):
    """The proof, for people in sections."""

    proof: Proof

    def show(self, terminal: Terminal) -> None:
        proof = self.proof
        gone = f", {proof.missing:,} without a transcript" if proof.missing else ""
        terminal.line(f"{counted(proof.sessions, 'session')}{gone}.")
        _section(terminal, "Updates that proved right", told_lines(proof))
        terminal.heading(HEEDED)
        rows = rows_of(proof)
        width = max([len(row.label) for row in rows], default=0)
        for row in rows:
            alone = f"; {row.left_alone:,} more left the file alone" if row.left_alone else ""
            interval = f" ({row.interval})" if row.interval else ""
            terminal.line(f"  {row.label.ljust(width)}  {row.heeded}{interval}{alone}")
            if row.verdict:
                terminal.paragraph(row.verdict, indent=" " * (width + 4))
        for line in compared_lines(proof):
            terminal.paragraph(line, indent="  ")
        if sums := sum_lines(proof):
            _section(terminal, "Sums", sums)

    def as_json(self) -> dict[str, Any]:
        return as_json(self.proof)


def _section(terminal: Terminal, title: str, lines: list[str]) -> None:
    terminal.heading(title)
    for line in lines:
        terminal.paragraph(line, indent="  ")
