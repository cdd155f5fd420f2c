"""No byte passes from one group to another, whatever an agent requests or puts in its directory.

Every group has texts that only it may see. Each group tries each tool and each access to files
against each other group: with hostile names, with links in all places that an agent can write to,
and with links that come and go during the host's work.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from host_scene import Box, GroupDir
from records import assistant, exchange, record, user
from share import some

from session_memory.app.tools.values import RefusedError
from session_memory.common.errors import SessionMemoryError
from session_memory.extras.host._audiences import tools_of_group
from session_memory.extras.host._callbacks import archive_callback, updates_callback
from session_memory.extras.host._ipc import answer_requests, write_snapshots
from session_memory.extras.host.administration import HostAdministration
from session_memory.history.store.ingest.intake import take_in
from session_memory.history.store.location import find_location
from session_memory.history.store.sqlite.engine import SqliteStore

GROUPS = ("main", "alpha", "beta")
PAIRS = [*itertools.permutations(GROUPS, 2)]
CONFINED = [(asking, other) for asking, other in PAIRS if asking != "main"]
TASKS = [
    {"id": f"task-{name}", "group_folder": name, "prompt": f"SECRET-OF-{name}"} for name in GROUPS
]
FOLDERS = [{"jid": f"chat:{name}", "folder": name, "name": f"SECRET-OF-{name}"} for name in GROUPS]
TRIES = some(10, 6)
GENEROUS_SECONDS = 60
NUMBERS = itertools.count()  # of sessions that look for the first time


def mark(group: str) -> str:
    """What stands in everything that only `group` may see."""
    return f"SECRET-OF-{group}"


def earlier(group: str) -> str:
    """Return the name of a group's earlier session, without a mark, since an agent may guess it."""
    return f"talk of {group}"


def fill(host: GroupDir, group: str) -> None:
    """Gives a group an active session, an earlier one with its archive, instructions, and a request
    of its agent."""
    host.add(group)
    host.begin(group, *exchange(f"{mark(group)} asked earlier", f"{mark(group)} answered earlier"))
    assert not host.call(group, "clear_session", name=earlier(group)).is_error
    session_id = host.begin(
        group, user(f"{mark(group)} asks now"), assistant(f"{mark(group)} answers now")
    )
    with host.transcript(group, session_id).open("a") as file:
        file.write(
            json.dumps(
                record("custom-title", customTitle=f"{mark(group)} title", sessionId=session_id)
            )
            + "\n"
        )
    place = host.layout.group(group)
    Path(place.instructions).write_text(f"{mark(group)} instructions")
    Path(place.root, ".session-memory/config.yaml").write_text(f"assistant_name: {mark(group)}\n")
    Path(place.memory_home.sessions_dir, "job.json").write_text(
        json.dumps({"sessionId": session_id})
    )
    host.ledger.update(group, name=f"{mark(group)} chat", trigger=f"{mark(group)} trigger")
    assert not host.call(group, "schedule_task", **task_of(group)).is_error
    write_snapshots(host.layout, group, host.sessions, TASKS, FOLDERS)


def task_of(group: str) -> dict[str, str]:
    return {
        "prompt": f"{mark(group)} task",
        "schedule_type": "interval",
        "schedule_value": "3600000",
    }


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupDir]:
    # nobody writes here
    monkeypatch.setattr("session_memory.extras.host._callbacks.wait_until_quiet", lambda path: None)
    host = GroupDir(tmp_path / "host")
    for group in GROUPS:
        fill(host, group)
    location = find_location(str(host.root), {"HOME": str(tmp_path)})
    store = SqliteStore(location.database)
    assert take_in(store, location).problems == []
    store.close()
    yield host
    host.close()


def belongings(host: GroupDir, group: str) -> dict[str, Any]:
    """All files of a group with their content, links as what they say, and its rows in the database."""
    found: dict[str, Any] = {}
    for top in (f"groups/{group}", f"data/sessions/{group}", f"data/ipc/{group}"):
        for path in sorted((host.root / top).rglob("*")):
            name = str(path.relative_to(host.root))
            if path.is_symlink():
                found[name] = os.readlink(path)
            elif path.is_file():
                found[name] = path.read_bytes()
    found["registration"], found["tasks"] = (
        host.ledger.group(group),
        host.ledger.schedule.tasks(group),
    )
    found["active"], found["history"] = host.sessions.get(group), host.sessions.get_history(group)
    return found


def holds(belongings: dict[str, Any], text: str) -> list[str]:
    return [
        name
        for name, content in belongings.items()
        if isinstance(content, bytes) and text.encode() in content
    ]


