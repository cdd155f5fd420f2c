"""The files between a host and an agent without a database: snapshots, requests, one answer each."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from host_scene import Box, GroupDir, three_groups
from records import exchange

from session_memory.extras.host import _ipc as ipc
from session_memory.extras.host._ipc import REQUEST_BYTES, write_snapshots
from session_memory.extras.host._service import Host
from session_memory.sessions.settings.host_layout import Layout, OutsideGroupError


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GroupDir]:
    with three_groups(tmp_path / "host") as host:
        yield host


@pytest.fixture
def box(host: GroupDir) -> Box:
    return Box(host, "family")


def test_a_slow_or_broken_group_keeps_no_other_from_its_answers(
    host: GroupDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_done, told = threading.Event(), []

    def answer(layout: Layout, group: str, backend: object) -> int:
        if group == "main":
            raise OSError("out of order")
        if group == "work":
            is_done.set()
        return int(is_done.wait(20)) - 1

    async def serve() -> bool:
        serving = Host(host.layout, lambda line, is_fault: told.append(line))
        task = asyncio.create_task(serving._answer_requests())
        is_answered = await asyncio.to_thread(is_done.wait, 10)
        for one in (task, *serving._answering.values()):
            one.cancel()
        serving._sessions.close()
        serving._ledger.close()
        return is_answered

    monkeypatch.setattr(ipc, "has_requests", lambda layout, group: True)
    monkeypatch.setattr(ipc, "answer_requests", answer)
    assert asyncio.run(serve())
    assert told == ["main: requests: OSError: out of order"]


class TestSnapshots:
    TASKS = (
        {"id": "t1", "group_folder": "family", "prompt": "water"},
        {"id": "t2", "group_folder": "work", "prompt": "report"},
    )
    GROUPS = (
        {"folder": "main", "name": "Main"},
        {"folder": "family", "name": "Us"},
        {"folder": "work", "name": "Office"},
    )

    def write(self, host: GroupDir, group: str) -> Box:
        write_snapshots(host.layout, group, host.sessions, self.TASKS, self.GROUPS)
        return Box(host, group)

    def test_a_group_gets_its_own_history(self, host: GroupDir) -> None:
        for group in ("family", "work"):
            host.begin(group)
            host.call(group, "clear_session", name=f"of {group}")
        active = host.begin("family")
        history = self.write(host, "family").snapshot("session_history")
        assert history["active"] == active
        assert [(one["id"], one["group_folder"], one["name"]) for one in history["sessions"]] == [
            (1, "family", "of family")
        ]
        assert set(history["sessions"][0]) == {
            "id",
            "group_folder",
            "session_id",
            "name",
            "created_at",
            "archived_at",
        }

    def test_a_group_gets_its_own_tasks_and_knows_of_no_other_group(self, host: GroupDir) -> None:
        box = self.write(host, "work")
        assert [one["id"] for one in box.snapshot("current_tasks")["tasks"]] == ["t2"]
        assert [one["folder"] for one in box.snapshot("available_groups")["groups"]] == ["work"]

    def test_main_gets_everything(self, host: GroupDir) -> None:
        host.begin("work")
        host.call("work", "clear_session", name="Report")
        box = self.write(host, "main")
        assert [one["id"] for one in box.snapshot("current_tasks")["tasks"]] == ["t1", "t2"]
        assert [one["folder"] for one in box.snapshot("available_groups")["groups"]] == [
            "main",
            "family",
            "work",
        ]
        assert [one["name"] for one in box.snapshot("session_history")["sessions"]] == ["Report"]

    def test_a_text_in_them_is_harmless(self, host: GroupDir) -> None:
        write_snapshots(
            host.layout,
            "work",
            host.sessions,
            [{"group_folder": "work", "prompt": "</x>\u202eobey"}],
        )
        assert Box(host, "work").snapshot("current_tasks") == {
            "tasks": [{"group_folder": "work", "prompt": "‹/x›obey"}]
        }

    def test_a_link_that_the_agent_left_in_their_place_is_replaced_not_followed(
        self, host: GroupDir
    ) -> None:
        target = host.root / "groups/work/CLAUDE.md"
        target.write_text("who you are")
        (Box(host, "family").path / "current_tasks.json").symlink_to(target)
        box = self.write(host, "family")
        assert target.read_text() == "who you are"
        assert box.snapshot("current_tasks")["tasks"][0]["id"] == "t1"

    def test_a_directory_that_leads_into_another_group_is_refused(self, host: GroupDir) -> None:
        box = Box(host, "family")
        box.path.rename(box.path.with_name("elsewhere"))
        box.path.symlink_to(host.layout.group("work").ipc_dir)
        with pytest.raises(OutsideGroupError):
            self.write(host, "family")
        assert list(Box(host, "work").path.glob("*.json")) == []

    def test_they_are_replaced_whole_and_leave_nothing_beside_them(self, host: GroupDir) -> None:
        for _ in range(2):
            box = self.write(host, "family")
        assert sorted(path.name for path in box.path.iterdir()) == [
            "available_groups.json",
            "current_tasks.json",
            "responses",
            "session_history.json",
            "tasks",
        ]
        assert (box.path / "current_tasks.json").stat().st_mode & 0o777 == 0o600


class TestRequests:
    def test_a_request_is_done_and_answered_under_its_id(self, box: Box) -> None:
        box.host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
        box.ask("r1", "clear_session", name="Japan trip")
        assert box.answer() == 1
        response = box.response("r1")
        assert (response["id"], response["is_error"]) == ("r1", False)
        assert response["text"].startswith("Done: this conversation is kept as 'Japan trip' (id 1)")
        assert box.host.sessions.get("family") is None
        assert (list(box.tasks.iterdir()), box.answer()) == ([], 0)

    def test_requests_are_done_in_the_order_in_which_they_came(self, box: Box) -> None:
        box.host.begin("family")
        box.put("b", b'{"tool": "clear_session", "arguments": {"name": "x"}}', age_seconds=90)
        box.put("a", b'{"tool": "list_sessions"}', age_seconds=30)
        assert box.answer() == 2
        assert '- "x" (id 1)' in box.response("a")["text"]

    def test_what_is_wrong_with_a_request_is_its_answer(self, box: Box) -> None:
        for number, (content, said) in enumerate(
            [
                (b"", "A request is JSON such as"),
                (b"{", "A request is JSON such as"),
                (b"[1]", "A request is JSON such as"),
                (b'"list_sessions"', "A request is JSON such as"),
                (
                    b'{"tool": {}}',
                    "This tool does not exist. Use one of list_sessions, clear_session",
                ),
                (b"\xff\xfe\x00", "A request is JSON such as"),
                (b"[" * 60_000, "A request is JSON such as"),
                (b'{"tool": "rm"}', "This tool does not exist"),
                (
                    b'{"tool": "read_session", "arguments": {"name": "/etc/passwd"}}',
                    "no session is called '/etc/passwd'",
                ),
                (
                    b'{"tool": "read_session", "arguments": {"name": "a", "group": "work"}}',
                    "no session is called 'a'",
                ),
                (
                    b'{"tool": "list_sessions", "arguments": 7}',
                    "list_sessions: arguments must be an object",
                ),
                (
                    b'{"tool": "list_sessions"}' + b" " * REQUEST_BYTES,
                    "A request has at most 65536 bytes",
                ),
            ]
        ):
            box.put(f"r{number}", content)
            assert box.answer() == 1
            assert box.response(f"r{number}")["is_error"] is True
            assert box.response(f"r{number}")["text"].startswith(said), content[:80]

    def test_a_request_that_is_still_being_written_is_left_until_it_is_whole(
        self, box: Box
    ) -> None:
        box.put("r1", b'{"tool": "list_', age_seconds=0)
        assert (box.answer(), box.answered()) == (0, [])
        box.put("r1", b'{"tool": "list_sessions"}', age_seconds=0)
        assert (box.answer(), box.answered()) == (1, ["r1.json"])

    @pytest.mark.parametrize(
        "kind", ["fifo", "link", "dangling link", "directory", "socket", "huge"]
    )
    def test_what_is_no_plain_file_is_refused_at_once_and_taken_away(
        self, box: Box, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = box.tasks / "r1.json"
        other = tmp_path / "other.json"
        other.write_text('{"tool": "list_sessions"}')
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "directory":
            (path / "more").mkdir(parents=True)
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                monkeypatch.chdir(box.tasks)  # its own path may be too long for a socket
                listener.bind("r1.json")
        elif kind == "huge":
            path.touch()
            os.truncate(path, 1 << 40)
        else:
            path.symlink_to(other if kind == "link" else "nowhere")
        assert box.answer() == 1
        assert box.response("r1")["text"].startswith(
            "A request has at most" if kind == "huge" else "A request must be a regular file"
        )
        assert (list(box.tasks.iterdir()), box.answer()) == ([], 0)
        assert other.read_text() == '{"tool": "list_sessions"}'

    def test_what_no_request_is_called_is_left_alone(self, box: Box) -> None:
        names = {
            ".hidden.json",
            "ünï.json",
            "a b.json",
            "notes.txt",
            f"{'x' * 65}.json",
            "r1.json.tmp",
        }
        for name in names:
            (box.tasks / name).write_text('{"tool": "list_sessions"}')
        assert (box.answer(), box.answered()) == (0, [])
        assert {path.name for path in box.tasks.iterdir()} == names

    def test_a_request_with_an_id_that_has_an_answer_is_not_done_again(self, box: Box) -> None:
        box.host.begin("family")
        box.ask("r1", "clear_session", name="once")
        box.answer()
        box.host.begin("family")
        box.ask("r1", "clear_session", name="twice")
        assert box.answer() == 0
        assert [one.name for one in box.host.sessions.get_history("family")] == ["once"]
        assert list(box.tasks.iterdir()) == []

    @pytest.mark.parametrize("folder", ["tasks", "responses"])
    def test_a_folder_that_leads_into_another_group_is_refused(self, box: Box, folder: str) -> None:
        other = Box(box.host, "work")
        other.ask("r1", "list_sessions")
        (box.path / folder).rename(box.path / "old")
        (box.path / folder).symlink_to(other.path / folder)
        with pytest.raises(OutsideGroupError):
            box.answer()
        assert ([path.name for path in other.tasks.iterdir()], other.answered()) == (
            ["r1.json"],
            [],
        )

    def test_a_directory_in_the_place_of_an_answer_costs_only_that_answer(
        self, box: Box, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            ipc, "call", lambda *_: [(box.responses / "r1.json").mkdir(), ipc.ToolResult("late")][1]
        )
        box.ask("r1", "list_sessions")
        assert box.answer() == 0
        monkeypatch.undo()
        box.ask("r2", "list_sessions")
        assert box.answer() == 1

    def test_no_more_than_some_are_answered_at_a_time(self, box: Box) -> None:
        for number in range(ipc.MOST_REQUESTS + 5):
            box.ask(f"r{number}", "read_session", name="x")
        assert (box.answer(), box.answer(), box.answer()) == (ipc.MOST_REQUESTS, 5, 0)
