"""Lookups in our memory are not content; one place recognises them for every runtime."""

from __future__ import annotations

import pytest
from records import PiSession, assistant, user
from store_scene import Scene

from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.runtimes.pi import RUNTIME as PI
from session_memory.sessions.transcripts._lookups import is_lookup

QUERY = '"kyoto flights"'


LOOKUPS = [
    f"session-memory search {QUERY}",
    f"session-memory search {QUERY} --limit 5 | head -20",
    f"cd /srv/app && session-memory search {QUERY}",
    f"/home/ann/.local/bin/session-memory search {QUERY}",
    f"SESSION_MEMORY_DIR=/tmp/x session-memory memories search {QUERY}",
    f"'/home/ann lee/.local/share/session-memory/bin/session-memory' search {QUERY}",
    f'python3 "${{CLAUDE_PLUGIN_ROOT}}/scripts/memory.py" search {QUERY}',
    f'python3 "/home/ann lee/.claude/plugins/cache/x/1/scripts/memory.py" memories search {QUERY}',
    "python3 '/home/ann lee/.pi/agent/git/x/scripts/session_reader.py' kyoto",
    "session-memory show 214 --around 37",
    "session-memory sessions --all",
    "session-memory read discord --lines 20",
    'session-memory errors "ENOENT: kyoto"',
    "session-memory patterns --project kyoto",
    "session-memory conversations --since 7d",
    "session-memory sessions --all --since 7d",
    "session-memory read 214 --around 37",
    f"python -m session_memory search {QUERY}",
    f"/opt/venv/bin/python3 -I -m session_memory search {QUERY}",
    "python3 /home/ann/.claude/skills/sessions/scripts/session_reader.py kyoto",
    '"${CLAUDE_PLUGIN_ROOT}/scripts/session_reader.py" kyoto --lines 20',
    "python3 ${CLAUDE_PLUGIN_ROOT}/scripts/session_reader.py --list",
    f"uv run session-memory search {QUERY}",
    f"timeout 10 session-memory search {QUERY}",
    f"bash -lc 'session-memory search {QUERY}'",
    f"echo; (session-memory search {QUERY})",
    f"session-memory search {QUERY} | grep -v done | sort | head -3; echo $?",
    f'found=$(session-memory search {QUERY} --json) && echo "$found" | jq .',
    "for id in 1 2; do session-memory show $id; done",
    "session-memory conversations --ids | xargs -n 1 session-memory show",
    'cd /srv/app && grep -ril "kyoto" /home/ann/.session-memory/conversations/ 2>/dev/null | wc -l',
    'grep -rn "kyoto" ~/.session-memory/conversations/',
    "grep -ril kyoto /home/ann/.session-memory/conversations",
    'grep -ril "kyoto" "${SESSION_MEMORY_DIR:-$HOME/.session-memory}/conversations"',
]
OTHER_WORK = [
    "session-memory install --yes",
    "session-memory ingest",
    "python3 scripts/memory.py ingest",
    "python3 memory.py search kyoto",
    'cat "/srv/my notes/scripts/memory.py"',
    "git commit -m 'Let session-memory search faster'",
    "cat scripts/session_reader.py",
    "vim session_memory/cli.py",
    "pytest tests/test_session_reader.py",
    "grep -rn search session_memory/",
    "pip install session-memory",
    "ls src/conversations/",
    "git show HEAD:conversations/x.md",
    'grep -ril "kyoto" conversations/',
    f"session-memory search {QUERY} && npm test",
    f"npm test; session-memory search {QUERY}",
    f"session-memory search {QUERY}; cat notes.md",
    f"bash -c 'session-memory search {QUERY}; make'",
    f"echo session-memory search {QUERY}",
]
OUR_TOOLS = [
    ("mcp__session-memory__search_sessions", "kyoto flights"),
    ("mcp__plugin_session-memory_sessions__search_sessions", "kyoto flights"),
    ("mcp__mem__read_session", "kyoto"),
    ("session-memory_list_sessions", ""),
    ("search_sessions", "kyoto flights"),
    ("Skill", "recall"),
    ("Skill", "session-memory:sessions"),
]
TOOLS_OF_OTHERS = [
    ("research_sessions", "kyoto"),
    ("mcp__browser__open_session", "x"),
    ("Skill", "other:recall"),
    ("Skill", "deploy"),
]


