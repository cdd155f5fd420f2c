"""The extension in the real Pi: what the model receives, what stays unsaid, and what its package
holds."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from clients.pi import (
    CUSTOM_TYPE,
    EXTENSION,
    INTRODUCTION,
    REPOSITORY,
    Pi,
    activity,
    records,
    told_in,
)
from records import PiSession, register

from session_memory import __version__

MIGRATION = REPOSITORY.parent / "shared" / "captures" / "pi" / "migration"


class TestPlainUser:
    def test_a_prompt_is_told_once_what_another_session_of_the_project_did(self, pi: Pi) -> None:
        pi.run("how do I deploy this?")
        second = pi.run("what is left to do?")
        third = pi.run("and then?", "--continue")
        line = '- "how do I deploy this?" (just now, 2 messages): last: "ECHO[1]: how do I deploy this?"'
        assert second.told == [line]
        assert third.told == []
        (message,) = told_in(pi.sessions()[1])
        assert {key: message[key] for key in ("customType", "content", "display")} == {
            "customType": CUSTOM_TYPE,
            "content": INTRODUCTION + line,
            "display": True,
        }
        assert told_in(pi.sessions()[0]) == []
        assert not (pi.state_dir() / "hook.log").exists()

    def test_what_was_told_is_not_told_back(self, pi: Pi) -> None:
        pi.run("first question", "--name", "deploying")
        pi.run("second question")
        back = pi.run("and now?", "--session", str(pi.sessions()[0]))
        (line,) = back.told
        assert line.startswith('- "second question" (just now, 2 messages): last: "ECHO[2]: ')

    def test_a_session_goes_by_its_name_and_a_new_name_is_no_news(self, pi: Pi) -> None:
        pi.run("how do I deploy this?", "--name", "deploying")
        with pi.rpc() as rpc:
            assert rpc.prompt("what is left to do?").told[0].startswith('- "deploying" (')
            pi.execute(
                "--session",
                str(pi.sessions()[0]),
                "--name",
                "deployed",
                "--model",
                "fake/fake-1",
                "-p",
                "thanks",
            )
            assert (
                rpc.prompt("and then?")
                .told[0]
                .startswith('- "deployed" (just now, 2 messages): last: "ECHO')
            )

    def test_a_fork_repeats_nothing(self, pi: Pi) -> None:
        pi.run("how do I deploy this?")
        with pi.rpc() as rpc:
            assert len(rpc.prompt("what is left to do?").told) == 1
            rpc.send("clone")
            assert rpc.prompt("who writes the changelog?").told == []
        with pi.rpc("--session", str(pi.sessions()[0])) as rpc:
            told = rpc.prompt("anything else?").told
        # both begin with the request that the fork copied; its own one is the fork's last
        assert sorted(line.partition(" (")[0] for line in told) == [
            '- "what is left to do? → who writes the…"',
            '- "what is left to do?"',
        ]

    def test_a_compaction_repeats_nothing(self, pi: Pi) -> None:
        pi.configure(compaction={"keepRecentTokens": 1})
        pi.run("how do I deploy this?")
        with pi.rpc() as rpc:
            assert len(rpc.prompt("what is left to do?").told) == 1
            rpc.prompt("BIGUSAGE")
            assert rpc.prompt("and then?").told == []
        assert "compaction" in [record["type"] for record in records(pi.sessions()[1])]
        with pi.rpc("--session", str(pi.sessions()[0])) as rpc:
            (line,) = rpc.prompt("anything else?").told
            assert '"what is left to do?"' in line
            assert rpc.prompt("and now?").told == []

    def test_a_branch_that_was_left_is_not_told(self, pi: Pi, tmp_path: Path) -> None:
        """`/tree` has no command of its own in RPC: the session manager does what it does."""
        with pi.rpc() as rpc:
            rpc.prompt("one")
        (path,) = pi.sessions()
        manager = f"{pi.command[1].partition('/dist/')[0]}/dist/core/session-manager.js"
        script = tmp_path / "branch.mjs"
        script.write_text(
            f"import {{ SessionManager }} from {json.dumps(manager)};\n"
            f"const session = SessionManager.open({json.dumps(str(path))});\n"
            "const fork = session.getLeafId();\n"
            "const say = (text) => session.appendMessage({ role: 'user', content: text, timestamp: Date.now() });\n"
            "say('the wrong way'); session.branch(fork); say('the right way');\n"
        )
        subprocess.run([pi.command[0], script], env=pi.environment, check=True)
        (line,) = pi.run("what is left to do?").told
        assert "3 messages" in line
        assert "wrong" not in line

    def test_a_session_without_a_file_is_told_as_well(self, pi: Pi) -> None:
        pi.run("how do I deploy this?")
        assert len(pi.run("what is left to do?", "--no-session").told) == 1

    @pytest.mark.parametrize("version", [1, 2])
    def test_an_old_file_that_pi_writes_anew_is_neither_repeated_nor_lost(
        self, pi: Pi, version: int
    ) -> None:
        session = PiSession(version=version, cwd=str(pi.project), at=time.time() - 60)
        for number in range(3):
            session.exchange(f"question {number}", f"answer {number}", at=time.time() - 50 + number)
        pi.run("where are we?")
        path = session.write(pi.sessions()[0].parent)
        with pi.rpc("--session", str(pi.sessions()[-1])) as rpc:
            assert len(rpc.prompt("what is left to do?").told) == 1
            inode = path.stat().st_ino
            pi.run("how do I deploy this?", "--session", str(path))
            assert path.stat().st_ino == inode
            assert records(path)[0]["version"] == 3
            (line,) = rpc.prompt("and then?").told
        assert '(just now, 2 messages): "how do I deploy this?"' in line

    @pytest.mark.skipif(
        not MIGRATION.is_dir(), reason="no captured session files beside the repository"
    )
    @pytest.mark.parametrize("name", ["v1", "v2", "v3torn"])
    def test_captured_old_files_that_pi_writes_anew_are_not_told_again(
        self, pi: Pi, name: str
    ) -> None:
        pi.run("where are we?")
        (pi.home / ".session-memory" / "config.yaml").write_text("first_sight_hours: 48\n")
        path = pi.sessions()[0].parent / f"2025-11-01T10-00-00-000Z_{name}.jsonl"
        yesterday = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 24 * 3600))
        captured = (
            (MIGRATION / f"{name}.jsonl").read_text().replace("/srv/lab/pi/proj", str(pi.project))
        )
        path.write_text(captured.replace("2025-11-01", yesterday))
        with pi.rpc("--session", str(pi.sessions()[-1])) as rpc:
            assert rpc.prompt("what is left to do?").told == []  # it is over six hours old
            pi.execute(
                "--session",
                str(path),
                "--name",
                "opened",
                "--model",
                "fake/fake-1",
                "-p",
                "hello again",
            )
            (line,) = rpc.prompt("and then?").told
        assert line.startswith('- "opened" (just now, 2 messages): "hello again"')


class TestNamedSessions:
    @pytest.mark.parametrize("memory_dir", [".session-memory", ".volute", ".mind"])
    def test_the_sessions_of_an_agent_home_hear_of_each_other_by_name(
        self, pi: Pi, memory_dir: str
    ) -> None:
        register(pi.project, pi.home)
        sessions_dir = pi.project / memory_dir / "pi-sessions"
        pi.run("how do I deploy this?", "--session-dir", str(sessions_dir / "discord"))
        second = pi.run("what is left to do?", "--session-dir", str(sessions_dir / "main"))
        third = pi.run("and then?", "--session-dir", str(sessions_dir / "main"), "--continue")
        assert second.told[0].startswith(
            '- discord (just now, 2 messages): "how do I deploy this?"'
        )
        assert third.told == []
        (own,) = (sessions_dir / "main").glob("*.jsonl")
        assert len(told_in(own)) == 1
        assert (pi.state_dir(pi.project) / "cursors" / "main.json").is_file()
        assert not (pi.state_dir() / "cursors").exists()

    def test_a_session_directory_may_be_given_relative_to_where_pi_starts(self, pi: Pi) -> None:
        register(pi.project, pi.home)
        pi.run("how do I deploy this?", "--session-dir", ".mind/pi-sessions/discord")
        assert (
            len(pi.run("what is left to do?", "--session-dir", ".mind/pi-sessions/main").told) == 1
        )


class TestModes:
    def test_every_prompt_of_a_session_under_rpc_is_told_what_is_new(self, pi: Pi) -> None:
        with pi.rpc() as rpc:
            assert rpc.prompt("nothing yet?").told == []
            pi.run("how do I deploy this?")
            assert len(rpc.prompt("and now?").told) == 1
            assert rpc.prompt("and then?").told == []
            assert rpc.close() == 0

    def test_a_host_that_uses_the_sdk_is_told_as_well(self, pi: Pi, tmp_path: Path) -> None:
        pi.run("how do I deploy this?")
        script = tmp_path / "host.mjs"
        script.write_text(
            "import { createAgentSession, DefaultResourceLoader, getAgentDir } from "
            f"{json.dumps(pi.command[1].partition('/dist/')[0] + '/dist/index.js')};\n"
            "const resourceLoader = new DefaultResourceLoader({ cwd: process.cwd(), agentDir: getAgentDir(), "
            f"additionalExtensionPaths: [{json.dumps(str(EXTENSION))}] }});\n"
            "await resourceLoader.reload();\n"
            "const { session } = await createAgentSession({ resourceLoader });\n"
            "await session.prompt('what is left to do?');\n"
            "session.dispose();\n"
        )
        pi.configure(packages=[], defaultProvider="fake", defaultModel="fake-1")
        subprocess.run(
            [pi.command[0], script], cwd=pi.project, env=pi.environment, check=True, timeout=60
        )
        assert len(activity(pi.model.requests[-1])) == 1


class TestPackage:
    def test_its_npm_tarball_holds_what_it_needs_and_loads(
        self, bare_pi: Pi, tmp_path: Path
    ) -> None:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("there is no npm here to pack with")
        command = [npm, "pack", "--json", "--pack-destination", str(tmp_path)]
        packed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
        (tarball,) = json.loads(packed.stdout)
        paths = [file["path"] for file in tarball["files"]]
        folders = {path.partition("/")[0] for path in paths if "/" in path}
        assert folders == {"hooks", "scripts", "session_memory", "skills"}
        assert not [path for path in paths if path.endswith((".pyc", ".jsonl", "/python"))]
        subprocess.run(["tar", "xzf", tmp_path / tarball["filename"], "-C", tmp_path], check=True)
        bare_pi.execute("install", str(tmp_path / "package"))
        bare_pi.run("how do I deploy this?")
        turn = bare_pi.run("what is left to do?")
        assert len(turn.told) == 1
        assert turn.request is not None
        assert "<name>sessions</name>" in json.dumps(turn.request.body)

    def test_its_version_is_that_of_the_python_package(self) -> None:
        assert json.loads((REPOSITORY / "package.json").read_text())["version"] == __version__
