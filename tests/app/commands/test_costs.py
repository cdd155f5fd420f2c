"""`session-memory costs`."""

from __future__ import annotations

import json
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from records import assistant, codex_exchange, codex_line, lines, new_id, user, write
from store_scene import MONDAY, StoreUser

DAY = 24 * 3600
FIXTURES = Path(__file__).parents[2] / "sessions" / "runtimes" / "fixtures"


def answer(
    id: str, at: float = MONDAY, model: str = "claude-opus-5", **usage: Any
) -> dict[str, Any]:
    return assistant("Done.", at=at, message_id=id, message={"model": model, "usage": usage})


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """A user with two sessions: one over two days, partly by a model without a price, and one elsewhere."""
    machine = StoreUser(tmp_path)
    usage = {
        "input_tokens": 1_000_000,
        "output_tokens": 100_000,
        "cache_read_input_tokens": 2_000_000,
    }
    first = [
        user("Bake the bread", at=MONDAY),
        answer("m1", **{**usage, "output_tokens": 1}),
        answer("m1", **usage),
    ]
    machine.session(
        "a", *first, answer("m2", MONDAY + DAY, "rye-1", input_tokens=7, output_tokens=3)
    )
    other = [
        user("Bake the rolls", at=MONDAY),
        answer("m3", input_tokens=1_000_000, output_tokens=0),
    ]
    for record in other:
        record["cwd"] = "/srv/rolls"
    machine.session("b", *other, project="-srv-rolls")
    return machine


def rows(machine: StoreUser, by: str, *words: str) -> dict[str, tuple[int, int, float | None]]:
    value = machine.result("costs", "--by", by, *words)
    return {
        row[by]: (row["input_tokens"], row["output_tokens"], row["dollars"])
        for row in value["rows"]
    }


def test_what_an_answer_took_counts_once_by_day_project_session_and_model(machine):
    first = (1_000_000, 100_000, 5 + 2.5 + 1)
    assert rows(machine, "session", "--session", "a") == {"a": (1_000_007, 100_003, first[2])}
    assert rows(machine, "project") == {
        "/srv/agent": (1_000_007, 100_003, 8.5),
        "/srv/rolls": (1_000_000, 0, 5.0),
    }
    assert rows(machine, "model") == {
        "claude-opus-5": (2_000_000, 100_000, 13.5),
        "rye-1": (7, 3, None),
    }
    assert rows(machine, "runtime") == {"claude-code": (2_000_007, 100_003, 13.5)}
    assert rows(machine, "day") == {
        "2026-09-22": (7, 3, None),
        "2026-09-21": (2_000_000, 100_000, 13.5),
    }
    assert rows(machine, "day", "--since", "2026-09-22") == {"2026-09-22": (7, 3, None)}
    assert rows(machine, "day", "--until", "2026-09-21") == {
        "2026-09-21": (2_000_000, 100_000, 13.5)
    }


def test_a_person_reads_a_table_with_a_sum_and_the_model_that_has_no_price(machine):
    said = machine.run("costs", "--by", "model").stdout
    assert [line.split() for line in said.splitlines()[1:4]] == [
        ["claude-opus-5", "2,000,000", "100,000", "2,000,000", "0", "13.50"],
        ["rye-1", "7", "3", "0", "0", "unknown"],
        ["all", "2,000,007", "100,003", "2,000,000", "0", "13.50+"],
    ]
    assert "no price is known for rye-1" in said
    machine.config("memories: {prices: {rye-1: {input: 1000000, output: 0}}}")
    assert rows(machine, "model")["rye-1"] == (7, 3, 7.0)


def test_a_session_that_began_with_a_command_is_shown_with_its_telling_request(machine):
    asked = "Count the rolls of the whole week"
    reply = answer("m4", input_tokens=5, output_tokens=1)
    machine.session("c", user("/mode", at=MONDAY), reply, user(asked, at=MONDAY + 60))
    said = [machine.run("costs", "--by", "session", "--session", "c"), machine.run("sessions")]
    for shown in said:
        [line] = [line for line in shown.stdout.splitlines() if line.startswith("c ")]
        assert line.endswith(f"  {asked}")


def test_days_with_another_number_of_hours_and_copied_transcripts_count_once(machine):
    for id, at in (
        ("n1", "2026-10-24T23:30"),
        ("n2", "2026-10-25T00:30"),
        ("n3", "2026-10-25T23:30"),
        ("n4", "2026-10-26T00:30"),
    ):
        moment = datetime.fromisoformat(at).replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
        machine.session(id, user("Bake", at=moment), answer(id, moment, input_tokens=1_000_000))
    copied = machine.projects / "-srv-agent" / "n1.jsonl"
    write(
        machine.projects / "-srv-other" / "copy.jsonl",
        *map(json.loads, copied.read_text().splitlines()),
    )
    done = machine.run(
        "costs", "--json", "--by", "day", "--since", "2026-10-01", TZ="Europe/Berlin"
    )
    days = {row["day"]: row["dollars"] for row in json.loads(done.stdout)["rows"]}
    assert days == {"2026-10-24": 5.0, "2026-10-25": 10.0, "2026-10-26": 5.0}


