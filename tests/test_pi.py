"""The extension in the real Pi: what the model receives, what stays unsaid, and that nothing brings pi down."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.fake_llm import FakeLLM
from pi_builders import PiSession
from pi_cli import CUSTOM_TYPE, EXTENSION, INTRODUCTION, REPOSITORY, Pi, Rpc, activity, pi_command, records, told_in

from session_memory import __version__

MIGRATION = REPOSITORY.parent / "shared" / "captures" / "pi" / "migration"


@pytest.fixture(scope="module")
def fake_llm() -> Iterator[FakeLLM]:
    with FakeLLM() as model:
        yield model


@pytest.fixture
def bare_pi(tmp_path: Path, fake_llm: FakeLLM) -> Pi:
    """The real pi as it comes."""
    if pi_command() is None:
        pytest.skip("there is no npm here to install Pi with")
    fake_llm.reset()
    return Pi(tmp_path, fake_llm)


@pytest.fixture
def pi(bare_pi: Pi) -> Pi:
    """The real pi with our package."""
    bare_pi.use_package()
    return bare_pi


class TestPlainUser:
    def test_a_prompt_is_told_once_what_another_session_of_the_project_did(self, pi: Pi) -> None:
        pi.run("how do I deploy this?")
        second = pi.run("what is left to do?")
        third = pi.run("and then?", "--continue")
        line = '- how do I deploy this? (just now, 2 messages): "how do I deploy this?"; last: "ECHO[1]: how do I deploy this?"'
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
        assert line.startswith('- second question (just now, 2 messages): "second question"; last: "ECHO[2]: ')

    def test_a_session_goes_by_its_name_and_a_new_name_is_no_news(self, pi: Pi) -> None:
        pi.run("how do I deploy this?", "--name", "deploying")
        with pi.rpc() as rpc:
            assert rpc.prompt("what is left to do?").told[0].startswith("- deploying (")
            pi.execute(
                "--session", str(pi.sessions()[0]), "--name", "deployed", "--model", "fake/fake-1", "-p", "thanks"
            )
            assert rpc.prompt("and then?").told[0].startswith('- deployed (just now, 2 messages): "thanks"')

    def test_a_fork_repeats_nothing(self, pi: Pi) -> None:
        pi.run("how do I deploy this?")
        with pi.rpc() as rpc:
            assert len(rpc.prompt("what is left to do?").told) == 1
            rpc.send("clone")
            assert rpc.prompt("and then?").told == []
        with pi.rpc("--session", str(pi.sessions()[0])) as rpc:
            told = rpc.prompt("anything else?").told
        assert sorted(line.partition(": ")[2].partition(";")[0] for line in told) == [
            '"and then?"',
            '"what is left to do?"',
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
    def test_an_old_file_that_pi_writes_anew_is_neither_repeated_nor_lost(self, pi: Pi, version: int) -> None:
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

    @pytest.mark.skipif(not MIGRATION.is_dir(), reason="no captured session files beside the repository")
    @pytest.mark.parametrize("name", ["v1", "v2", "v3torn"])
    def test_captured_old_files_that_pi_writes_anew_are_not_told_again(self, pi: Pi, name: str) -> None:
        pi.run("where are we?")
        (pi.agent_dir / ".session-memory" / "config.yaml").write_text("first_sight_hours: 48\n")
        path = pi.sessions()[0].parent / f"2025-11-01T10-00-00-000Z_{name}.jsonl"
        yesterday = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 24 * 3600))
        captured = (MIGRATION / f"{name}.jsonl").read_text().replace("/srv/lab/pi/proj", str(pi.project))
        path.write_text(captured.replace("2025-11-01", yesterday))
        with pi.rpc("--session", str(pi.sessions()[-1])) as rpc:
            assert len(rpc.prompt("what is left to do?").told) == 1
            pi.execute("--session", str(path), "--name", "opened", "--model", "fake/fake-1", "-p", "hello again")
            (line,) = rpc.prompt("and then?").told
        assert line.startswith('- opened (just now, 2 messages): "hello again"')


class TestNamedSessions:
    @pytest.mark.parametrize("memory_dir", [".session-memory", ".volute", ".mind"])
    def test_the_sessions_of_an_agent_home_hear_of_each_other_by_name(self, pi: Pi, memory_dir: str) -> None:
        sessions_dir = pi.project / memory_dir / "pi-sessions"
        pi.run("how do I deploy this?", "--session-dir", str(sessions_dir / "discord"))
        second = pi.run("what is left to do?", "--session-dir", str(sessions_dir / "main"))
        third = pi.run("and then?", "--session-dir", str(sessions_dir / "main"), "--continue")
        assert second.told[0].startswith('- discord (just now, 2 messages): "how do I deploy this?"')
        assert third.told == []
        (own,) = (sessions_dir / "main").glob("*.jsonl")
        assert len(told_in(own)) == 1
        assert (pi.state_dir(pi.project) / "cursors" / "main.json").is_file()
        assert not pi.state_dir().exists()

    def test_a_session_directory_may_be_given_relative_to_where_pi_starts(self, pi: Pi) -> None:
        pi.run("how do I deploy this?", "--session-dir", ".mind/pi-sessions/discord")
        assert len(pi.run("what is left to do?", "--session-dir", ".mind/pi-sessions/main").told) == 1


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
        subprocess.run([pi.command[0], script], cwd=pi.project, env=pi.environment, check=True, timeout=60)
        assert len(activity(pi.model.requests[-1])) == 1


ANSWER = '{"message": {"customType": "session-update", "content": "told", "display": true}}'
READ = "import os, sys, time\nsys.stdin.read()\n"
FAULTS = {
    "prints no JSON": READ + "print('Traceback: something')",
    "prints null": READ + "print('null')",
    "prints an empty object": READ + "print('{}')",
    "prints a list": READ + "print('[1]')",
    "prints a message without content": READ + 'print(\'{"message": {"customType": "x"}}\')',
    "prints content that is no text": READ + 'print(\'{"message": {"customType": "x", "content": {}}}\')',
    "prints text before the JSON": READ + f"print('hello'); print('{ANSWER}')",
    "prints what is no UTF-8": READ + "sys.stdout.buffer.write(bytes(range(256)))",
    "prints without end": READ + "while True: print('x' * 9999)",
    "prints without end and without being asked": "while True: print('x' * 9999)",
    "fails after its answer": READ + f"print('{ANSWER}'); sys.stdout.flush(); sys.exit(3)",
    "is killed": READ + "os.kill(os.getpid(), 9)",
    "closes its stdin unread": "import os, time\nos.close(0)\ntime.sleep(0.2)",
    "closes its stdout": READ + "os.close(1)",
    "ends before it reads": "",
    "cannot be compiled": "def",
}


class Faulty:
    """One pi for all faults; its extension starts an entry that each test writes."""

    def __init__(self, pi: Pi, rpc: Rpc, entry: Path) -> None:
        self.pi = pi
        self.rpc = rpc
        self._entry = entry

    def use(self, source: str | None) -> None:
        """Puts an entry in place, None for none, and begins a session, for which it is started ahead."""
        self._entry.unlink(missing_ok=True)
        if source is not None:
            self._entry.write_text(source)
        self.rpc.send("new_session")

    def assert_goes_on(self, prompt: str = "hello") -> None:
        """The prompt is answered, with nothing put behind it, whether the entry was started ahead or is only now."""
        for _ in range(2):
            turn = self.rpc.prompt(prompt)
            assert turn.request is not None
            assert turn.request.news == prompt
        assert self.rpc.is_running
        assert self.rpc.errors == ""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, fake_llm: FakeLLM) -> Iterator[Faulty]:
    if pi_command() is None:
        pytest.skip("there is no npm here to install Pi with")
    pi = Pi(tmp_path_factory.mktemp("pi"), fake_llm)
    extension = pi.copy_extension()
    with pi.rpc("--extension", str(extension)) as rpc:
        yield Faulty(pi, rpc, extension.parents[1] / "pi_prompt.py")


class TestFaults:
    """Whatever the entry does, pi gets no message, answers the prompt, and goes on."""

    def test_an_entry_that_works_is_heard(self, faulty: Faulty) -> None:
        faulty.use(READ + f"print('{ANSWER}')")
        turn = faulty.rpc.prompt("hello")
        assert turn.request is not None
        assert turn.request.news == "hello\ntold"

    @pytest.mark.parametrize("fault", FAULTS)
    def test_pi_goes_on_when_the_entry(self, faulty: Faulty, fault: str) -> None:
        faulty.use(FAULTS[fault])
        faulty.assert_goes_on()

    def test_pi_goes_on_when_there_is_no_entry(self, faulty: Faulty) -> None:
        faulty.use(None)
        faulty.assert_goes_on()

    def test_pi_goes_on_when_nobody_reads_a_prompt_that_fills_the_pipe(self, faulty: Faulty) -> None:
        faulty.use("import os, time\nos.close(0)\ntime.sleep(0.2)")
        faulty.assert_goes_on("long " * 400_000)

    def test_an_entry_that_hangs_is_killed_with_all_that_it_started(self, faulty: Faulty, tmp_path: Path) -> None:
        pids = tmp_path / "pids"
        faulty.use(
            "import os, signal, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "os.fork()\n"
            f"open({str(pids)!r}, 'a').write(str(os.getpid()) + '\\n')\n"
            "time.sleep(600)\n"
        )
        begun = time.monotonic()
        turn = faulty.rpc.prompt("hello")
        assert turn.request is not None
        assert 2 <= time.monotonic() - begun < 8
        wait_until_gone(pids.read_text().split()[:2])

    def test_an_entry_that_leaves_a_process_behind_does_not_keep_pi_waiting_for_it(self, faulty: Faulty) -> None:
        faulty.use(READ + f"if os.fork():\n    print('{ANSWER}', flush=True)\nelse:\n    time.sleep(600)\n")
        begun = time.monotonic()
        turn = faulty.rpc.prompt("hello")
        assert turn.request is not None
        assert time.monotonic() - begun < 8

    @pytest.mark.parametrize("python", ["/no/such/python", "/", "/etc/passwd"])
    def test_pi_goes_on_without_a_python(self, pi: Pi, python: str) -> None:
        pi.environment["SESSION_MEMORY_PYTHON"] = python
        turn = pi.run("hello")
        assert turn.told == []
        assert turn.errors == ""

    def test_pi_goes_on_without_any_python_on_the_path(self, pi: Pi, tmp_path: Path) -> None:
        del pi.environment["SESSION_MEMORY_PYTHON"]
        pi.environment["PATH"] = str(tmp_path)
        with pi.rpc() as rpc:
            assert rpc.prompt("hello").told == []
            assert rpc.errors == ""

    def test_pi_ends_though_the_entry_hangs(self, bare_pi: Pi) -> None:
        hanging = "import time\ntime.sleep(600)\n"
        extension = bare_pi.copy_extension(pi_prompt=hanging, pi_archive=hanging)
        begun = time.monotonic()
        assert bare_pi.run("hello", "--extension", str(extension)).request is not None
        assert time.monotonic() - begun < 12


class TestStartedAhead:
    """Where a session goes on, the entry for its next prompt is started before that comes."""

    @pytest.fixture
    def pids(self, tmp_path: Path) -> Path:
        return tmp_path / "pids"

    @pytest.fixture
    def extension(self, bare_pi: Pi, pids: Path) -> Path:
        note = f"import os, sys\nopen({str(pids)!r}, 'a').write(str(os.getpid()) + '\\n')\n"
        return bare_pi.copy_extension(pi_prompt=note + "sys.stdin.read()\n")

    def test_it_waits_for_the_prompt_and_ends_with_pi(self, bare_pi: Pi, pids: Path, extension: Path) -> None:
        with bare_pi.rpc("--extension", str(extension)) as rpc:
            wait_for_pids(pids, 1)
            rpc.prompt("hello")
            (answered, waiting) = wait_for_pids(pids, 2)
            wait_until_gone([answered])
            assert is_running(int(waiting))
            assert rpc.close() == 0
        wait_until_gone([waiting])

    def test_it_ends_with_its_session(self, bare_pi: Pi, pids: Path, extension: Path) -> None:
        with bare_pi.rpc("--extension", str(extension)) as rpc:
            wait_for_pids(pids, 1)
            rpc.send("new_session")
            (first, second) = wait_for_pids(pids, 2)
            wait_until_gone([first])
            assert is_running(int(second))

    def test_it_ends_before_it_can_take_the_end_of_its_stdin_for_an_event(
        self, bare_pi: Pi, pids: Path, tmp_path: Path
    ) -> None:
        heard = tmp_path / "heard"
        note = f"import os, sys\nopen({str(pids)!r}, 'a').write(str(os.getpid()) + '\\n')\n"
        extension = bare_pi.copy_extension(pi_prompt=f"{note}sys.stdin.read()\nopen({str(heard)!r}, 'w')\n")
        with bare_pi.rpc("--extension", str(extension)) as rpc:
            (first,) = wait_for_pids(pids, 1)
            rpc.send("new_session")
            wait_until_gone([first])
        assert not heard.exists()

    def test_it_ends_when_pi_is_killed(self, bare_pi: Pi, pids: Path, extension: Path) -> None:
        with bare_pi.rpc("--extension", str(extension)) as rpc:
            waiting = wait_for_pids(pids, 1)
            rpc.kill()
        wait_until_gone(waiting)

    def test_one_prompt_alone_starts_one_entry(self, bare_pi: Pi, pids: Path, extension: Path) -> None:
        bare_pi.run("hello", "--extension", str(extension))
        assert len(pids.read_text().split()) == 1

    def test_an_entry_that_died_while_it_waited_is_replaced(self, bare_pi: Pi, pids: Path, tmp_path: Path) -> None:
        note = f"import os, sys\nopen({str(pids)!r}, 'a').write(str(os.getpid()) + '\\n')\n"
        extension = bare_pi.copy_extension(pi_prompt=f"{note}sys.stdin.read()\nprint('{ANSWER}')\n")
        with bare_pi.rpc("--extension", str(extension)) as rpc:
            os.kill(int(wait_for_pids(pids, 1)[0]), signal.SIGKILL)
            wait_until_gone(pids.read_text().split())
            turn = rpc.prompt("hello")
        assert turn.request is not None
        assert turn.request.news == "hello\ntold"


def wait_for_pids(path: Path, count: int) -> list[str]:
    """The process ids in a file, once there are so many."""
    deadline = time.monotonic() + 10
    while not path.exists() or len(path.read_text().split()) < count:
        assert time.monotonic() < deadline, f"{path} has no {count} lines"
        time.sleep(0.02)
    return path.read_text().split()


def wait_until_gone(pids: list[str]) -> None:
    """Waits until none of these runs any more; one that nobody has waited for yet is gone as well."""
    deadline = time.monotonic() + 5
    while any(is_running(int(pid)) for pid in pids):
        assert time.monotonic() < deadline, f"still running: {pids}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    printed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(printed.strip()) and not printed.strip().startswith("Z")


class TestInterpreter:
    def test_the_one_that_install_wrote_beside_the_extension_is_used(self, bare_pi: Pi, tmp_path: Path) -> None:
        """Here that is a program that answers itself."""
        python = tmp_path / "python of ours"
        python.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{ANSWER}'\n")
        python.chmod(0o700)
        del bare_pi.environment["SESSION_MEMORY_PYTHON"]
        extension = bare_pi.copy_extension(pi_prompt="")
        (extension.parent / "python").write_text(f"{python}\n")
        turn = bare_pi.run("hello", "--extension", str(extension))
        assert turn.request is not None
        assert turn.request.news == "hello\ntold"

    def test_else_it_is_the_python3_on_the_path(self, pi: Pi) -> None:
        pi.environment["PATH"] = f"{pi.root}/bin{os.pathsep}{os.defpath}"
        (pi.root / "bin").mkdir()
        (pi.root / "bin" / "python3").symlink_to(sys.executable)
        del pi.environment["SESSION_MEMORY_PYTHON"]
        pi.run("how do I deploy this?")
        assert len(pi.run("what is left to do?").told) == 1


class TestPackage:
    def test_its_npm_tarball_holds_what_it_needs_and_loads(self, bare_pi: Pi, tmp_path: Path) -> None:
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