def hostile_names(host: GroupDir, other: str) -> list[str]:
    """What an agent could try to get at the sessions of another group: names, ids, paths, and what
    looks like them."""
    place = host.layout.group(other)
    active = host.sessions.get(other) or ""
    (cleared,) = host.sessions.get_history(other)
    (task,) = host.ledger.schedule.tasks(other)
    alike = other.translate(str.maketrans({"a": "а", "e": "е", "p": "р"}))  # Cyrillic letters
    return [
        other,
        "..",
        f"../{other}",
        f"a/../../{other}",
        f"../../{other}/.claude",
        "/etc/passwd",
        host.layout.database,
        active,
        active[:8],
        active.upper(),
        str(cleared.id),
        cleared.session_id,
        cleared.name,
        task.id,
        task.id.upper(),
        f"{task.id}' OR '1'='1",
        task.jid,
        place.root,
        place.transcript(active),
        f"{active}.jsonl",
        f"{other}/{active}",
        f"conversations/../../{other}",
        f"{active}\x00",
        f"\x00{active}",
        f"{other}\u200b",
        f"\u202e{other}",
        alike,
        f"{active}/",
        f"./{active}",
        "~",
        "*",
        "%2e%2e%2f" + other,
        f"' OR group_folder='{other}",
        f"{cleared.id} OR 1=1",
        f"{cleared.id}.0",
        f" {cleared.id}",
        "é" * 300,
        "x" * 300,
        "\ud800",
        "",
        " ",
    ]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("asking", "other"), PAIRS)
def test_hostile_names_lead_no_tool_into_another_group(
    host: GroupDir, asking: str, other: str
) -> None:
    before = belongings(host, other)
    told = []
    # The others of main do reach into groups.
    tools = [
        one
        for one in tools_of_group(is_main=False)
        if asking != "main" or one.audience == "everyone"
    ]
    names = hostile_names(host, other)
    for name in random.sample(names, some(len(names), 8) if (asking, other) == PAIRS[0] else 8):
        for tool in tools:
            for argument in tool.schema["properties"]:
                required = {key: "x" for key in tool.schema["required"]}
                told.append(host.call(asking, tool.name, **{**required, argument: name}).text)
            told.append(host.call(asking, tool.name, **{"group": other, "path": name}).text)
            told.append(host.call(asking, tool.name, **{**task_of(asking), "group": other}).text)
        if asking != "main":
            told.append(host.call(asking, "update_task", id=name, prompt="x", status="paused").text)
    if asking == "main":
        assert any(mark(other) in text for text in told), "main sees all"
    else:
        assert [text for text in told if mark(other) in text] == []
    assert belongings(host, other) == before


def test_the_tools_of_main_are_not_there_for_another_group(host: GroupDir) -> None:
    of_main = {tool.name for tool in tools_of_group(is_main=True)} - {
        tool.name for tool in tools_of_group(is_main=False)
    }
    for asking, other in CONFINED:
        before = belongings(host, other)
        for name in of_main:
            with pytest.raises(KeyError):
                host.call(asking, name, group=other, trigger="")
            box = Box(host, asking)
            box.ask(f"r-{other}-{name}", name, group=other, trigger="")
            assert box.answer() == 1
            assert box.response(f"r-{other}-{name}")["text"].startswith("This tool does not exist.")
            assert name not in box.response(f"r-{other}-{name}")["text"]
        own = HostAdministration(host.layout, asking)
        for attempt in (
            own.chats,
            lambda own=own: own.register_group("new", "", "", ""),
            lambda own=own, other=other: own.update_group(other, {"trigger": ""}),
            lambda own=own, other=other: own.schedule(other, "x", "interval", "3600000", "group"),
        ):
            with pytest.raises(RefusedError, match="only the agent of main"):
                attempt()
        assert belongings(host, other) == before


def test_no_tool_and_no_snapshot_tells_of_another_group_unasked(host: GroupDir) -> None:
    for asking in GROUPS[1:]:
        found = belongings(host, asking)
        assert len(holds(found, mark(asking))) >= 6
        told = [
            host.call(asking, "list_sessions").text,
            host.call(
                asking, "search_sessions", query="SECRET OF asked answered earlier now", limit=50
            ).text,
            *[
                host.call(asking, "read_session", name=one.id).text
                for one in host.backend(asking).sessions()
            ],
            host.call(asking, "read_session", name="nobody").text,
            host.call(asking, "list_tasks").text,
            host.call(
                asking, "schedule_task", **{**task_of(asking), "schedule_value": "7200000"}
            ).text,
        ]
        assert all(mark(asking) in text for text in told)
        for other in set(GROUPS) - {asking}:
            assert not any(mark(other) in text or other in text for text in told)
            assert holds(found, mark(other)) == []


def test_main_sees_all_groups_in_its_snapshots_and_its_list(host: GroupDir) -> None:
    listed = host.call("main", "list_sessions").text
    write_snapshots(host.layout, "main", host.sessions, TASKS, FOLDERS)
    snapshots = belongings(host, "main")
    for group in GROUPS:
        assert f'"{earlier(group)}" (id ' in listed
        assert f'"{mark(group)} title" (id ' in listed
        assert len(holds(snapshots, mark(group))) >= 2


