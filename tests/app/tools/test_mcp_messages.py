"""The tools as an MCP server: the answer to each message of the protocol."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

from session_memory import __version__
from session_memory.app.tools._stdio_server import LINE_BYTES, serve
from session_memory.app.tools.call import Served, ToolResult
from session_memory.app.tools.definitions import TOOLS

NAMES = [tool.name for tool in TOOLS]


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def echo(name: str, arguments: object) -> ToolResult:
    return ToolResult(f"{name} {json.dumps(arguments)}", name == "clear_session")


ECHO = Served(TOOLS, echo)


def answers(line: bytes) -> Any:
    """What is answered to one line; None for nothing."""
    sink = io.BytesIO()
    serve(ECHO, io.BytesIO(line + b"\n"), sink)
    return json.loads(sink.getvalue() or "null")


def ask(method: str, params: Any = None, **more: Any) -> Any:
    """What is answered to one request."""
    message = {"jsonrpc": "2.0", "id": 7, "method": method, **more}
    return answers(
        json.dumps(message if params is None else {**message, "params": params}).encode()
    )


class TestHandshake:
    def test_a_version_that_we_speak_is_taken(self) -> None:
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
            result = ask("initialize", {"protocolVersion": version, "capabilities": {}})["result"]
            assert result["protocolVersion"] == version
            known = {"name": "session-memory", "title": "Session memory", "version": __version__}
            assert (result["serverInfo"], result["capabilities"]) == (known, {"tools": {}})

    def test_any_other_version_is_answered_with_the_latest_that_begins_with_a_handshake(
        self,
    ) -> None:
        for version in ("2026-07-28", "1999-01-01", None, 7):
            assert (
                ask("initialize", {"protocolVersion": version})["result"]["protocolVersion"]
                == "2025-11-25"
            )

    def test_a_ping_is_answered(self) -> None:
        assert ask("ping") == {"jsonrpc": "2.0", "id": 7, "result": {}}

    def test_the_probe_of_a_newer_client_that_we_do_not_know_yet_names_the_versions_that_we_do(
        self,
    ) -> None:
        error = ask(
            "server/discover",
            {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}},
        )["error"]
        assert (error["code"], error["data"]["requested"]) == (-32022, "2030-01-01")
        assert "2026-07-28" in error["data"]["supported"]


class TestWithoutHandshake:
    def test_a_client_discovers_what_there_is(self) -> None:
        result = ask("server/discover", {"_meta": META})["result"]
        assert result["supportedVersions"][0] == "2026-07-28"
        assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "session-memory"

    def test_a_call_is_answered_in_the_form_that_it_came_in(self) -> None:
        params = {"name": "list_sessions", "arguments": {}}
        old, new = (
            ask("tools/call", params)["result"],
            ask("tools/call", {**params, "_meta": META})["result"],
        )
        assert old == {"content": [{"type": "text", "text": "list_sessions {}"}], "isError": False}
        assert {**old, "resultType": "complete", "_meta": new["_meta"]} == new

    def test_values_and_their_schemas_are_for_clients_of_2026_07_28(self) -> None:
        served = Served(
            TOOLS, lambda name, arguments: ToolResult("none", data={"note": "none", "sessions": []})
        )
        results = []
        for meta in ({}, {"_meta": META}):
            for method, params in (("tools/list", {}), ("tools/call", {"name": "list_sessions"})):
                sink = io.BytesIO()
                message = {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": method,
                    "params": {**params, **meta},
                }
                serve(served, io.BytesIO(json.dumps(message).encode() + b"\n"), sink)
                results.append(json.loads(sink.getvalue())["result"])
        old_list, old, new_list, new = results
        assert not any("outputSchema" in tool for tool in old_list["tools"])
        assert "structuredContent" not in old
        assert {tool["name"]: tool.get("outputSchema") for tool in new_list["tools"]} == {
            tool.name: tool.output for tool in TOOLS
        }
        assert (new["structuredContent"], new["content"]) == (
            {"note": "none", "sessions": []},
            old["content"],
        )

    def test_a_request_without_the_capabilities_of_its_client_is_refused(self) -> None:
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        assert ask("tools/list", {"_meta": meta})["error"]["code"] == -32602

    def test_a_ping_is_not_known_any_more(self) -> None:
        assert ask("ping", {"_meta": META})["error"]["code"] == -32601


class TestMessages:
    def test_the_tools_are_listed_as_they_are_defined(self) -> None:
        listed = ask("tools/list")["result"]["tools"]
        assert [(one["name"], one["inputSchema"]) for one in listed] == [
            (tool.name, tool.schema) for tool in TOOLS
        ]
        read_only = {one["name"]: one["annotations"]["readOnlyHint"] for one in listed}
        assert [name for name in NAMES if not read_only[name]] == [
            "clear_session",
            "resume_session",
            "remember",
            "forget",
        ]

    def test_a_tool_that_refuses_is_a_result_that_says_so(self) -> None:
        result = ask("tools/call", {"name": "clear_session"})["result"]
        assert result == {
            "content": [{"type": "text", "text": "clear_session null"}],
            "isError": True,
        }

    def test_an_unknown_tool_and_an_unknown_method_are_errors(self) -> None:
        assert ask("tools/call", {"name": "rm"})["error"] == {
            "code": -32602,
            "message": "no tool 'rm'",
        }
        assert ask("tools/call", {"name": ["list_sessions"]})["error"]["code"] == -32602
        assert ask("resources/list")["error"] == {
            "code": -32601,
            "message": "no method resources/list",
        }

    def test_what_is_no_json_is_said_to_be_none(self) -> None:
        for line in (b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": 1', b"nonsense"):
            found: Any = answers(line)
            assert (found["id"], found["error"]["code"]) == (None, -32700)

    def test_what_is_no_request_is_said_to_be_none(self) -> None:
        odd_ids = b'{"id": null, "method": "ping"}', b'{"id": {}, "method": "x"}'
        for line in (b"7", b"[]", b"{}", b'{"id": 1}', *odd_ids):
            found: Any = answers(line)
            assert found["error"]["code"] == -32600

    def test_notifications_and_answers_are_not_answered(self) -> None:
        assert answers(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}') is None
        assert answers(b'{"jsonrpc": "2.0", "id": 3, "result": {}}') is None

    def test_several_messages_at_once_are_answered_at_once(self) -> None:
        batch = [
            {"id": 1, "method": "ping"},
            {"method": "notifications/initialized"},
            {"id": "b", "method": "ping"},
        ]
        found: Any = answers(json.dumps(batch).encode())
        assert [one["id"] for one in found] == [1, "b"]

    def test_a_line_without_end_is_left_out_and_the_next_one_answered(self) -> None:
        sink = io.BytesIO()
        serve(
            ECHO,
            io.BytesIO(b"x" * (2 * LINE_BYTES) + b"\n\n" + b'{"id": 1, "method": "ping"}\n'),
            sink,
        )
        assert [json.loads(line).get("id") for line in sink.getvalue().splitlines()] == [None, 1]

    def test_a_last_line_without_end_ends_the_server(self) -> None:
        sink = io.BytesIO()
        serve(ECHO, io.BytesIO(b"x" * (LINE_BYTES + 5)), sink)
        assert json.loads(sink.getvalue())["error"]["code"] == -32700

    def test_lone_surrogates_do_not_end_the_server(self) -> None:
        sink = io.BytesIO()
        serve(
            Served(TOOLS, lambda name, arguments: ToolResult("\ud800")),
            io.BytesIO(b'{"id":1,"method":"tools/call","params":{"name":"list_sessions"}}\n'),
            sink,
        )
        assert json.loads(sink.getvalue())["result"]["content"][0]["text"] == "?"

    def test_a_slow_call_blocks_neither_the_next_nor_other_requests(self) -> None:
        fast_is_done, order = threading.Event(), []

        def wait(name: str, arguments: object) -> ToolResult:
            if name == "search_sessions":
                assert fast_is_done.wait(10)
            else:
                fast_is_done.set()
            order.append(name)
            return ToolResult(name)

        lines = [
            json.dumps({"id": name, "method": "tools/call", "params": {"name": name}})
            for name in ("search_sessions", "list_sessions")
        ]
        sink = io.BytesIO()
        serve(
            Served(TOOLS, wait),
            io.BytesIO("\n".join([*lines, '{"id": 1, "method": "ping"}']).encode()),
            sink,
        )
        assert order == ["list_sessions", "search_sessions"]
        assert {json.loads(line)["id"] for line in sink.getvalue().splitlines()} == {*order, 1}

    def test_more_calls_than_run_at_once_are_all_answered(self) -> None:
        line = b'{"id": %d, "method": "tools/call", "params": {"name": "list_sessions"}}\n'
        sink = io.BytesIO()
        serve(ECHO, io.BytesIO(b"".join([line % number for number in range(100)])), sink)
        assert sorted(json.loads(line)["id"] for line in sink.getvalue().splitlines()) == [
            *range(100)
        ]

    def test_calls_that_change_something_run_in_the_order_in_which_they_came_and_lookups_overtake_them(
        self,
    ) -> None:
        names = ["clear_session", "remember", "forget", "resume_session"] * 5
        looked_up, order = threading.Event(), []

        def wait(name: str, arguments: Any) -> ToolResult:
            if name == "list_sessions":
                looked_up.set()
            else:
                assert looked_up.wait(10)
                order.append((arguments["number"], name))
            return ToolResult(name)

        calls = [
            ("tools/call", {"name": name, "arguments": {"number": n}})
            for n, name in enumerate(names)
        ]
        calls += [("tools/call", {"name": "list_sessions"}), ("ping", {})]
        lines = [
            json.dumps({"id": n, "method": method, "params": given})
            for n, (method, given) in enumerate(calls)
        ]
        sink = io.BytesIO()
        serve(Served(TOOLS, wait), io.BytesIO("\n".join(lines).encode()), sink)
        assert order == [*enumerate(names)]
        ids = [json.loads(line)["id"] for line in sink.getvalue().splitlines()]
        assert [id for id in ids if id < len(names)] == [*range(len(names))]
        assert sorted(ids) == [*range(len(calls))]

    def test_a_cancelled_call_is_not_answered_and_does_not_begin_if_it_waits(self) -> None:
        begun, released = [], threading.Event()

        def wait(name: str, arguments: object) -> ToolResult:
            begun.append(name)
            assert released.wait(10)
            return ToolResult(name)

        def lines() -> Iterator[bytes]:
            for id, name in ((1, "clear_session"), (2, "forget"), (3, "list_sessions")):
                yield (
                    json.dumps(
                        {"id": id, "method": "tools/call", "params": {"name": name}}
                    ).encode()
                    + b"\n"
                )
            while begun != ["clear_session", "list_sessions"] and len(begun) < 2:
                time.sleep(0.01)
            for id in (1, 2, 99, None, {}):
                told = {"method": "notifications/cancelled", "params": {"requestId": id}}
                yield json.dumps(told).encode() + b"\n"
            yield b'{"id": 4, "method": "ping"}\n'
            released.set()

        sink = io.BytesIO()
        source = lines()
        serve(
            Served(TOOLS, wait),
            cast("BinaryIO", SimpleNamespace(readline=lambda size: next(source, b""))),
            sink,
        )
        assert sorted(begun) == ["clear_session", "list_sessions"]
        assert {json.loads(line)["id"] for line in sink.getvalue().splitlines()} == {3, 4}

    def test_a_call_that_fails_unforeseen_is_an_error_and_ends_nothing(self) -> None:
        def fail(name: str, arguments: object) -> ToolResult:
            raise KeyError("text")

        line = b'{"id": %d, "method": "tools/call", "params": {"name": "list_sessions"}}\n'
        sink = io.BytesIO()
        serve(
            Served(TOOLS, fail), io.BytesIO(b"".join([line % number for number in range(20)])), sink
        )
        found = [json.loads(line)["error"]["code"] for line in sink.getvalue().splitlines()]
        assert found == [-32603] * 20