def test_a_command_of_ours_that_looks_something_up_is_a_lookup_and_other_work_is_none():
    for tool in ("Bash", "bash"):
        found = [command for command in LOOKUPS + OTHER_WORK if is_lookup(tool, "command", command)]
        assert found == LOOKUPS


def test_our_tools_and_skills_are_lookups_under_the_name_of_any_server_or_plugin_and_those_of_others_are_none():
    found = [
        (name, argument)
        for name, argument in OUR_TOOLS + TOOLS_OF_OTHERS
        if is_lookup(name, "other", argument)
    ]
    assert found == OUR_TOOLS


def test_reading_an_archive_or_our_skill_is_a_lookup():
    assert is_lookup(
        "Read", "read", "/home/ann/.session-memory/conversations/2026-02-21-kyoto-flights.md"
    )
    assert is_lookup("read", "read", "/home/ann/.pi/agent/skills/recall/SKILL.md")
    assert not is_lookup("Read", "read", "/srv/app/docs/recall.md")


class TestRecords:
    def test_an_entry_of_claude_has_no_lookups_and_keeps_what_the_agent_says_of_them(self):
        record = assistant(
            "I look.",
            ("Bash", {"command": f"session-memory search {QUERY}"}),
            ("Bash", {"command": "ls"}),
        )
        entry = CLAUDE.records.entry(record, 0)
        assert entry is not None
        assert (entry.text, [tool.argument for tool in entry.tools]) == ("I look.", ["ls"])

    def test_a_record_with_nothing_but_a_lookup_is_no_entry(self):
        assert (
            CLAUDE.records.entry(
                assistant(("mcp__x__search_sessions", {"query": "kyoto flights"})), 0
            )
            is None
        )

    def test_an_entry_of_pi_has_no_lookups_either(self):
        session = PiSession()
        session.assistant("I look.", ("bash", {"command": f"session-memory search {QUERY}"}))
        entry = PI.records.entry(session.records[-1], 0)
        assert entry is not None
        assert (entry.text, entry.tools) == ("I look.", ())


@pytest.mark.parametrize(
    "use",
    [
        (
            "Bash",
            {
                "command": f"session-memory search {QUERY}",
                "description": "Search for kyoto flights",
            },
        ),
        ("mcp__plugin_session-memory_sessions__search_sessions", {"query": "kyoto flights"}),
        ("Skill", {"skill": "session-memory:recall", "args": "kyoto flights"}),
    ],
)
def test_the_first_search_for_something_is_no_hit_of_the_second(tmp_path, use):
    scene = Scene(tmp_path)
    call = {"type": "tool_use", "id": "toolu_9", "name": use[0], "input": use[1]}
    failed = {
        "type": "tool_result",
        "tool_use_id": "toolu_9",
        "is_error": True,
        "content": "Error: no kyoto flights",
    }
    skill = user([{"type": "text", "text": "Base directory: recall\n\nkyoto flights"}], isMeta=True)
    scene.write(
        "one",
        user("what did I plan?"),
        assistant(call),
        user([failed]),
        skill,
        assistant("I found nothing."),
    )
    scene.ingest()
    assert b"kyoto" not in b"".join(path.read_bytes() for path in scene.database.parent.iterdir())
    assert [item.text for item in scene.items(scene.conversations()[0])] == [
        "what did I plan?",
        "I found nothing.",
    ]


def test_a_failure_beside_a_lookup_is_kept(tmp_path):
    scene = Scene(tmp_path)
    call = ("Bash", {"command": f"session-memory search {QUERY} && npm test"})
    record = assistant(call)
    use = record["message"]["content"][0]["id"]
    failed = {
        "type": "tool_result",
        "tool_use_id": use,
        "is_error": True,
        "content": "Error: 2 tests failed",
    }
    scene.write("one", user("test it"), record, user([failed]))
    scene.ingest()
    assert b"2 tests failed" in b"".join(
        path.read_bytes() for path in scene.database.parent.iterdir()
    )