# Every place that the agent of a group can write to and the host looks at, and what in another
# group it would lead to.
PLACES: dict[str, Callable[[Any, Any], tuple[str, str]]] = {
    "conversations": lambda own, other: (own.conversations_dir, other.conversations_dir),
    "the group's directory": lambda own, other: (own.root, other.root),
    "its home": lambda own, other: (own.home, other.home),
    "the runtime's directory": lambda own, other: (own.config_dir, other.config_dir),
    "projects": lambda own, other: (f"{own.config_dir}/projects", f"{other.config_dir}/projects"),
    "the project": lambda own, other: (
        os.path.dirname(own.transcript("x")),
        os.path.dirname(other.transcript("x")),
    ),
    "ipc": lambda own, other: (own.ipc_dir, other.ipc_dir),
    "tasks": lambda own, other: (own.tasks_dir, other.tasks_dir),
    "responses": lambda own, other: (own.responses_dir, other.responses_dir),
    "the names of its sessions": lambda own, other: (
        own.memory_home.sessions_dir,
        other.memory_home.sessions_dir,
    ),
    "the memory's directory": lambda own, other: (
        own.memory_home.memory_dir,
        other.memory_home.memory_dir,
    ),
}


def ask(callback: Any, **event: Any) -> str:
    """What a callback tells the runtime."""
    return json.dumps(asyncio.run(callback(event, None, None)))


def do_everything(host: GroupDir, group: str) -> list[str]:
    """Do everything that a host does for the agent of a group; return the texts that it can read.

    This includes its tools, files and the runtime's requests."""

    def tried(work: Callable[[], object]) -> None:
        try:
            work()
        except (SessionMemoryError, OSError):
            pass  # refused: the host says so, not to the agent

    told = []
    tried(lambda: write_snapshots(host.layout, group, host.sessions, TASKS, FOLDERS))
    for tool, arguments in (
        ("list_sessions", {}),
        ("read_session", {"name": earlier(group)}),
        ("read_session", {"name": host.sessions.get(group) or "x"}),
        ("search_sessions", {"query": "SECRET asked answered", "limit": 50}),
        ("clear_session", {"name": f"{mark(group)} cleared"}),
        ("resume_session", {"id": f"{mark(group)} cleared", "save_as": f"{mark(group)} saved"}),
        ("resume_session", {"id": earlier(group), "save_as": f"{mark(group)} saved"}),
        ("list_tasks", {}),
        ("schedule_task", task_of(group)),
    ):
        told.append(host.call(group, tool, **arguments).text)
    tried(lambda: answer_requests(host.layout, group, host.backend(group)))
    place, session_id = host.layout.group(group), host.sessions.get(group) or "x"
    told.append(
        ask(updates_callback(place, f"chat{next(NUMBERS)}"), prompt="hello", session_id=session_id)
    )
    told.append(ask(archive_callback(place), session_id=session_id))
    return told


def test_a_search_in_the_store_finds_what_the_group_may_see(host: GroupDir) -> None:
    for asking in GROUPS:
        found = host.call(asking, "search_sessions", query="SECRET asks answers", limit=50).text
        assert "in conversation " in found
        for group in GROUPS:
            assert (mark(group) in found) == (asking in ("main", group))


def test_an_agent_is_told_what_its_own_group_did_elsewhere_and_nothing_of_another(
    host: GroupDir,
) -> None:
    told = ask(updates_callback(host.layout.group("alpha"), "chat"), prompt="hello", session_id="x")
    assert mark("alpha") in told
    assert mark("beta") not in told


@pytest.mark.parametrize("place", PLACES)
def test_a_link_into_another_group_is_not_followed(host: GroupDir, place: str) -> None:
    """Into another confined group and, with `--all`, into that of main."""
    for asking, other in [("alpha", "beta"), ("beta", "main")][: some(2, 1)]:
        own, target = PLACES[place](host.layout.group(asking), host.layout.group(other))
        before = belongings(host, other)
        os.rename(own, own + ".old")
        os.symlink(target, own)
        told = do_everything(host, asking)
        os.unlink(own)
        os.rename(own + ".old", own)
        assert [text for text in told if mark(other) in text] == []
        assert belongings(host, other) == before
        assert holds(belongings(host, asking), mark(other)) == []


