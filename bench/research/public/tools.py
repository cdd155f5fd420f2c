"""`python -m bench.research.public.tools NAME`: tools to score, by the protocol in README.md.

`date` orders sessions by their distance from the commit or the error; `changed` names the files
that both tips changed. `ours` runs the commands of session-memory. `agentsview` and `deja` run
those programs, found on PATH or given.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from session_memory.history.git.merges import Merges

from ...agentsview import its_server
from .sources import TIMES, Source

MOST = 50
_OURS = [sys.executable, "-c", "import sys; from session_memory.cli import main; sys.exit(main())"]
Answer = dict[str, Any]


class Tool:
    """Answers questions about a repository; a method for each task that it does."""

    def __init__(self, place: dict[str, Any], program: str = "") -> None:
        self.home, self.clone = Path(place["home"]), Path(place["clone"])
        self.sessions: dict[str, str] = place["sessions"]
        self.program = program
        self.source = Source(self.clone)
        self.stack = ExitStack()

    def answer(self, question: dict[str, Any]) -> Answer:
        does: Callable[[dict[str, Any]], list[str]] | None = getattr(self, question["task"], None)
        kind = "files" if question["task"] == "conflict" else "sessions"
        return {"id": question["id"], **({kind: does(question)} if does else {})}

    def run(self, *words: str, given: str = "", **environment: str) -> Any:
        """Return the JSON output of a command run in the clone, with the home as HOME, or None."""
        variables = {
            "HOME": str(self.home),
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        done = subprocess.run(
            words,
            input=given,
            cwd=self.clone,
            env={**variables, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None


class Date(Tool):
    def __init__(self, place: dict[str, Any], program: str = "") -> None:
        super().__init__(place, program)
        self._spans = {session: _span(Path(path)) for session, path in self.sessions.items()}

    def commit(self, question: dict[str, Any]) -> list[str]:
        def distance(session: str) -> tuple[float, float]:
            first, last = self._spans[session]
            return max(first - question["at"], question["at"] - last, 0), -first

        return sorted(self._spans, key=distance)

    error = commit

    def line(self, question: dict[str, Any]) -> list[str]:
        return self.commit({"at": int(_blame_time(self.source, question)) * 1000})


class Changed(Tool):
    def conflict(self, question: dict[str, Any]) -> list[str]:
        ours, other = question["ours"], question["theirs"]
        sides = [
            set(self.source.ask("diff", "--name-only", "-z", f"{a}...{b}").split("\0")[:-1])
            for a, b in ((ours, other), (other, ours))
        ]
        return sorted(sides[0] & sides[1])


class Ours(Tool):
    def commit(self, question: dict[str, Any]) -> list[str]:
        reasons = self._why(question["commit"])
        if any(reason["not_attributed"] for reason in reasons):
            return []
        return [*_asked(reasons), *self._found(question["commit"])]

    def line(self, question: dict[str, Any]) -> list[str]:
        reasons = self._why(f"{question['path']}:{question['line']}")
        if any(reason["not_attributed"] for reason in reasons):
            return []
        guesses = [
            reason["guess_by_time"]["session"] for reason in reasons if reason["guess_by_time"]
        ]
        others = [
            session
            for reason in reasons
            if reason["commit"]
            for session in self._found(reason["commit"]["id"])
        ]
        return [*_asked(reasons), *guesses, *others]

    def error(self, question: dict[str, Any]) -> list[str]:
        errors = (
            self.run(*_OURS, "errors", "-", "--json", "--limit", str(MOST), given=question["text"])
            or {}
        )
        return [error["session"] for error in errors.get("seen", []) if error["solved"]]

    def conflict(self, question: dict[str, Any]) -> list[str]:
        merges = Merges(str(self.source.git_dir), self.home / "merges", 3600.0)
        return [
            conflict.path for conflict in merges.conflicts(question["ours"], question["theirs"])
        ]

    def _found(self, commit: str) -> list[str]:
        """Return the sessions that a search for a commit finds."""
        hits = (self.run(*_OURS, "search", commit, "--json", "--limit", str(MOST)) or {}).get(
            "hits", []
        )
        return [hit["conversation"]["session_id"] for hit in hits]

    def _why(self, target: str) -> list[dict[str, Any]]:
        reasons: list[dict[str, Any]] = (self.run(*_OURS, "why", target, "--json") or {}).get(
            "reasons", []
        )
        return reasons


class AgentsView(Tool):
    """Asks its server for all words, and if no message has all of them, for any."""

    def __init__(self, place: dict[str, Any], program: str = "agentsview") -> None:
        super().__init__(place, program)
        self._server = self.stack.enter_context(
            its_server(program, self.home, self.home / "agentsview")
        )

    def commit(self, question: dict[str, Any]) -> list[str]:
        words = re.findall(r"\w+", question["text"])
        if not words:  # the server refuses an empty search
            return []
        return self._found(" ".join(words)) or self._found(
            " OR ".join(f'"{word}"' for word in words)
        )

    line = error = commit

    def _found(self, query: str) -> list[str]:
        path = f"/api/v1/search?{urlencode({'q': query, 'limit': MOST})}"
        results = json.loads(self._server.answer(path)[1]).get("results") or []
        return [result["session_id"].rpartition(":")[2] for result in results]


class Deja(Tool):
    """Runs `deja search --json` of deja-vu 0.18."""

    def __init__(self, place: dict[str, Any], program: str = "deja") -> None:
        super().__init__(place, program)

    def commit(self, question: dict[str, Any]) -> list[str]:
        results = (
            self.run(self.program, "search", "--json", "--limit", str(MOST), question["text"]) or {}
        )
        return [hit["session"]["id"] for hit in results.get("hits", [])]

    line = error = commit


TOOLS = {"date": Date, "changed": Changed, "ours": Ours, "agentsview": AgentsView, "deja": Deja}


def _asked(reasons: list[dict[str, Any]]) -> list[str]:
    return [reason["asked"]["session"] for reason in reasons if reason["asked"]]


def _span(path: Path) -> tuple[float, float]:
    stamps = [
        datetime.fromisoformat(stamp.decode() + "+00:00").timestamp() * 1000
        for stamp in TIMES.findall(path.read_bytes())
    ]
    return min(stamps, default=0.0), max(stamps, default=0.0)


def _blame_time(source: Source, question: dict[str, Any]) -> str:
    number = question["line"]
    blame = source.ask("blame", "-p", "-L", f"{number},{number}", "HEAD", "--", question["path"])
    return next(line for line in blame.split("\n") if line.startswith("author-time ")).split()[1]


def main(name: str, program: str = "") -> None:
    tool = TOOLS[name](json.loads(sys.stdin.readline()), *([program] if program else []))
    with tool.stack:
        for line in sys.stdin:
            print(json.dumps(tool.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
