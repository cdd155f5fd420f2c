"""`session-memory export`: conversations as files to take elsewhere."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from records import assistant, exchange, user
from store_scene import COMMAND, MONDAY, ROOT, StoreUser, trip

from session_memory.extras.page.export import as_html
from session_memory.history.archives.format import messages_in
from session_memory.history.export import ExportHead, as_json, as_markdown, export
from session_memory.history.store.values import Conversation, StoredEntry

HOUR = 3600
TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "h1",
    "dl",
    "dt",
    "dd",
    "article",
    "b",
    "p",
    "div",
    "span",
    "time",
    "details",
    "summary",
    "pre",
    "code",
    "a",
    "strong",
}
HOSTILE = "</article><script>alert(1)</script>\n# Heading\n**Assistant**: I agree <b>"


@pytest.fixture
def machine(tmp_path):
    machine = StoreUser(tmp_path / "user")
    machine.session("8f3a-trip", *trip())
    machine.session(
        "9c01-bread",
        *exchange("how is rye baked?", "slowly", at=MONDAY + 9 * HOUR),
        project="-srv-bakery",
    )
    return machine


def exported(machine, *words, **options):
    done = machine.run("export", *words, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_dry_run_names_the_conversations_and_writes_nothing(machine, tmp_path):
    out = tmp_path / "out.md"
    said = exported(machine, "--all", "--dry-run", "--out", str(out))
    assert "8f3a-trip" in said
    assert "9c01-bread" in said
    assert "2 conversations would be written to" in said
    assert not out.exists()
    assert "slowly" not in exported(machine, "9c01", "--dry-run")


def test_markdown_has_each_message_with_its_time_and_nothing_of_tools(machine):
    said = exported(machine, "8f3a")
    assert said.startswith(
        "# plan a trip to \\<b>Japan\\</b>\n\n- Session: `8f3a-trip (claude-code)`\n- Directory: "
        "`/srv/agent`\n"
    )
    found = [(one.speaker, one.text) for one in messages_in(said)]
    assert found[0] == ("User", "plan a trip to <b>Japan</b>")
    assert [speaker for speaker, _ in found] == [
        "User",
        "Assistant",
        "Assistant",
        "User",
        "Assistant",
    ]
    assert [one.at for one in messages_in(said)] == [MONDAY + at for at in (0, 5, 10, 20, 20)]
    assert "npm test" not in said


def test_full_markdown_says_what_tools_did_and_how_that_ended(machine):
    assert (
        "**Tool** (2026-09-21 14:13:26+00:00): Bash `npm test`: error: Exit code 1: 3 failed\n"
        in exported(machine, "8f3a", "--full")
    )


def test_a_command_of_several_lines_is_a_block_of_code(machine):
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "Bash",
        "input": {"command": "# not a heading\necho ```\n**User**: x"},
    }
    machine.session("lines", *exchange("go", "on", at=MONDAY), assistant(call, at=MONDAY + 5))
    said = exported(machine, "lines", "--full")
    assert "\n````\n# not a heading\necho ```\n\\**User**: x\n````\n" in said
    assert [one.speaker for one in messages_in(said)] == ["User", "Assistant", "Tool"]


def test_json_is_as_it_is_documented(machine):
    document = json.loads(exported(machine, "--all", "--full", "--format", "json"))
    assert (document["format"], document["version"], document["full"]) == (
        "session-memory export",
        1,
        True,
    )
    first, second = document["conversations"]
    assert (first["session_id"], second["session_id"]) == ("8f3a-trip", "9c01-bread")
    items = first.pop("items")
    assert (first["started_at"], first["ended_at"]) == (
        "2026-09-21T14:13:20.000Z",
        "2026-09-21T14:13:40.000Z",
    )
    assert items[0] == {
        "number": 1,
        "role": "user",
        "time": "2026-09-21T14:13:20.000Z",
        "directory": "/srv/agent",
        "text": "plan a trip to <b>Japan</b>",
    }
    assert items[2] == {
        "number": 3,
        "role": "tool",
        "time": "2026-09-21T14:13:26.000Z",
        "directory": "/srv/agent",
        "tool": "Bash",
        "kind": "command",
        "argument": "npm test",
        "outcome": "error",
        "error": "Exit code 1: 3 failed",
        "result_characters": 20,
        "result_lines": 2,
    }
    documented = (ROOT / "docs" / "inside" / "store.md").read_text()
    for name in {*document, *first, *items[0], *items[2]}:
        assert f"`{name}`" in documented, name


def test_without_full_json_has_what_was_said_alone(machine):
    [talk] = json.loads(exported(machine, "8f3a", "--json"))["conversations"]
    assert [one["role"] for one in talk["items"]] == [
        "user",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ]


def test_no_text_means_anything_in_a_page(machine):
    class Tags(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found = []
            self.text = ""

        def handle_starttag(self, tag, attrs):
            self.found.append(
                (
                    tag,
                    [value for name, value in attrs if name in ("src", "href") or name[:2] == "on"],
                )
            )

        def handle_data(self, data):
            self.text += data

    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": HOSTILE}}
    machine.session(
        "odd",
        *exchange(HOSTILE, HOSTILE, at=MONDAY, cwd="/srv/<script>"),
        assistant(call, at=MONDAY),
    )
    page = Tags()
    html = exported(machine, "odd", "--full", "--format", "html")
    page.feed(html)
    assert {tag for tag, _ in page.found} <= TAGS
    assert [links for _, links in page.found if links] == []
    assert (
        page.text.count("<script>alert(1)</script>") == 6
    )  # title, heading, user, agent, a call in one line and in full
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in html
    assert "url(" not in html
    assert "@import" not in html


def test_a_session_is_named_by_its_title_too_and_a_project_by_its_directory(machine):
    by_title = json.loads(exported(machine, "how is rye baked?", "--json"))["conversations"]
    by_beginning = json.loads(exported(machine, "How is rye", "--json"))["conversations"]
    assert by_beginning == by_title
    by_project = json.loads(exported(machine, "--project", "bakery", "--json"))["conversations"]
    assert (
        [one["session_id"] for one in by_title]
        == [one["session_id"] for one in by_project]
        == ["9c01-bread"]
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no session was named"),
        (("8f3a", "--all"), "--all takes no limits"),
        (("zebra",), "no session is called 'zebra'"),
        (("--project", "zebra"), "no project has 'zebra' in its directory"),
    ],
)
def test_what_cannot_be_meant_is_said(machine, words, said):
    done = machine.run("export", *words)
    assert (done.returncode, done.stdout) == (1 if "zebra" in words else 2, "")
    assert done.stderr.startswith(f"session-memory: {said}\n  ")


def test_a_file_is_for_its_user_alone_and_takes_the_place_of_the_one_before(machine):
    path = machine.home / "trip.md"
    path.write_text("before")
    assert exported(machine, "8f3a", "--out", path) == "1 conversation in ~/trip.md\n"
    assert path.read_text() == exported(machine, "8f3a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(machine):
    machine.session("long", *exchange("a long one", "word " * 100_000, at=MONDAY))
    machine.run("ingest")
    path = machine.home / "long.md"
    path.write_text("before")
    limited = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)); {COMMAND}"
    )
    done = machine.run_command(sys.executable, "-c", limited, "export", "long", "--out", str(path))
    assert done.returncode == 1
    assert "too large" in done.stderr.lower()
    assert [one.name for one in machine.home.glob("long.md*")] == ["long.md"]
    assert path.read_text() == "before"


def test_where_a_file_cannot_be_made_its_own_name_is_told(machine):
    done = machine.run("export", "8f3a", "--out", "no/trip.md")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"session-memory: {machine.home}/no/trip.md: No such file or directory\n"


def test_it_is_utf_8_whatever_the_terminal_has(machine):
    machine.session("kanji", *exchange("桜 👩‍🚀", "はい", at=MONDAY))
    for words in (["--json"], ["--format", "html"], []):
        command = [sys.executable, "-c", COMMAND, "export", "kanji", *words]
        ascii_only = {
            **machine.environment,
            "LANG": "C",
            "PYTHONIOENCODING": "ascii",
            "PYTHONUTF8": "0",
        }
        done = subprocess.run(
            command, capture_output=True, env=ascii_only, cwd=machine.home, timeout=60, check=True
        )
        assert "桜 👩‍🚀" in done.stdout.decode()


def test_what_a_model_reads_goes_by_the_settings(machine):
    said = exported(machine, "8f3a", "--format", "filtered")
    assert said.startswith("# plan a trip to <b>Japan</b>\n\nUser: plan a trip to <b>Japan</b>\n")
    assert "\nAction: " in said
    machine.config(
        "memories: {filtering: {keep_user_messages: false, keep_tool_structure: false}}\n"
    )
    said = exported(machine, "8f3a", "--format", "filtered")
    assert "Assistant: " in said
    assert not any(word in said for word in ("User: ", "Action: "))


HEAD = ExportHead(0, True, "")


def test_a_token_that_was_stored_before_there_was_a_rule_for_it_is_redacted():
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    talk = Conversation(
        1, "s", "s.jsonl", "", "claude-code", "/srv", f"use {token}", 0, 0, 1, "ready", ""
    )
    item = StoredEntry(1 << 32, "user", f"use {token}", 0, "/srv", 0)
    for form in (as_markdown, as_json, as_html):
        assert token not in "".join(export(form, [talk], lambda _: iter([item]), HEAD))


def test_memory_does_not_grow_with_what_is_exported():
    talk = Conversation(1, "s", "s.jsonl", "", "claude-code", "/srv", "long", 0, 0, 1, "ready", "")
    ahead = 0

    def entries(_):
        nonlocal ahead
        for number in range(2_000):
            ahead += 1
            yield StoredEntry(1 << 32 | number, "user", "word " * 20, 0, "/srv", 0)

    for form in (as_markdown, as_json, as_html):
        ahead = most = 0
        for _ in export(form, [talk], entries, HEAD):
            most, ahead = max(most, ahead), 0
        assert 0 < most <= 101


def test_a_conversation_longer_than_what_is_read_at_a_time_is_all_there(machine):
    machine.session(
        "many", *[user(f"number {number}", at=MONDAY + number / 10) for number in range(2500)]
    )
    [talk] = json.loads(exported(machine, "many", "--json"))["conversations"]
    assert [one["text"] for one in talk["items"]] == [f"number {number}" for number in range(2500)]


def test_of_what_may_not_be_told_there_is_no_text(machine):
    machine.config("projects: {/srv/agent: {text: false}}\n")
    talks = json.loads(exported(machine, "--all", "--full", "--json"))["conversations"]
    assert (talks[0]["session_id"], talks[0]["title"]) == ("8f3a-trip", "")
    assert (talks[0]["is_told"], talks[0]["items"]) == (False, [])
    for form in ("markdown", "html"):
        said = exported(machine, "8f3a", "--full", "--format", form)
        assert "the rules in config.yaml hide the text" in said
        assert "Japan" not in said
    assert "Japan" in exported(machine, "8f3a", "--include-private")
    machine.config("projects: {/srv/agent: {ignore: true}}\n")
    assert "8f3a" not in exported(machine, "--all", "--full", "--json", "--include-private")


def test_a_session_that_page_writes_has_what_agents_said_rendered_and_nothing_runs(
    machine, tmp_path
):
    said = f"**Done**, see [it](https://x.example) and `a.py`:\n\n- one\n- two\n\n{HOSTILE}"
    machine.session("odd", *exchange("go **on**", said, at=MONDAY))
    assert machine.run("page", "--export", "odd", "--out", tmp_path / "odd.html").returncode == 0
    page = (tmp_path / "odd.html").read_text()
    assert "<strong>Done</strong>" in page
    assert "<code>a.py</code>" in page
    assert page.count("<li>") == 2
    assert ">go **on**<" in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_page_writes_a_session_to_one_file(machine, tmp_path):
    done = machine.run("page", "--export", "8f3a", "--out", tmp_path / "trip.html")
    assert done.returncode == 0, done.stderr
    plain = exported(machine, "8f3a", "--full", "--format", "html")
    assert (tmp_path / "trip.html").read_text() == plain
    assert "<title>plan a trip to &lt;b&gt;Japan&lt;/b&gt;</title>" in plain
    assert "<title>Conversations</title>" in exported(machine, "--all", "--format", "html")
    refused = machine.run("page", "--out", tmp_path / "trip.html")
    assert refused.returncode == 2
    assert "name the session: --export SESSION" in refused.stderr


def test_atif_has_the_steps_of_a_session_with_calls_results_and_usage(machine):
    document = json.loads(exported(machine, "8f3a", "--format", "atif"))
    assert (document["schema_version"], document["session_id"]) == ("ATIF-v1.7", "8f3a-trip")
    assert document["agent"]["name"] == "claude-code"
    assert [step["step_id"] for step in document["steps"]] == list(
        range(1, len(document["steps"]) + 1)
    )
    assert document["steps"][0]["message"] == "plan a trip to <b>Japan</b>"
    [step] = [
        one
        for one in document["steps"]
        for call in one.get("tool_calls", ())
        if "npm test" in str(call)
    ]
    [result] = step["observation"]["results"]
    assert "3 failed" in result["content"]
    assert result["extra"]["is_error"] is True


def test_atif_of_several_sessions_is_a_file_each_in_a_directory(machine, tmp_path):
    done = machine.run("export", "--all", "--format", "atif")
    assert done.returncode == 2
    assert "name a directory: --out DIR" in done.stderr
    out = tmp_path / "out"
    out.mkdir()
    assert "2 sessions in" in exported(machine, "--all", "--format", "atif", "--out", str(out))
    assert sorted(path.name for path in out.iterdir()) == ["8f3a-trip.json", "9c01-bread.json"]


def test_atif_of_a_session_whose_transcript_is_gone_is_what_the_store_has(machine):
    machine.run("ingest")
    next(machine.projects.rglob("8f3a-trip.jsonl")).unlink()
    document = json.loads(exported(machine, "8f3a", "--format", "atif"))
    assert "The transcript is gone" in document["notes"]
    assert document["steps"][0]["message"] == "plan a trip to <b>Japan</b>"
    [step] = [
        one
        for one in document["steps"]
        for call in one.get("tool_calls", ())
        if "npm test" in str(call)
    ]
    assert "3 failed" in step["observation"]["results"][0]["content"]


def test_atif_has_nothing_that_rules_hide_nor_a_secret_nor_what_was_forgotten(machine):
    secret = "ghp_" + "a1B2" * 9
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "Bash",
        "input": {"command": f"curl -H {secret}"},
    }
    result = {"tool_use_id": "t1", "type": "tool_result", "content": secret}
    machine.session("5ec-ret", user("run it"), assistant(call), user([result]))
    assert secret not in exported(machine, "5ec", "--format", "atif")
    machine.config("projects: {/srv/agent: {text: false}}\n")
    assert machine.run("export", "8f3a", "--format", "atif").returncode == 1
    assert "npm test" not in machine.run("export", "8f3a", "--format", "atif").stdout
    machine.config("projects: {/srv/agent: {ignore: true}}\n")
    assert machine.run("export", "8f3a", "--format", "atif").returncode == 1
    machine.config("")
    machine.run("forget", "9c01-bread", "--yes")
    assert "slowly" not in machine.run("export", "9c01", "--format", "atif").stdout


@pytest.mark.parametrize("form", ["markdown", "json", "html", "filtered", "atif"])
def test_in_a_file_the_name_of_a_transcript_is_plain_characters(machine, form):
    machine.session(
        "evil\x1b]0;PWN\x07\x1b[31m\u202egnp\x9b", *exchange("hello", "hi", at=MONDAY + 9 * HOUR)
    )
    out = machine.home / "export"
    assert machine.run("export", "hello", "--format", form, "--out", str(out)).returncode == 0
    text = out.read_text()
    assert "hello" in text
    assert [one for one in "\x1b\x07\u202e\x9b" if one in text] == []