@pytest.mark.parametrize(("asking", "other"), [("alpha", "main"), ("beta", "alpha")])
def test_links_in_the_place_of_single_files_are_not_followed(
    host: GroupDir, asking: str, other: str
) -> None:
    own, place = host.layout.group(asking), host.layout.group(other)
    active, others_active = host.sessions.get(asking) or "", host.sessions.get(other) or ""
    (archive,) = host.archives(other)
    before = belongings(host, other)
    for path, target in (
        (own.transcript(active), place.transcript(others_active)),
        (f"{own.conversations_dir}/2026-01-01-x.md", f"{place.conversations_dir}/{archive}"),
        (f"{own.conversations_dir}/.lock", place.instructions),
        (f"{own.conversations_dir}/.{active}.tmp", place.instructions),
        (f"{own.ipc_dir}/session_history.json", f"{place.ipc_dir}/session_history.json"),
        (f"{own.ipc_dir}/current_tasks.json", place.instructions),
        (f"{own.tasks_dir}/r1.json", f"{place.ipc_dir}/current_tasks.json"),
        (f"{own.responses_dir}/r2.json", place.instructions),
    ):
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(target, path)
    Path(own.tasks_dir, "r2.json").write_text('{"tool": "list_sessions"}')
    told = do_everything(host, asking)
    assert [text for text in told if mark(other) in text] == []
    assert belongings(host, other) == before
    assert holds(belongings(host, asking), mark(other)) == []


@contextmanager
def swapped(own: str, target: str) -> Iterator[None]:
    """Exchanges the directory `own` and a link to `target` again and again, as fast as it goes,
    until the block ends.

    Each exchange is one step, so that one of the two is always there.
    """
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    exchange = 2
    here, link = own.encode(), f"{own}.link".encode()
    os.symlink(target, link)
    is_over = threading.Event()
    rounds = itertools.count()

    def swap() -> None:
        while not is_over.is_set():
            for _ in range(2):
                rename(-100, here, -100, link, exchange)
                next(rounds)
                time.sleep(0)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        deadline = time.monotonic() + GENEROUS_SECONDS
        while next(rounds) < 20:
            assert time.monotonic() < deadline, "nothing was swapped"
            time.sleep(0)
        yield
    finally:
        is_over.set()
        thread.join()
        os.unlink(link)


@pytest.fixture(scope="module")
def can_swap(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where the system cannot exchange two files in one step."""
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        pytest.skip("this system has no renameat2")


@pytest.mark.sample(4)
@pytest.mark.usefixtures("can_swap")
@pytest.mark.parametrize("place", PLACES)
def test_a_link_that_comes_and_goes_during_the_call_is_not_followed(
    host: GroupDir, place: str
) -> None:
    own, target = PLACES[place](host.layout.group("alpha"), host.layout.group("beta"))
    before = belongings(host, "beta")
    told = []
    with swapped(own, target):
        for number in range(TRIES):
            told += do_everything(host, "alpha")
            if number % 10 == 0:
                host.sessions.set("alpha", host.sessions.get_history("alpha")[-1].session_id)
    assert [text for text in told if mark("beta") in text] == []
    assert belongings(host, "beta") == before
    assert holds(belongings(host, "alpha"), mark("beta")) == []


@pytest.mark.usefixtures("can_swap")
def test_the_swapping_would_be_seen_if_paths_were_trusted(host: GroupDir) -> None:
    own, target = PLACES["the group's directory"](
        host.layout.group("alpha"), host.layout.group("beta")
    )
    deadline = time.monotonic() + GENEROUS_SECONDS
    text = ""
    with swapped(own, target):
        while mark("beta") not in text:
            assert time.monotonic() < deadline, "the link was never met"
            with suppress(OSError):
                text = "".join(path.read_text() for path in Path(own, "conversations").glob("*.md"))


def test_a_file_that_is_being_written_is_not_exchanged_for_one_of_another_group(
    host: GroupDir,
) -> None:
    own, other = host.layout.group("alpha"), host.layout.group("beta")
    session_id = host.begin("alpha", *exchange(f"{mark('alpha')} asks", "and hears") * 200)
    (archive,) = host.archives("beta")
    body, link = f"{own.conversations_dir}/.{session_id}.tmp.body", f"{own.conversations_dir}/link"
    put: list[str] = []
    is_over = threading.Event()

    def put_link() -> None:
        while not is_over.is_set():
            if os.path.exists(body) and not os.path.islink(body):
                os.symlink(f"{other.conversations_dir}/{archive}", link)
                os.rename(link, body)
                put.append(body)

    thread = threading.Thread(target=put_link)
    thread.start()
    try:
        deadline = time.monotonic() + GENEROUS_SECONDS
        while len(put) < 10:
            assert time.monotonic() < deadline, "the file was never met"
            host.sessions.set("alpha", session_id)
            host.call("alpha", "clear_session", name="again")
    finally:
        is_over.set()
        thread.join()
    assert holds(belongings(host, "alpha"), mark("beta")) == []
    assert holds(belongings(host, "alpha"), f"{mark('alpha')} asks") != []
