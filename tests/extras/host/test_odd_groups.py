"""Whatever a group's agent puts into its directory, the host continues with all groups."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from host_scene import HostMachine
from odd_files import NO_FILES
from records import exchange, new_id, write

from bench.scratch import remove_tree
from session_memory.history.archives.writer import archive_group_session
from session_memory.sessions.settings.host_layout import Group, Layout, held_home

BOMB = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi")
)
CONTENTS = {
    "20 MB": b"a: b\n" * 4_000_000,
    "alias bomb": BOMB.encode(),
    "recursive": b"a: &a\n  - *a\n",
    "deep nesting": b"a: " + b"[" * 30_000,
    "deep JSON": b'{"sessionId": ' + b"[" * 50_000,
    "wrong types": b'{"sessionId": {"a": 5}}',
    "half of a surrogate pair": b'{"sessionId": "\\ud800"}',
    "not UTF-8": b"\xff\xfe" * 100,
}


def written(content: bytes) -> Callable[[Path], None]:
    def write_to(path: Path) -> None:
        path.write_bytes(content)

    return write_to


KINDS = {
    **NO_FILES,
    **{name: written(content) for name, content in CONTENTS.items()},
}


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def places(group: Group) -> list[Path]:
    """Where a group's agent may put what a host could trip over."""
    own = Path(group.root, ".session-memory")
    names = ("config.yaml", "state/settings.json", "sessions/chat.json", "sessions/other.json")
    return [own / name for name in names]


@pytest.mark.slow
class TestARunningHost:
    def test_groups_with_odd_settings_and_pointers_are_served_as_usual(
        self, host: HostMachine, group: str
    ) -> None:
        began = time.monotonic()
        host.ask(group, "hello m-usual-0")
        usual = time.monotonic() - began
        for number, make in enumerate(KINDS.values()):
            for path in places(host.group(group)):
                path.parent.mkdir(exist_ok=True)
                clear(path)
                make(path)
            began = time.monotonic()
            ours = host.say(group, f"hello m-odd-{number}")
            others = host.say("main", f"hello m-main-{number}")
            assert f"m-odd-{number}" in host.reply_to(group, ours).text
            assert f"m-main-{number}" in host.reply_to("main", others).text
            assert time.monotonic() - began < 3 * usual + 30, make
        assert "Traceback" not in host.output()


class TestTheParts:
    """What the host does for a group: the update before a prompt, the archive, by settings that are its own."""

    @pytest.fixture
    def garden(self, layout: Layout) -> Group:
        return layout.group("garden")

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_archive_and_an_update_come_in_time(self, garden: Group, kind: str) -> None:
        session_id = new_id()
        write(Path(garden.transcript(session_id)), *exchange("hello", "hi"))
        for path in places(garden):
            path.parent.mkdir(exist_ok=True)
            KINDS[kind](path)
        began = time.process_time()
        assert archive_group_session(garden, session_id, time.time())
        with held_home(garden) as home:
            assert list(home.settings().faults) == []
            assert (
                garden.runtime.other_sessions(
                    home.sessions_dir, "", home.project_dir + "/x", "project"
                )
                == []
            )
        assert time.process_time() - began < 1

    def test_what_the_host_goes_by_lies_with_the_host(self, layout: Layout, garden: Group) -> None:
        Path(garden.root, ".session-memory/config.yaml").write_text(
            "assistant_name: Mallory\nscope: all\n"
        )
        Path(garden.root, ".session-memory/state").mkdir()
        compiled = {
            "stamps": [None],
            "values": {"assistant_name": "Mallory"},
            "rules": [],
            "faults": [],
            "projects": [],
        }
        Path(garden.root, ".session-memory/state/settings.json").write_text(json.dumps(compiled))
        assert garden.settings().assistant_name == "Assistant"
        own = Path(layout.root, ".session-memory/groups/garden.yaml")
        own.parent.mkdir(parents=True)
        own.write_text("assistant_name: Flora\n")
        assert garden.settings().assistant_name == "Flora"
        with held_home(self._with_transcripts(garden)) as home:
            assert home.settings().assistant_name == "Flora"

    def test_the_rules_of_the_host_count_whatever_the_group_says(
        self, layout: Layout, garden: Group
    ) -> None:
        Path(layout.config_file).parent.mkdir()
        Path(layout.config_file).write_text("sessions: {diary: {ignore: true}}\n")
        Path(garden.root, ".session-memory/config.yaml").write_text(
            "sessions: {diary: {ignore: false}}\n"
        )
        with held_home(self._with_transcripts(garden)) as home:
            assert home.settings().rule("diary").ignore

    def _with_transcripts(self, group: Group) -> Group:
        write(Path(group.transcript(new_id())), *exchange("hello", "hi"))
        return group
