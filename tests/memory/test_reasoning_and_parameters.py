"""With `filtering: {keep_reasoning: true, parameters: all}`, a model reads more from transcripts.

That content is redacted, counted, and subject to the rules.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from clients.claude import Claude
from fakes.fake_anthropic import FakeAnthropic
from fakes.fake_openai import DIMENSIONS, FakeOpenAI
from fakes.loopback import text_of
from graph_scene import empty_graph
from records import assistant, tool_result, user
from store_scene import MONDAY, StoreUser

from session_memory.history.filtering import MOST_PARAMETERS

FIXTURES = Path(__file__).resolve().parents[1] / "sessions" / "runtimes" / "fixtures"
FILTERING = "  filtering: {keep_reasoning: true, parameters: all}\n"
EVERY_LENGTH = "store: {min_conversation_messages: 1}\n"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
REPLY = {"title": "Login", "summary": "Looked for it.", "memories": []}


def thinking(text: str) -> dict[str, str]:
    return {"type": "thinking", "thinking": text, "signature": "eA=="}


def login() -> list[dict[str, Any]]:
    """A conversation with reasoning, an MCP call, and an edit."""
    given = {"query": "postgres timeout", "limit": 5, "token": SECRET, "deep": {"a": [1, None]}}
    edit = {
        "file_path": "/srv/agent/auth.py",
        "old_string": "expiry = 0",
        "new_string": "expiry = 3600",
        "replace_all": True,
    }
    return [
        user("Fix the login.", at=MONDAY),
        assistant(
            thinking(f"The user means the JWT. The key is {SECRET}."), at=MONDAY + 1, message_id="m"
        ),
        assistant(("Grep", {"pattern": "login", "path": "src"}), at=MONDAY + 2, message_id="m"),
        assistant(("mcp__ctx__search", given), at=MONDAY + 3),
        assistant(("Edit", edit), at=MONDAY + 4),
        assistant(thinking("Nothing is left."), "It lasts an hour now.", at=MONDAY + 5),
    ]


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    person = StoreUser(tmp_path / "user")
    person.session("8f3a-login", *login())
    return person


def read_by_a_model(person: StoreUser) -> str:
    done = person.run("export", "--all", "--format", "filtered")
    assert done.returncode == 0, done.stderr
    return done.stdout


KEPT = [
    "User: Fix the login.",
    "Reasoning: The user means the JWT. The key is [redacted: github token].",
    'Action: Grep(pattern="login", path="src")',
    'Action: mcp__ctx__search(query="postgres timeout", limit=5, token="[redacted: github token]",'
    ' deep={"a": [1, null]})',
    'Action: Edit(file_path="auth.py", replace_all=true)',
    "Reasoning: Nothing is left.",
    "Assistant: It lasts an hour now.",
]


def lines_in(text: str) -> list[str]:
    """The lines of a conversation that a model reads, without the outcomes of calls."""
    return [
        line.partition(" -> ")[0] for line in text.splitlines() if line and not line.startswith("#")
    ]


def test_reasoning_and_all_parameters_are_kept_if_the_settings_say_so(person: StoreUser) -> None:
    assert [line for line in lines_in(read_by_a_model(person)) if "Reasoning" in line] == []
    assert "Action: Grep(login)" in read_by_a_model(person)
    person.config(f"memories:\n{FILTERING}")
    assert lines_in(read_by_a_model(person)) == KEPT
    person.config("memories:\n  filtering: {parameters: all, keep_tool_structure: false}\n")
    assert lines_in(read_by_a_model(person)) == [KEPT[0], KEPT[-1]]


def test_each_runtime_s_reasoning_is_kept_as_far_as_its_transcripts_have_it(
    tmp_path: Path,
) -> None:
    person = StoreUser(tmp_path / "user")
    names = [path.name for path in FIXTURES.iterdir()]
    for name in names:
        place = person.home / "sessions" / name / f"{name}.jsonl"
        place.parent.mkdir(parents=True)
        shutil.copyfile(FIXTURES / name / "conversation.jsonl", place)
    person.config(f"store: {{watch_path: {person.home}/sessions}}\nmemories:\n{FILTERING}")
    thoughts, calls = {}, {}
    for name in names:
        done = person.run("export", name, "--format", "filtered")
        lines = lines_in(done.stdout)
        thoughts[name] = [line for line in lines if line.startswith("Reasoning: ")]
        calls[name] = [line for line in lines if line.startswith("Action: ")]
    without = {"gemini", "kilo", "opencode"}  # their mirrors have none
    assert {name for name, kept in thoughts.items() if not kept} == without
    assert thoughts["codex"] == ["Reasoning: hm, the docs"]
    assert calls["claude-code"][1] == 'Action: Bash(command="make deploy", description="Deploy")'
    assert calls["pi"][1] == 'Action: bash(command="make deploy", timeout=30)'
    assert [line for lines in calls.values() for line in lines if "depoly" in line] == []


def test_a_summary_s_model_reads_them_and_the_budget_counts_them(
    person: StoreUser, claude: Claude, api: FakeAnthropic
) -> None:
    strategy = "memories:\n  strategies: [summary]\n"

    def planned() -> int:
        tokens: int = person.result("process", "--dry-run")["tokens"]
        return tokens

    person.config(EVERY_LENGTH + strategy)
    without = planned()
    person.config(EVERY_LENGTH + strategy + FILTERING)
    assert planned() > without
    fact = {
        "kind": "fact",
        "subject": "login",
        "text": "The login uses a JWT.",
        "quote": "The user means the JWT",
        "replaces": [],
    }
    api.replies = [
        {"tools": [{"name": "StructuredOutput", "input": {**REPLY, "memories": [fact]}}]}
    ]
    words = {**claude.environment, **person.environment}
    done = person.run("process", **words)
    assert done.returncode == 0, done.stdout + done.stderr
    [request] = api.requests
    prompt = text_of(request.messages[0]["content"])
    assert [line for line in KEPT if line not in lines_in(prompt)] == []
    assert "what the agent thought and did not say" in prompt
    assert SECRET not in str(request.body)
    assert "expiry = 3600" not in str(request.body)
    [memory] = [one for one in person.result("memories")["memories"] if one["kind"] == "fact"]
    assert memory["origins"][0]["message"] == 2  # the call to which the reasoning led


def test_a_budget_that_the_reasoning_exceeds_skips_the_conversation(tmp_path: Path) -> None:
    person = StoreUser(tmp_path / "user")
    long = thinking("I wonder about the rate limit. " * 2000)
    person.session(
        "9b", user("Hello there.", at=MONDAY), assistant(long, "Hi, what is it?", at=MONDAY + 1)
    )
    limited = "memories:\n  strategies: [summary]\n  tokens_per_conversation: 40000\n"
    person.config(EVERY_LENGTH + limited)
    assert person.result("process", "--dry-run")["planned"][0]["skipped"] == ""
    person.config(EVERY_LENGTH + limited + FILTERING)
    assert "budget" in person.result("process", "--dry-run")["planned"][0]["skipped"]


@pytest.mark.skipif(
    not (find_spec("graphiti_core") and find_spec("kuzu")),
    reason="graphiti-core and kuzu, which the extra [graphiti] installs, are not there",
)
def test_graphiti_s_model_reads_them(person: StoreUser) -> None:
    graph = person.home / ".session-memory" / "store" / "strategies" / "graphiti" / "main.kuzu"
    graph.parent.mkdir(parents=True)
    shutil.copyfile(empty_graph(), graph)
    with FakeOpenAI() as api:
        person.config(
            f"{EVERY_LENGTH}memories:\n  strategies: [graphiti]\n{FILTERING}"
            f"  graphiti: {{base_url: {api.url}, dimensions: {DIMENSIONS}}}\n"
        )
        done = person.run("process")
        assert done.returncode == 0, done.stdout + done.stderr
        sent = "\n".join(
            text_of(message.get("content"))
            for request in api.requests
            for message in request.body.get("messages", ())
        )
    assert [line for line in KEPT if line not in sent] == []
    assert SECRET not in sent


def test_what_a_rule_hides_or_a_person_forgot_reaches_no_model(person: StoreUser) -> None:
    person.session("7c", *login()[:2], assistant(thinking("The cake."), "Yes.", at=MONDAY + 9))
    person.config(f"memories:\n{FILTERING}sessions:\n  7c: {{quote: false}}\n")
    shown = read_by_a_model(person)
    assert "cake" not in shown
    assert "Reasoning: Nothing is left." in shown
    person.run("forget", "8f3a-login", "--yes")
    assert "Nothing is left" not in read_by_a_model(person)


def test_a_transcript_that_is_gone_or_was_rewritten_adds_nothing(person: StoreUser) -> None:
    person.config(f"memories:\n{FILTERING}")
    person.run("ingest")
    path = person.projects / "-srv-agent" / "8f3a-login.jsonl"
    whole = path.read_bytes()
    path.unlink()
    assert "Action: Grep(login)" in read_by_a_model(person)
    path.write_bytes(whole)
    assert lines_in(read_by_a_model(person)) == KEPT


def test_odd_arguments_are_a_short_line(tmp_path: Path) -> None:
    """More than anybody writes: names and values of any length, deep values, and line feeds."""
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    many = {f"key{number}": number for number in range(500)}
    odd = {"a" * 5000: 1, "text": "one\n\ntwo " * 5000, "deep": deep, "": None, **many}
    person = StoreUser(tmp_path / "user")
    person.session(
        "9b",
        user("Hello there.", at=MONDAY),
        assistant(("mcp__odd__call", odd), at=MONDAY + 1),
        assistant("Done.", at=MONDAY + 2),
    )
    person.config(f"memories:\n{FILTERING}")
    [line] = [line for line in lines_in(read_by_a_model(person)) if "mcp__odd" in line]
    assert len(line) < 1500
    assert 'text="one two one two' in line
    assert line.endswith(f", {len(odd) - MOST_PARAMETERS} more)")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("keep_reasoning: perhaps", "memories.filtering.keep_reasoning is 'perhaps', not true or"),
        ("parameters: every", "memories.filtering.parameters is 'every', not main or all"),
    ],
)
def test_a_wrong_value_is_named_and_adds_nothing(
    person: StoreUser, setting: str, problem: str
) -> None:
    person.config(f"memories:\n  filtering: {{{setting}}}\n")
    assert problem in " ".join(person.run("config").stdout.split())
    assert "Action: Grep(login)" in read_by_a_model(person)
    assert "Reasoning" not in read_by_a_model(person)


def test_a_long_transcript_is_read_around_the_conversation_alone(tmp_path: Path) -> None:
    """The reasoning before the first message of the second conversation is found behind 3 MB."""
    person = StoreUser(tmp_path / "user")
    filler = [user("Why?", at=MONDAY)]
    filler += [tool_result("x" * 30_000, at=MONDAY + 1) for _ in range(100)]
    later = MONDAY + 90_000
    person.session(
        "9b",
        *filler,
        assistant("Because.", at=MONDAY + 2),
        user("And now?", at=later),
        assistant(thinking("Now it is late."), "Go home.", at=later + 1),
    )
    person.config(f"memories:\n{FILTERING}")
    assert "Reasoning: Now it is late.\nAssistant: Go home." in read_by_a_model(person)


def test_reasoning_is_exported_once_though_an_export_takes_items_in_batches(tmp_path: Path) -> None:
    person = StoreUser(tmp_path / "user")
    steps = [
        assistant(thinking(f"Thought {n}."), "I look.", ("Grep", {"pattern": "x"}), at=MONDAY + n)
        for n in range(1, 121)
    ]
    person.session("9b", user("Look.", at=MONDAY), *steps)
    person.config(f"memories:\n{FILTERING}")
    thoughts = [line for line in lines_in(read_by_a_model(person)) if "Reasoning" in line]
    assert thoughts == [f"Reasoning: Thought {n}." for n in range(1, 121)]
