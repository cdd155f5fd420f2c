"""Steps that follow each other, and how failing ones were overcome."""

from __future__ import annotations

from session_memory.extras.page._flow_chart import flow_chart
from session_memory.history.patterns.flows import StepCounts, StepFlow
from session_memory.history.patterns.habits import find_habits
from session_memory.history.store.values import Conversation, StoredEntry


def call(number: int, tool: str, text: str, outcome: str, error: str = "") -> StoredEntry:
    kind = {"Bash": "command", "Edit": "edit"}.get(tool, "read")
    return StoredEntry(number, "tool", text, number, "/srv", 0, 0, tool, kind, outcome, error)


def message(number: int) -> StoredEntry:
    return StoredEntry(number, "user", "go on", number, "/srv", 0)


def conversation(session: str) -> Conversation:
    return Conversation(
        1, session, "a", "", "claude", "/srv", f"title of {session}", 1, 9, 2, "", ""
    )


FIXED = [
    call(1, "Bash", "npm test", "error", "2 failed"),
    call(2, "Bash", "npm test", "error", "2 failed"),
    call(3, "edit", "/srv/a.py", "ok")._replace(kind="edit"),
    call(4, "Bash", "npm test", "ok"),
]


def counts_of(*sessions: list[StoredEntry]) -> StepCounts:
    worked = [(conversation(f"s{number}"), entries) for number, entries in enumerate(sessions)]
    return find_habits(worked).steps


def test_a_step_after_another_counts_once_for_repetitions() -> None:
    assert counts_of(FIXED, FIXED, FIXED).flows(10) == [
        StepFlow("npm test", True, "Edit", 3),
        StepFlow("Edit", False, "npm test", 3),
    ]


def test_what_follows_a_message_follows_no_step() -> None:
    parted = [FIXED[0], message(2), FIXED[2]]
    assert counts_of(parted, parted, parted).flows(10) == []


def test_what_happens_rarely_is_no_habit() -> None:
    assert counts_of(FIXED, FIXED).flows(10) == []


def test_half_of_the_flows_follow_failed_steps() -> None:
    usual = [call(at, *step, "ok") for at, step in enumerate([("Read", "a"), ("Edit", "a")] * 9)]
    flows = counts_of(usual, FIXED, FIXED, FIXED).flows(2)
    assert [flow.has_failed for flow in flows] == [False, True]


def test_the_last_recovery_of_each_session_is_kept_the_latest_first() -> None:
    (step,) = counts_of(FIXED, [entry._replace(timestamp=50) for entry in FIXED]).failing()
    assert (step.step, step.uses, step.failures) == ("npm test", 6, 4)
    assert [(recovery.title, recovery.error, recovery.helped) for recovery in step.recoveries] == [
        ("title of s1", "2 failed", "after editing `a.py`"),
        ("title of s0", "2 failed", "after editing `a.py`"),
    ]


def test_curves_fill_their_steps_and_do_not_overlap() -> None:
    flows = [
        StepFlow("npm test", True, "Edit", 30),
        StepFlow("Edit", False, "npm test", 20),
        StepFlow("Edit", False, "git commit", 7),
    ]
    chart = flow_chart(flows)
    for step in chart.steps:
        curves = [
            curve
            for curve in chart.curves
            if (curve.flow.step, curve.flow.has_failed) == (step.step, step.has_failed)
        ]
        assert sum(curve.thickness for curve in curves) <= step.height + 0.001
        tops = sorted(curve.begin - curve.thickness / 2 for curve in curves)
        assert tops[0] == step.top
    bottoms = [step.top + step.height for step in chart.following]
    assert max(bottoms) <= chart.height