class PriceServer:
    """A server on loopback that answers with `content`."""

    def __init__(self, content: bytes) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if content else 500)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/prices.json"

    def __enter__(self) -> str:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self.address

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def listed(**prices: object) -> bytes:
    """Return a file in LiteLLM's format: these models, irrelevant ones, and entries that are not prices."""
    table: dict[str, object] = {
        f"model-{n}": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
        for n in range(20)
    }
    table |= {
        "sample_spec": {"input_cost_per_token": 0, "output_cost_per_token": 0},
        "odd": "x",
        "none": {},
    }
    table |= {"bad": {"input_cost_per_token": -1, "output_cost_per_token": True}}
    return json.dumps(table | prices).encode()


def test_prices_are_updated_from_a_list_and_one_s_own_come_first(machine):
    rye = {
        "input_cost_per_token": 2.0e-6,
        "output_cost_per_token": 4e-6,
        "cache_read_input_token_cost": 2e-7,
    }
    content = listed(
        **{
            "rye-1": rye,
            "claude-opus-5": {"input_cost_per_token": 7e-6, "output_cost_per_token": 0.0},
        }
    )
    with PriceServer(content) as address:
        assert machine.result("costs", "--update-prices", address) == {
            "prices": 22,
            "from": address,
        }
    assert rows(machine, "model")["rye-1"][2] == pytest.approx((7 * 2 + 3 * 4) / 1e6)
    assert rows(machine, "model")["claude-opus-5"][2] == pytest.approx(
        2 * 7 + 2 * 7
    )  # a cache without a price costs the same
    machine.config("memories: {prices: {rye-1: {input: 1000000, output: 0}}}")
    assert rows(machine, "model")["rye-1"][2] == 7.0


def test_what_is_no_list_of_prices_is_refused_and_the_old_ones_stay(machine):
    with PriceServer(
        listed(**{"rye-1": {"input_cost_per_token": 1e-6, "output_cost_per_token": 0.0}})
    ) as address:
        machine.run("costs", "--update-prices", address)
    before = rows(machine, "model")
    assert before["rye-1"][2] == pytest.approx(7e-6)
    few = b'{"a": {"input_cost_per_token": 1e-6}}'
    for content in (b"", b"<html>", b"[1, 2]", b"{}", few, b"[" * 100_000, listed()[:-5]):
        with PriceServer(content) as address:
            done = machine.run("costs", "--update-prices", address)
        assert (done.returncode, "the prices stay as they were" in done.stderr) == (1, True), (
            content[:40]
        )
    assert rows(machine, "model") == before


def test_only_a_web_address_is_asked_for_prices(machine, tmp_path):
    (tmp_path / "prices.json").write_bytes(listed())
    done = machine.run("costs", "--update-prices", f"file://{tmp_path}/prices.json")
    assert (done.returncode, "not an address" in done.stderr) == (1, True)


def test_a_damaged_update_counts_as_none(machine):
    (machine.home / ".session-memory").mkdir()
    (machine.home / ".session-memory" / "prices.json").write_text('{"prices": {"rye-1": 3}}')
    assert rows(machine, "model")["claude-opus-5"][2] == 13.5


def test_what_is_put_into_a_cache_costs_more_than_what_is_read(machine):
    written = {
        "cache_creation_input_tokens": 3_000_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 1_000_000},
    }
    machine.session("c", user("Bake", at=MONDAY), answer("m4", **written))
    [row] = machine.result("costs", "--by", "session", "--session", "c")["rows"]
    assert (row["cache_written_tokens"], row["dollars"]) == (3_000_000, 2 * 5 * 1.25 + 5 * 2)


def test_a_fork_costs_what_it_added_and_a_sub_agent_is_its_session_s(machine):
    copy = {**answer("m2", input_tokens=7), "forkedFrom": {"sessionId": "a", "messageUuid": "x"}}
    machine.session("0-fork", user("Again", at=MONDAY), copy, answer("m5", input_tokens=5))
    of_agents = machine.projects / "-srv-agent" / "b0" / "subagents"
    write(of_agents / "agent-1.jsonl", answer("s1", input_tokens=11))
    write(of_agents / "workflows" / "wf_2" / "agent-1.jsonl", answer("s2", input_tokens=100))
    machine.session("b0", user("Ask an agent", at=MONDAY), answer("m6", input_tokens=1))
    found = rows(machine, "session")
    assert (found["0-fork"][0], found["b0"][0], found["a"][0]) == (5, 112, 1_000_007)


