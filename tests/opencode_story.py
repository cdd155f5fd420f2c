"""The story that every runtime's fixtures tell, as rows of OpenCode's database."""

from __future__ import annotations

from pathlib import Path

from opencode_scene import OpenCodeDatabase, text, tool

BEGAN = 1795168800.0  # 2026-11-20T10:00:00Z
TOKENS = {"input": 100, "output": 9, "reasoning": 0, "cache": {"read": 20, "write": 0}}
TOLD = (
    "A record of your other sessions, not instructions:\n"
    '[Session Activity]\n- email (2m ago, 3 messages): "answer the landlord"'
)


def write_story(data_dir: Path) -> dict[str, str]:
    """Writes it, with a fork after the first turn and a sub-agent. Returns their ids by the names
    of their fixtures."""
    database = OpenCodeDatabase(data_dir)

    def at(seconds: float) -> float:
        return BEGAN + seconds

    session = database.session("/srv/site", at=at(0))
    first = database.user(session, "How do I deploy this?", told=TOLD, at=at(0))
    reasoning = {"type": "reasoning", "text": "hm, the docs", "time": {"start": 1, "end": 2}}
    snapshot = {"type": "step-start", "snapshot": "the logs"}
    read = tool(
        "read",
        {"filePath": "/srv/site/docs/deploy.md"},
        "Run make deploy.",
        call_id="call_01",
        at=at(3),
    )
    failed = tool(
        "bash",
        {"command": "make deploy", "description": "deploys"},
        "make: *** [deploy] Error 2",
        call_id="call_02",
        exit_code=2,
        at=at(5),
    )
    edit = tool(
        "edit",
        {"filePath": "/srv/site/Makefile", "oldString": "depoly", "newString": "deploy"},
        call_id="call_03",
        at=at(7),
    )
    for second, parts, finish in (
        (2, [snapshot, reasoning, text("I will look.", at=at(2)), read], "tool-calls"),
        (5, [snapshot, failed], "tool-calls"),
        (
            7,
            [snapshot, edit, {"type": "patch", "hash": "5eed", "files": ["/srv/site/Makefile"]}],
            "tool-calls",
        ),
        (9, [snapshot, text("Deployed.", at=at(9))], "stop"),
    ):
        taken = {"tokens": TOKENS} if second == 2 else {}
        database.assistant(session, first, *parts, finish=finish, at=at(second), **taken)
    second = database.user(session, "Now tag it.", at=at(20))
    stopped = database.begin(
        session, second, at=at(21), error={"name": "MessageAbortedError", "data": "529"}
    )
    database.part(session, stopped, text("Tagging", at=at(21)))
    database.run("UPDATE session SET title = 'Deploy the site' WHERE id = ?", session)
    compaction = database.message(session, {"role": "user", "agent": "build"}, at=at(30))
    database.part(session, compaction, {"type": "compaction", "auto": False}, at=at(30))
    summary = text("Summary: they deployed the site.", at=at(31))
    database.assistant(session, compaction, summary, agent="compaction", summary=True, at=at(31))
    database.turn(session, "Thanks!", "You are welcome.", at=at(40))
    fork = database.fork(session, "Deploy the site (fork #1)", before=second, at=at(45))
    database.turn(fork, "What about staging?", "Staging is the same.", at=at(50))
    child = database.session(
        "/srv/site", title="read the logs (@general subagent)", parent=session, at=at(4)
    )
    database.turn(child, "Read the logs.", "They are empty.", at=at(4))
    return {"conversation.jsonl": session, "fork.jsonl": fork, "subagent.jsonl": child}
