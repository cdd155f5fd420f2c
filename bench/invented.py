"""A home with a year of invented sessions, for pictures of the page and for looking at it.

They are agents in Claude Code, Codex and Pi at work for a bakery. The result is the same for the
same time; their messages are in invented.yaml."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from session_memory.sessions.runtimes.claude import encode_cwd
from session_memory.sessions.runtimes.pi import encode_cwd as pi_encode_cwd

from .scenes import REPOSITORY

SEED = 11
DAYS = 330
HOUR = 3600
Record = dict[str, Any]


class Work(NamedTuple):
    """A piece of work in a project.

    It has the request, the edited file, the command, the error line ('' if it succeeded), and the
    answer."""

    project: str
    request: str
    file: str
    command: str
    error: str
    answer: str


_KNOWN = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
WORK = [Work(**fields) for fields in _KNOWN["work"]]
MEMORIES: dict[str, str] = _KNOWN["memories"]  # pages, by their names


def write_home(home: Path, now: float, days: int = DAYS) -> list[str]:
    """Write the transcripts of `days` days and today's.

    Two of these sessions have a file in common: one got a report about it, and the other is at
    work. `now` is in seconds since 1970. Return the ids of these two, the one at work first."""
    random = Random(SEED)
    for project in dict.fromkeys(work.project for work in WORK):
        _repository(home / "code" / project, "main" if project != "bakery-shop" else "checkout")
    midnight = time.mktime((*time.localtime(now)[:3], 0, 0, 0, 0, 0, -1))
    for days_ago in range(days, 0, -1):
        day = midnight - days_ago * 24 * HOUR
        is_weekend = time.localtime(day).tm_wday >= 5
        busy = (days - days_ago / 2) / days
        for _ in range(int(random.expovariate(1 / (0.6 if is_weekend else 3.2 * busy)))):
            begin = day + random.gauss(13.5, 3) * HOUR
            _session(home, random, random.choice(WORK), begin, random.randint(1, 5))
    open_ids = _today(home, random, now)
    pages = home / ".session-memory" / "memories"
    pages.mkdir(parents=True, exist_ok=True)
    first = session_id(random)
    date = time.strftime("%Y-%m-%d", time.gmtime(now - 9 * 24 * HOUR))
    for name, text in MEMORIES.items():
        (pages / name).write_text(text.format(home=home, session=first, day=date))
    return open_ids


def _today(home: Path, random: Random, now: float) -> list[str]:
    _session(home, random, WORK[8], now - 5 * HOUR, 2)
    _session(home, random, WORK[6], now - 2 * HOUR, 3)
    first = _session(home, random, WORK[0], now - 40 * 60, 2, runtime="claude")
    second = _session(
        home, random, WORK[2]._replace(file="src/cart.ts"), now - 25 * 60, 2, runtime="claude"
    )
    _told(home, second, "Also offer Sunday morning", now - 6 * 60)
    add_records(
        first,
        claude_turn(
            random,
            home,
            WORK[0]._replace(request="Add a test for two tabs"),
            first.stem,
            now - 3 * 60,
        ),
    )
    _session(home, random, WORK[4], now - 4 * 60, 1, runtime="codex")
    at_work = WORK[0]._replace(request="Run it in Firefox too")
    add_records(first, claude_turn(random, home, at_work, first.stem, now - 25)[:2])
    return [first.stem, second.stem]


def _session(
    home: Path, random: Random, work: Work, begin: float, turns: int, runtime: str = ""
) -> Path:
    """Writes a transcript of some turns, which begins then; its path."""
    runtime = runtime or random.choices(("claude", "codex", "pi"), (6, 2, 2))[0]
    cwd = f"{home}/code/{work.project}"
    id = session_id(random)
    others = [
        work_of_project
        for work_of_project in WORK
        if work_of_project.project == work.project and work_of_project != work
    ]
    subjects = [work, *random.sample(others * 2, k=min(turns - 1, len(others)))]
    day = time.localtime(begin)
    if runtime == "claude":
        path = home / ".claude/projects" / encode_cwd(cwd) / f"{id}.jsonl"
    elif runtime == "pi":
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S-000Z", time.gmtime(begin))
        path = home / ".pi/agent/sessions" / pi_encode_cwd(cwd) / f"{stamp}_{id}.jsonl"
        add_records(
            path,
            [{"type": "session", "version": 3, "id": id, "timestamp": _stamp(begin), "cwd": cwd}],
        )
    else:
        path = home / ".codex/sessions" / time.strftime("%Y/%m/%d", day)
        path = path / f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', day)}-{id}.jsonl"
        meta = {
            "id": id,
            "timestamp": _stamp(begin),
            "cwd": cwd,
            "originator": "codex_cli_rs",
            "cli_version": "0.130.0",
        }
        add_records(path, [{"timestamp": _stamp(begin), "type": "session_meta", "payload": meta}])
    for number, subject in enumerate(subjects):
        at = begin + number * random.uniform(300, 1500)
        turn = {"claude": claude_turn, "codex": _codex_turn, "pi": _pi_turn}[runtime]
        add_records(path, turn(random, home, subject, id, at))
    return path


def claude_turn(random: Random, home: Path, work: Work, id: str, at: float) -> list[Record]:
    cwd = f"{home}/code/{work.project}"

    def record(kind: str, content: Any, seconds: float, **message: Any) -> Record:
        return {
            "type": kind,
            "uuid": session_id(random),
            "parentUuid": None,
            "sessionId": id,
            "cwd": cwd,
            "isSidechain": False,
            "userType": "external",
            "version": "2.1.329",
            "timestamp": _stamp(at + seconds),
            "message": {"role": kind, "content": content, **message},
        }

    def said(block: Record, seconds: float) -> Record:
        usage = {
            "input_tokens": random.randint(5, 900),
            "output_tokens": random.randint(80, 2600),
            "cache_read_input_tokens": random.randint(8_000, 90_000),
            "cache_creation_input_tokens": random.randint(400, 9_000),
        }
        return record(
            "assistant",
            [block],
            seconds,
            id=f"msg_{session_id(random)}",
            model="claude-opus-4-5",
            usage=usage,
        )

    def used(
        name: str, given: Record, result: str, seconds: float, is_error: bool = False
    ) -> Iterator[Record]:
        call = f"toolu_{session_id(random)}"
        yield said({"type": "tool_use", "id": call, "name": name, "input": given}, seconds)
        outcome = {
            "type": "tool_result",
            "tool_use_id": call,
            "content": result,
            "is_error": is_error,
        }
        yield record("user", [outcome], seconds + 4)

    path = f"{cwd}/{work.file}"
    line = "  redirect('/checkout');"
    change = {"file_path": path, "old_string": line, "new_string": f"  await cart.save();\n{line}"}
    return [
        record("user", work.request, 0),
        *used("Read", {"file_path": path}, "1  export function checkout() {", 8),
        *(
            used("Bash", {"command": work.command}, f"Exit code 1\n{work.error}", 20, True)
            if work.error
            else ()
        ),
        *used("Edit", change, "The file has been updated.", 45),
        *used("Bash", {"command": work.command}, "all passed", 60),
        said({"type": "text", "text": work.answer}, 75),
    ]


def _codex_turn(random: Random, home: Path, work: Work, id: str, at: float) -> list[Record]:
    def line(kind: str, payload: Record, seconds: float) -> Record:
        return {"timestamp": _stamp(at + seconds), "type": kind, "payload": payload}

    def item(value: Record, seconds: float) -> Record:
        return line("event_msg", {"type": "item_completed", "turn_id": id, "item": value}, seconds)

    prompt_message = {
        "type": "UserMessage",
        "id": session_id(random),
        "content": [{"type": "text", "text": work.request}],
    }
    answer_message = {
        "type": "AgentMessage",
        "id": session_id(random),
        "content": [{"type": "Text", "text": work.answer}],
    }
    return [
        line(
            "turn_context",
            {"turn_id": id, "cwd": f"{home}/code/{work.project}", "model": "gpt-5-codex"},
            0,
        ),
        item(prompt_message, 0),
        item(answer_message, 90),
    ]


def _pi_turn(random: Random, home: Path, work: Work, id: str, at: float) -> list[Record]:
    def message(role: str, text: str, seconds: float) -> Record:
        body = {"role": role, "content": [{"type": "text", "text": text}]}
        stamp = _stamp(at + seconds)
        return {
            "type": "message",
            "id": session_id(random)[:8],
            "parentId": None,
            "timestamp": stamp,
            "message": body,
        }

    return [message("user", work.request, 0), message("assistant", work.answer, 80)]


def _told(home: Path, transcript: Path, prompt: str, at: float) -> None:
    """Run the hook for a prompt of a session, as Claude Code does, and append prompt and update."""
    last = json.loads(transcript.read_text().splitlines()[-1])
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": transcript.stem,
        "transcript_path": str(transcript),
        "cwd": last["cwd"],
        "prompt": prompt,
        "prompt_id": transcript.stem,
    }
    answered = subprocess.run(
        [sys.executable, "-I", "-S", str(REPOSITORY / "hooks" / "user_prompt_submit.py")],
        input=json.dumps(event).encode(),
        capture_output=True,
        check=True,
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "CLAUDE_CODE_ENTRYPOINT": "cli"},
    ).stdout
    context = json.loads(answered)["hookSpecificOutput"]["additionalContext"] if answered else ""
    answer = "Another session is changing `src/cart.ts`. I will look at its edit first."
    said = {
        **last["message"],
        "id": f"msg_{transcript.stem}",
        "content": [{"type": "text", "text": answer}],
    }
    attachment = {
        "type": "hook_additional_context",
        "content": [context],
        "hookEvent": "UserPromptSubmit",
    }
    shown = {key: value for key, value in last.items() if key != "message"}
    records = [
        {**shown, "type": "user", "message": {"role": "user", "content": prompt}},
        {**shown, "type": "attachment", "attachment": attachment},
        {**last, "message": said},
    ]
    add_records(
        transcript,
        [
            {**record, "timestamp": _stamp(at), "uuid": f"{transcript.stem}-{n}"}
            for n, record in enumerate(records)
        ],
    )


def add_records(path: Path, records: list[Record]) -> None:
    """Append records, each continuing the previous one; the file gets the last one's time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    last = None
    if path.exists():
        known = json.loads(path.read_text().splitlines()[-1])
        last = known.get("uuid") or known.get("id")
    with path.open("a") as file:
        for record in records:
            parent = next((key for key in ("parentUuid", "parentId") if key in record), "")
            linked = {**record, parent: last} if parent else record
            last = linked.get("uuid") or linked.get("id")
            file.write(json.dumps(linked, separators=(",", ":")) + "\n")
    at = (
        time.mktime(time.strptime(records[-1]["timestamp"][:19], "%Y-%m-%dT%H:%M:%S"))
        - time.timezone
    )
    os.utime(path, (at, at))


def _repository(path: Path, branch: str) -> None:
    """Make the files that mark a repository, without git, because nothing works in it."""
    (path / ".git").mkdir(parents=True, exist_ok=True)
    (path / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")


def session_id(random: Random) -> str:
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".000Z"
