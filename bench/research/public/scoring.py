"""Asks a tool the questions of a repository, by README.md's protocol, and grades its answers."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from threading import Timer
from typing import Any, NamedTuple

from .sources import ENVIRONMENT, Source, began_at, error_text, write_home
from .tasks import digest

TASKS = {
    "commit": "commit to session",
    "line": "line to session",
    "error": "error to session",
    "conflict": "tips to conflict",
}
DEPTH = 5
MOST_SECONDS = 1800  # for all questions of a repository


class Question(NamedTuple):
    """A question for a tool, and the right answers.

    These are names of sessions, or digests of files; none if nothing is right. `known` are the
    sessions at that time, except the asking one."""

    asked: dict[str, Any]
    right: frozenset[str]
    known: frozenset[str] = frozenset()


class Grade(NamedTuple):
    """The value of an answer.

    `first` and `among` count one right answer as a hit, `strict` needs all right answers."""

    task: str
    is_negative: bool
    first: bool
    among: bool
    strict: bool


class Corpus:
    """The texts of a repository's tasks, from a clone of it, written below `root`.

    They are a home with the transcripts, and a checkout without the branch that has the labels."""

    def __init__(self, tasks: dict[str, Any], clone: Path, root: Path) -> None:
        source = Source(clone)
        self.repository: str = tasks["repository"]
        self.home, self.clone = root / "home", root / self.repository.rpartition("/")[2]
        self._check_out(source, tasks["head"])
        sessions: list[tuple[str, str]] = tasks["sessions"]
        contents = {name: source.bytes("cat-file", "blob", blob) for name, blob in sessions}
        self.home.mkdir()
        self.sessions = write_home(self.home, self.clone, self.repository, contents)
        self.questions = list(_questions(tasks, source, contents))

    def _check_out(self, source: Source, head: str) -> None:
        git = ["git", "-C", str(self.clone)]
        subprocess.run(
            ["git", "init", "-q", "-b", "main", str(self.clone)], check=True, env=ENVIRONMENT
        )
        (self.clone / ".git/objects/info/alternates").write_text(
            f"{source.git_dir.resolve()}/objects\n"
        )
        subprocess.run([*git, "update-ref", "refs/heads/main", head], check=True, env=ENVIRONMENT)
        # A file that the clone lacks is not checked out; the others are.
        subprocess.run(
            [*git, "-c", "core.symlinks=false", "checkout", "-q", "-f", "main"],
            env=ENVIRONMENT,
            capture_output=True,
        )


def _questions(
    tasks: dict[str, Any], source: Source, contents: dict[str, bytes]
) -> Iterator[Question]:
    names = [name for name, _ in tasks["sessions"]]
    began = {name: began_at(content) for name, content in contents.items()}
    paths, head = source.files(tasks["head"]), tasks["head"]

    def question(fields: dict[str, Any], answer: Sequence[int], asker: str = "") -> Question:
        known = [name for name in names if name != asker and began[name] <= fields["at"]]
        return Question(fields, frozenset(names[number] for number in answer), frozenset(known))

    for commit, answer in tasks["commit"]:
        at, subject = source.ask("show", "-s", "--format=%at%x00%s", commit).strip().split("\0")
        yield question(
            {"task": "commit", "text": subject, "commit": commit, "at": int(at) * 1000}, answer
        )
    latest = int(source.ask("show", "-s", "--format=%ct", head)) * 1000
    for blob, number, answer in tasks["line"]:
        text = source.ask("cat-file", "blob", blob).split("\n")[number - 1]
        yield question(
            {"task": "line", "text": text, "path": paths[blob], "line": number, "at": latest},
            answer,
        )
    for asker, offset, answer in tasks["error"]:
        content = contents[names[asker]]
        ended = began_at(content[offset:])
        query = {
            "task": "error",
            "text": error_text(content, offset),
            "at": ended,
            "asker": names[asker],
        }
        yield question(query, answer, names[asker])
    for ours, other, files in tasks["conflict"]:
        yield Question(
            {"task": "conflict", "text": "", "ours": ours, "theirs": other}, frozenset(files)
        )


def asked(tool: str, corpus: Corpus) -> list[Grade]:
    """Return the grades of a tool's answers, for the tasks that it supports. Raises ToolError."""
    words = shlex.split(tool)
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        timer = Timer(MOST_SECONDS, process.kill)
        timer.start()
        try:
            place = {
                "home": str(corpus.home),
                "clone": str(corpus.clone),
                "sessions": corpus.sessions,
            }
            print(json.dumps(place), file=process.stdin, flush=True)
            grades = []
            for number, question in enumerate(corpus.questions):
                print(json.dumps({"id": number, **question.asked}), file=process.stdin, flush=True)
                answer = json.loads(process.stdout.readline())
                if (grade := graded(question, answer)) is not None:
                    grades.append(grade)
            process.stdin.close()
            return grades
        except (OSError, ValueError) as error:
            process.kill()
            said = process.stderr.read().strip().splitlines()
            raise ToolError(f"{tool}: {said[-1] if said else error}") from error
        finally:
            timer.cancel()


class ToolError(Exception):
    """A tool ended, or answered something else than a line of JSON."""


def graded(question: Question, answer: dict[str, Any]) -> Grade | None:
    """Return what an answer is worth, None if the tool does not do this."""
    task = str(question.asked["task"])
    named = answer.get("files" if task == "conflict" else "sessions")
    if named is None:
        return None
    if task == "conflict":
        answers = list(dict.fromkeys(digest(path) for path in named))
        is_strict = set(answers) == question.right
    else:
        answers = [name for name in dict.fromkeys(named) if name in question.known]
        is_strict = question.right <= set(answers[: max(DEPTH, len(question.right))])
    if not question.right:
        return Grade(task, True, not answers, not answers, not answers)
    return Grade(
        task,
        False,
        answers[:1] != [] and answers[0] in question.right,
        not question.right.isdisjoint(answers[:DEPTH]),
        is_strict,
    )


def table(results: dict[str, list[Grade]]) -> str:
    """Return a Markdown table: a row for each task of each tool."""
    lines = [
        "| task | tool | questions | any @1 | any @5 | strict | without an answer | nothing said |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for task, title in TASKS.items():
        for tool, grades in results.items():
            grades_of_task = [grade for grade in grades if grade.task == task]
            positive, negative = (
                [grade for grade in grades_of_task if not grade.is_negative],
                [grade for grade in grades_of_task if grade.is_negative],
            )
            if positive:
                shares = [
                    f"{mean(getattr(grade, name) for grade in positive):.3f}"
                    for name in ("first", "among", "strict")
                ]
                silent = f"{mean(grade.first for grade in negative):.3f}" if negative else "-"
                cells = [title, tool, str(len(positive)), *shares, str(len(negative)), silent]
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
