"""A host from outside: its channels, the seed's practical checks, and commands to set one up."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from clients.claude import REPOSITORY
from fakes.fake_anthropic import FakeAnthropic
from host_scene import PROGRAM, Echo, HostMachine, about


class TestChannels:
    def test_the_socket_takes_messages_and_replies_are_followed(
        self, host: HostMachine, group: str
    ) -> None:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(60)
            host.wait(lambda: one.connect_ex(host.layout.socket) == 0, "socket")
            assert Path(host.layout.socket).stat().st_mode & 0o777 == 0o600
            lines = one.makefile("rw")

            def tell(value: object) -> None:
                lines.write(json.dumps(value) + "\n")
                lines.flush()

            tell({"follow": {"group": group, "after": 0}})
            tell({"say": {"group": group, "text": "plan m-bed-1", "id": "7", "sender": "Anna"}})
            assert json.loads(lines.readline()) == {"taken": {"group": group, "id": "7"}}
            reply = json.loads(lines.readline())["reply"]
            assert (reply["group"], reply["text"], reply["answers"]) == (group, "m-bed-1", ["7"])
            tell({"say": {"group": group, "text": "plan m-bed-1", "id": "7", "sender": "Anna"}})
            assert json.loads(lines.readline()) == {"taken": {"group": group, "id": "7"}}
            tell({"say": {"group": "nobody", "text": "hello"}})
            assert json.loads(lines.readline())["error"]["message"] == "there is no group 'nobody'"
            for text in (None, "", " ", 7):
                tell({"say": {"group": group, "text": text}})
                assert (
                    "text is empty or not a string"
                    in json.loads(lines.readline())["error"]["message"]
                )
            lines.write("no json\n")
            lines.flush()
            assert json.loads(lines.readline())["error"]["message"].startswith("invalid request")
        assert len(about(host, "m-bed-1")) == 1

    def test_a_channel_is_one_file_and_what_it_could_not_deliver_comes_again(
        self, host: HostMachine, group: str
    ) -> None:
        host.stop()
        directory = Path(host.layout.root, "channels")
        directory.mkdir(exist_ok=True)
        (directory / "pigeon.py").write_text(PIGEON)
        host.ledger.connection.execute(
            "UPDATE registered_groups SET jid = 'pigeon:loft' WHERE folder = ?", (group,)
        )  # as `host add --chat` would have it
        host.start()
        delivered = Path(host.layout.root, "delivered")
        host.wait(
            lambda: delivered.exists() and delivered.read_text().count("m-bed-1") == 2, "delivery"
        )
        assert delivered.read_text().splitlines() == ["failed m-bed-1", "arrived m-bed-1"]
        (directory / "pigeon.py").unlink()


PIGEON = """
import asyncio
from pathlib import Path

DELIVERED = Path(__file__).parent.parent / "delivered"


class Channel:
    PREFIX = "pigeon:"

    def __init__(self, chats):
        self.chats = chats

    async def serve(self):
        self.chats.receive("pigeon:loft", "plan m-bed-1", sender="7", sender_name="Anna", message_id="first")
        await asyncio.Event().wait()

    async def deliver(self, reply):
        is_first = not DELIVERED.exists()
        with DELIVERED.open("a") as file:
            file.write(f"{'failed' if is_first else 'arrived'} {reply.text}\\n")
        if is_first:
            raise OSError("no wind")
"""


class TestThePracticalChecks:
    CHECKS = (
        "SELECT group_folder, session_id FROM sessions;",
        "SELECT chat_jid, MAX(timestamp) FROM messages GROUP BY chat_jid;",
        "SELECT jid, name, folder, trigger_pattern FROM registered_groups;",
    )

    def test_they_run_as_printed(self) -> None:
        group = "main"
        with closing(HostMachine(FakeAnthropic()).init(group)) as host:
            self.check(host, group)

    def check(self, host: HostMachine, group: str) -> None:
        host.say(group, "plan the bed")
        prompt = host.ledger.next_prompt(group)
        assert prompt is not None
        host.sessions.set(group, "s1")
        host.ledger.answer([host.ledger.begin(prompt, "s1")], "Planned.")
        jid = host.ledger.group(group).jid
        pointers, activity_of, groups = (dict_of(host, check) for check in self.CHECKS)
        assert pointers[group] == host.sessions.get(group)
        assert activity_of[jid] == host.ledger.latest_replies([jid], 1)[0].timestamp
        assert groups[jid] == group
        state = dict_of(host, "SELECT key, value FROM router_state")
        assert set(state) == {"last_timestamp", "last_agent_timestamp"}
        assert jid in json.loads(str(state["last_agent_timestamp"]))

    def test_they_are_those_of_the_seed(self) -> None:
        seed = REPOSITORY / "../shared/seeds/nanoclaw-memory-model.md"
        if not seed.exists():
            pytest.skip("the seeds are not there")
        assert tuple(re.findall(r"```sql\n(.*?)\n```", seed.read_text(), re.DOTALL)) == self.CHECKS


def dict_of(host: HostMachine, query: str) -> dict[object, object]:
    return {row[0]: row[1] for row in host.ledger.connection.execute(query)}


class TestTheThreeCommands:
    @pytest.mark.slow
    @pytest.mark.usefixtures("bundled_cli")
    def test_they_lead_from_nothing_to_groups_that_talk_to_a_model(self) -> None:
        lines = (REPOSITORY / "docs" / "use" / "host.md").read_text().splitlines()
        commands = [line.strip() for line in lines if line.startswith("    session-memory host ")]
        assert [command.split()[2] for command in commands] == ["init", "run", "say"]
        with Echo() as api:
            machine = HostMachine(api)
            api.replies = ["I am the gardener."]
            program = machine.root / "bin" / "session-memory"
            program.parent.mkdir()
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "$PROGRAM" "$@"\n')
            program.chmod(0o755)
            environment = {
                **machine.environment,
                "PATH": f"{program.parent}:{os.defpath}",
                "PROGRAM": PROGRAM,
            }
            # A reader takes a moment between the second and the third.
            running = "while ! session-memory host status --at ~/agents | grep -q ': running'; do sleep 0.1; done"
            with subprocess.Popen(
                ["/bin/sh", "-c", "\n".join([*commands[:2], running, commands[2]])],
                env=environment,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
            ) as shell:
                try:
                    assert shell.stdout is not None
                    assert any("I am the gardener." in line for line in shell.stdout)
                finally:
                    os.killpg(shell.pid, signal.SIGKILL)
                    machine.close()