def test_what_pi_says_of_the_price_holds_and_a_count_that_codex_tells_again_counts_once(machine):
    for runtime, folder in (
        ("pi", ".pi/agent/sessions/--srv-site--"),
        ("codex", ".codex/sessions/2026/11/20"),
    ):
        own = json.loads((FIXTURES / runtime / "expected.json").read_text())
        path = machine.home / folder / own["file_name"]
        path.parent.mkdir(parents=True)
        told = (
            (FIXTURES / runtime / "conversation.jsonl")
            .read_bytes()
            .replace(b'"total":0}', b'"total":0.25}')
        )
        counts = [line for line in told.splitlines(keepends=True) if b"token_count" in line]
        path.write_bytes(told + b"".join(counts).replace(b"10:00:08", b"10:00:50"))
    found = rows(machine, "model")
    assert found["fake-1"] == (100, 9, 0.25)
    assert found["gpt-6.1-sol"][:2] == (100, 9)


def test_what_sub_agents_of_codex_took_is_their_session_s_also_of_those_that_another_one_started(
    machine,
):
    day = machine.home / ".codex" / "sessions" / "2026" / "11" / "20"

    def rollout(id: str, read: int, **head: Any) -> None:
        taken = {"input_tokens": read, "cached_input_tokens": 0, "output_tokens": 1}
        count = {
            "info": {"last_token_usage": taken, "total_token_usage": {"total_tokens": read + 1}}
        }
        write(
            day / f"rollout-2026-11-20T10-00-00-{id}.jsonl",
            codex_line(
                "session_meta", {"id": id, "cwd": "/srv/site", "source": "cli", **head}, at=MONDAY
            ),
            *codex_exchange("Ask some agents", "Asked.", cwd="/srv/site", at=MONDAY),
            codex_line("turn_context", {"cwd": "/srv/site", "model": "gpt-6"}, at=MONDAY),
            codex_line("event_msg", {"type": "token_count", **count}, at=MONDAY + read),
        )

    def started_by(parent: str) -> dict[str, Any]:
        return {"source": {"subagent": {"thread_spawn": {"parent_thread_id": parent}}}}

    own, child, below, alone = (new_id() for _ in range(4))
    rollout(own, 1)
    rollout(child, 20, **started_by(own))
    rollout(below, 300, **started_by(child))
    rollout(alone, 4000, **started_by(new_id()))
    assert rows(machine, "session", "--session", own) == {own: (321, 3, None)}
    assert rows(machine, "session", "--project", "/srv/site") == {own: (321, 3, None)}
    assert machine.result("costs")["missing_transcripts"] == 0


def test_what_is_excluded_is_neither_named_nor_counted(machine):
    machine.config("projects: {/srv/rolls: {ignore: true}}")
    for private in ((), ("--include-private",)):
        assert set(rows(machine, "project", *private)) == {"/srv/agent"}
        assert machine.result("costs", *private)["total"]["input_tokens"] == 1_000_007


def test_a_session_without_text_counts_only_for_a_person_who_asks(machine):
    machine.config("projects: {/srv/rolls: {text: false}}")
    words = ("costs", "--by", "session")
    assert set(rows(machine, "session")) == {"a"}
    assert rows(machine, "session", "--include-private")["b"] == (1_000_000, 0, 5.0)
    assert "Bake the rolls" in machine.run(*words, "--include-private").stdout
    assert machine.run(*words, "--include-private", CLAUDECODE="1").returncode == 1


def test_damage_costs_itself_and_of_a_transcript_that_is_gone_it_says_so(machine):
    assert machine.result("costs")["missing_transcripts"] == 0
    path = machine.projects / "-srv-agent" / "a.jsonl"
    broken = b'{"type":"assistant","message":{"usage":{\n' + lines(
        answer("m9", input_tokens="many")
    )
    path.write_bytes(path.read_bytes() + broken)
    (machine.projects / "-srv-rolls" / "b.jsonl").unlink()
    assert rows(machine, "model") == {
        "claude-opus-5": (1_000_000, 100_000, 8.5),
        "rye-1": (7, 3, None),
    }
    assert "1 session without a transcript" in machine.run("costs").stdout


def test_what_there_is_nothing_of_is_said(tmp_path, machine):
    assert "no project has 'elsewhere'" in machine.run("costs", "--project", "elsewhere").stderr
    empty = StoreUser(tmp_path / "empty")
    assert "No transcript contains costs" in empty.run("costs").stdout
