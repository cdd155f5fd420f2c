"""What a rollout of Codex says once for many of its records."""

from __future__ import annotations

from session_memory.runtimes import runtime
from session_memory.transcripts.entries import Entry

CODEX = runtime("codex").RECORDS


def test_a_long_rollout_read_forward_is_not_kept_in_memory() -> None:
    branch = CODEX.branch(
        b'{"timestamp":"2026-11-20T10:00:00.000Z","type":"session_meta","payload":{"id":"a","cwd":"/srv/app"}}'
    )
    assert branch is not None
    kept = []
    for number in range(3):
        branch.note({"type": "turn_context", "payload": {"cwd": f"/srv/{number}"}})
        entries = [Entry(role="user", text="hello", timestamp=1.0, id=f"{number}.{i}", offset=0) for i in range(100)]
        for entry in entries:
            branch.complete(entry)
        assert {entry.cwd for entry in entries} == {f"/srv/{number}"}
        kept.append(sum(isinstance(value, list) and len(value) for value in vars(branch).values()))
    assert kept == [100, 100, 100]
