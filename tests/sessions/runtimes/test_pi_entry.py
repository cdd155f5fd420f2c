"""The entry that the extension starts in the real Pi: which Python runs it, when, and that nothing
it does brings pi down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.npm import NpmPlace, node_at
from clients.pi import EXTENSION, PACKAGE, Pi, Rpc
from fakes.fake_llm import FakeLLM

ANSWER = '{"message": {"customType": "session-update", "content": "told", "display": true}}'
READ = "import os, sys, time\nsys.stdin.read()\n"
FAULTS = {
    "prints no JSON": READ + "print('Traceback: something')",
    "prints null": READ + "print('null')",
    "prints an empty object": READ + "print('{}')",
    "prints a list": READ + "print('[1]')",
    "prints a message without content": READ + 'print(\'{"message": {"customType": "x"}}\')',
    "prints content that is no text": READ
    + 'print(\'{"message": {"customType": "x", "content": {}}}\')',
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
        """Puts an entry in place, None for none, and begins a session, for which it is started
        ahead."""
        self._entry.unlink(missing_ok=True)
        if source is not None:
            self._entry.write_text(source)
        self.rpc.send("new_session")

    def assert_goes_on(self, prompt: str = "hello") -> None:
        """The prompt is answered, with nothing put behind it, whether the entry was started ahead
        or is only now."""
        for _ in range(2):
            turn = self.rpc.prompt(prompt)
            assert turn.request is not None
            assert turn.request.news == prompt
        assert self.rpc.is_running
        assert self.rpc.errors == ""


@pytest.fixture(scope="module")
def faulty(
    tmp_path_factory: pytest.TempPathFactory, npm_place: NpmPlace, fake_llm: FakeLLM
) -> Iterator[Faulty]:
    npm_place(PACKAGE)
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

    def test_pi_goes_on_when_nobody_reads_a_prompt_that_fills_the_pipe(
        self, faulty: Faulty
    ) -> None:
        faulty.use("import os, time\nos.close(0)\ntime.sleep(0.2)")
        faulty.assert_goes_on("long " * 400_000)

    def test_an_entry_that_hangs_is_killed_with_all_that_it_started(
        self, faulty: Faulty, tmp_path: Path
    ) -> None:
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

    def test_an_entry_that_leaves_a_process_behind_does_not_keep_pi_waiting_for_it(
        self, faulty: Faulty
    ) -> None:
        faulty.use(
            READ + f"if os.fork():\n    print('{ANSWER}', flush=True)\nelse:\n    time.sleep(600)\n"
        )
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
        assert time.monotonic() - begun < 60


@pytest.mark.parametrize("program", ["pi", "omp"])
def test_an_event_names_the_program_that_runs_the_extension(
    program: str, npm_place: NpmPlace, tmp_path: Path
) -> None:
    """Both load the same file if they have one PI_CODING_AGENT_DIR; omp has its exports as `pi.pi`."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat > {tmp_path}/event.json\n")
    python.chmod(0o700)
    script = f"""
        const {{ default: extension }} = await import({json.dumps(str(EXTENSION))});
        const handlers = {{}};
        const pi = {{ on: (name, handler) => (handlers[name] = handler) }};
        extension({json.dumps(program)} === "omp" ? {{ ...pi, pi: {{}} }} : pi);
        const sessionManager = {{ getSessionFile() {{}}, getSessionDir() {{}}, getSessionId: () => "s" }};
        const event = {{ toolName: "edit", toolCallId: "c", input: {{ path: "a" }} }};
        await handlers.tool_call(event, {{ sessionManager, cwd: "/", hasUI: false }});
        console.log(Object.keys(handlers).join());
    """
    command = [node_at(npm_place(PACKAGE)), "--experimental-strip-types", "--input-type=module"]
    environ = {"PATH": os.defpath, "SESSION_MEMORY_PYTHON": str(python)}
    done = subprocess.run([*command, "-e", script], env=environ, capture_output=True, text=True)
    event = json.loads((tmp_path / "event.json").read_text())
    assert (event["hook_event_name"], event["runtime"]) == ("tool_call", program), done.stderr
    assert ("agent_settled" in done.stdout) == (program == "pi")


class TestStartedAhead:
    """Where a session goes on, the entry for its next prompt is started before that comes."""

    @pytest.fixture
    def pids(self, tmp_path: Path) -> Path:
        return tmp_path / "pids"

    @pytest.fixture
    def extension(self, bare_pi: Pi, pids: Path) -> Path:
        note = f"import os, sys\nopen({str(pids)!r}, 'a').write(str(os.getpid()) + '\\n')\n"
        return bare_pi.copy_extension(pi_prompt=note + "sys.stdin.read()\n")

    def test_it_waits_for_the_prompt_and_ends_with_pi(
        self, bare_pi: Pi, pids: Path, extension: Path
    ) -> None:
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
        extension = bare_pi.copy_extension(
            pi_prompt=f"{note}sys.stdin.read()\nopen({str(heard)!r}, 'w')\n"
        )
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

    def test_one_prompt_alone_starts_one_entry(
        self, bare_pi: Pi, pids: Path, extension: Path
    ) -> None:
        bare_pi.run("hello", "--extension", str(extension))
        assert len(pids.read_text().split()) == 1

    def test_an_entry_that_waited_while_the_program_was_upgraded_is_replaced(
        self, bare_pi: Pi, pids: Path, tmp_path: Path
    ) -> None:
        note = f"import os, sys\nopen({str(pids)!r}, 'a').write(str(os.getpid()) + '\\n')\nsys.stdin.read()\n"
        extension = bare_pi.copy_extension(pi_prompt=f"{note}from session_memory import gone\n")
        with bare_pi.rpc("--extension", str(extension)) as rpc:
            (waiting,) = wait_for_pids(pids, 1)
            upgraded = tmp_path / "pi_prompt.py"
            upgraded.write_text(f"{note}print('{ANSWER}')\n")
            upgraded.replace(extension.parents[1] / "pi_prompt.py")
            turn = rpc.prompt("hello")
            wait_until_gone([waiting])
        assert turn.request is not None
        assert turn.request.news == "hello\ntold"

    def test_an_entry_that_died_while_it_waited_is_replaced(
        self, bare_pi: Pi, pids: Path, tmp_path: Path
    ) -> None:
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
    deadline = time.monotonic() + 60
    while not path.exists() or len(path.read_text().split()) < count:
        assert time.monotonic() < deadline, f"{path} has no {count} lines"
        time.sleep(0.02)
    return path.read_text().split()


def wait_until_gone(pids: list[str]) -> None:
    """Waits until none of these runs any more; one that nobody has waited for yet is gone as
    well."""
    deadline = time.monotonic() + 60
    while any(is_running(int(pid)) for pid in pids):
        assert time.monotonic() < deadline, f"still running: {pids}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    printed = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return bool(printed.strip()) and not printed.strip().startswith("Z")


class TestInterpreter:
    def test_the_one_that_install_wrote_beside_the_extension_is_used(
        self, bare_pi: Pi, tmp_path: Path
    ) -> None:
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
