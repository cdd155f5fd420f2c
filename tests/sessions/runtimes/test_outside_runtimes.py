"""A runtime in another package, `tests/outside_runtime`: installed with pip, or named in config.yaml."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import urllib.request
from datetime import datetime, timezone
from pathlib import Path
from subprocess import PIPE

import pytest
import records
from install_machine import PYTHON, Machine
from outside_scene import PACKAGE, forget_package
from own_process import run_here

from session_memory.extras.page import _labels
from session_memory.history.store.ingest._read_ahead import Span, read_spans
from session_memory.sessions.runtimes import detection
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.outside import NotedRuntimes, load
from session_memory.sessions.runtimes.table import PREBUILT, all_runtimes
from session_memory.sessions.settings.compiled import Settings

PROJECT = "/srv/shop"
ANVIL_ID = "4af2dbae-08ed-458a-b3c1-20ad6cdf1fcb"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the other package."""
    root = tmp_path_factory.mktemp("anvil")
    shutil.copytree(PACKAGE, root / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", root / "dist"]
    subprocess.run(command, cwd=root / "copy", capture_output=True, check=True)
    [built] = (root / "dist").iterdir()
    return built


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a session of Claude Code and one of Anvil in the same project."""
    machine = Machine(tmp_path / "home")
    machine.has_claude_code(PROJECT)
    anvil_session(machine.home)
    return machine


def anvil_session(home: Path, folder: str = ".anvil") -> Path:
    """Write a session of Anvil from three minutes ago, which edited a file."""
    at = datetime.fromtimestamp(time.time() - 180, timezone.utc).isoformat()[:23] + "Z"

    def message(id: str, role: str, *blocks: dict[str, object]) -> dict[str, object]:
        content = {"role": role, "content": list(blocks)}
        return {"type": "turn", "id": id, "timestamp": at, "message": content}

    edit = {"file_path": f"{PROJECT}/cart.py", "old_str": "a", "new_str": "b"}
    lines = [
        {"type": "session_opened", "id": ANVIL_ID, "title": "x", "owner": "me", "cwd": PROJECT},
        message("d1", "user", {"type": "text", "text": "Rename the cart"}),
        message(
            "d2",
            "assistant",
            {"type": "text", "text": "The cart is a basket now."},
            {"type": "tool_use", "id": "call_1", "name": "Edit", "input": edit},
        ),
        message("d3", "user", {"type": "tool_result", "tool_use_id": "call_1", "content": "done"}),
    ]
    path = home / folder / "sessions" / PROJECT.replace("/", "-") / f"{ANVIL_ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def has_packages(machine: Machine) -> Path:
    """Return a private environment that finds what an install adds from the package index."""
    env = machine.has_environment().program_dir / "env"
    [site_packages] = env.glob("lib/python*/site-packages")
    for there in Path(sysconfig.get_path("purelib")).iterdir():
        if "session_memory" not in there.name and not (site_packages / there.name).exists():
            (site_packages / there.name).symlink_to(there)
    return env


def pip_install(wheel: Path, env: Path) -> None:
    command = ["-m", "pip", "--python", env / "bin/python", "install", "--no-deps", "--no-index"]
    for python in (sys.executable, PYTHON):
        if subprocess.run([python, *command, wheel], capture_output=True).returncode == 0:
            return
    pytest.skip("there is no pip of version 22.3 or newer here")


def run(machine: Machine, *words: str) -> str:
    done = run_here([*words], machine.environ, machine.home)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def findings(machine: Machine, **environ: str) -> list[dict[str, str]]:
    """Return what doctor finds about the runtimes of other packages."""
    words = ["doctor", "hooks", "--json"]
    done = run_here(words, {**machine.environ, **environ}, machine.home)
    return [one for one in json.loads(done.stdout)["findings"] if one["about"] == "runtimes"]


def prompt(machine: Machine, settings: str, event: dict[str, str]) -> str:
    """Return what the hook in a runtime's settings adds to a prompt; it must end quietly."""
    command = machine.hook_command(machine.home / settings)
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "go on", **event}),
        env=machine.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}
    return str(answer.get("additionalContext", ""))


def claude_prompt(machine: Machine) -> str:
    id = records.new_id()
    path = machine.claude / "projects/-srv-shop" / f"{id}.jsonl"
    return prompt(
        machine,
        ".claude/settings.json",
        {"session_id": id, "transcript_path": str(path), "cwd": PROJECT},
    )


def name_in_settings(machine: Machine, *paths: Path) -> None:
    file = machine.home / ".session-memory/config.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"runtimes: {json.dumps([str(path) for path in paths])}\n")


def broken(tmp_path: Path, *changes: tuple[str, str], file: str = "__init__.py") -> Path:
    """Return a package like Anvil's, in which texts of a file were replaced."""
    package = tmp_path / "broken" / f"anvil_{len(os.listdir(tmp_path))}_{time.monotonic_ns()}"
    shutil.copytree(PACKAGE / "anvil_runtime", package)
    text = (package / file).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (package / file).write_text(text)
    return package


def test_a_package_from_pip_is_installed_told_read_searched_and_shown(
    machine: Machine, wheel: Path
) -> None:
    forget_package()
    env = has_packages(machine)
    pip_install(wheel, env)
    machine.installed()

    told = claude_prompt(machine)
    assert '"Rename the cart" (Anvil, 3m ago, 2 messages): edited cart.py' in told
    anvil = str(machine.home / ".anvil/sessions/-srv-shop/new.jsonl")
    event = {"session_id": "new", "transcript_path": anvil, "cwd": PROJECT}
    assert '"ship it" (Claude Code, 5m ago' in prompt(machine, ".anvil/settings.json", event)

    command = str(machine.program_dir / "bin/session-memory")

    def output(*words: str) -> str:
        done = machine.run(command, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "3 of 3 files had something new" in output("ingest")
    sessions = json.loads(output("sessions", "--all", "--json"))["sessions"]
    assert {one["runtime"] for one in sessions} == {"anvil", "claude-code"}
    assert "The cart is a basket now." in output("read", ANVIL_ID[:8])
    assert "basket" in output("search", "basket")
    assert "The cart is a basket now." in visited(machine, command)
    assert [one["text"] for one in findings(machine)] == ["of other packages: Anvil"]

    done = machine.run(command, "uninstall")
    assert done.returncode == 0, done.stderr
    assert not (machine.home / ".anvil/settings.json").exists()


def visited(machine: Machine, command: str) -> str:
    """Return the page of Anvil's session."""
    with subprocess.Popen(
        [command, "page", "--no-browser"],
        env=machine.environ,
        cwd=machine.home,
        stdout=PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            link = re.search(r"http://\S+", process.stdout.readline())
            assert link
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            opener.open(link[0]).close()
            root = link[0].partition("/enter")[0]
            with opener.open(f"{root}/session/{ANVIL_ID}") as answer:
                return str(answer.read().decode())
        finally:
            process.terminate()


def test_a_line_in_the_person_s_settings_names_one_once_doctor_has_run(
    machine: Machine, tmp_path: Path
) -> None:
    name_in_settings(machine, broken(tmp_path))
    assert "2 of 2 files" in run(machine, "ingest")
    assert [one["text"] for one in findings(machine)] == ["of other packages: Anvil; new: anvil"]
    assert "1 of 3 files" in run(machine, "ingest")
    name_in_settings(machine)
    assert [one["text"] for one in findings(machine)] == ["of other packages: none; gone: anvil"]
    assert "basket" in run(machine, "search", "basket")  # the store still has it


def test_the_settings_of_an_agent_home_or_a_runtime_s_directory_name_none(
    machine: Machine, tmp_path: Path
) -> None:
    agent = machine.home / "agent"
    (agent / ".session-memory/sessions").mkdir(parents=True)
    (agent / ".session-memory/sessions/main.json").write_text('{"session_id": "one"}')
    file = agent / ".session-memory/config.yaml"
    file.write_text(f"runtimes: [{PACKAGE}/anvil_runtime]\n")
    machine.has_program().has_environment()
    machine.installed("--home", str(agent))
    done = run_here(["doctor", "hooks", "--json"], machine.environ, agent)
    found = json.loads(done.stdout)["findings"]
    assert not [one for one in found if one["about"] == "runtimes"]
    assert [one for one in found if "runtimes is only accepted in your own" in one["text"]]
    assert not (machine.home / ".session-memory/state/runtimes.json").exists()


def test_a_package_in_pythonpath_is_not_loaded(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = tmp_path / "repository/trap-1.0.dist-info"
    details.mkdir(parents=True)
    (details / "METADATA").write_text("Metadata-Version: 2.1\nName: trap\nVersion: 1.0\n")
    points = "[session_memory.runtimes]\ntrap = trap_runtime:RUNTIME\n"
    (details / "entry_points.txt").write_text(points)
    (details.parent / "trap_runtime.py").write_text("RUNTIME = 7\n")
    monkeypatch.syspath_prepend(str(details.parent))
    assert "is a int" in findings(machine)[0]["text"]  # as an installed package
    assert findings(machine, PYTHONPATH=str(details.parent)) == []


WRONG = {
    "it does not import": (("class Anvil(", "class Anvil(nothing."), "NameError"),
    "it was written for another layout": (
        ("session_memory.common.system.json", "session_memory.system.json"),
        "No module named 'session_memory.system'",
    ),
    "it states another interface": (("INTERFACE = 1", "INTERFACE = 9"), "has INTERFACE = 9"),
    "it states no interface": (("    INTERFACE = 1\n", ""), "has no INTERFACE"),
    "it is no runtime": (("RUNTIME = Anvil()", "RUNTIME = 7"), "is a int, not an object"),
    "a member is missing": (('    TITLE = "Anvil"\n', ""), "must set TITLE to a text"),
    "its name is taken": (('name = "anvil"', 'name = "codex"'), "has the name of Codex"),
    "its name raises": (
        ('    name = "anvil"\n', "    name = property(lambda self: 1 / 0)\n"),
        "cannot be used: ZeroDivision",
    ),
    "its name is one of our formats": (('name = "anvil"', 'name = "agent-sdk"'), "of a transcript"),
    "a part has another class": (
        ("RUNTIME = Anvil()", "RUNTIME = Anvil()\nRUNTIME.records = 7"),
        "has a part records that is a int, not",
    ),
    "it ends the program": (
        ('path = as_string(event.get("transcript_path"))', "raise SystemExit(7)"),
        "SystemExit: 7",
    ),
    "it raises": (('path = as_string(event.get("transcript_path"))', "1 / 0"), "ZeroDivision"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_broken_one_is_named_by_doctor_and_nothing_else_suffers(
    what: str, machine: Machine, tmp_path: Path
) -> None:
    change, problem = WRONG[what]
    name_in_settings(machine, broken(tmp_path, change))
    found_all = findings(machine)
    assert len(found_all) == 1, found_all
    [found] = found_all
    assert (found["state"], problem in found["text"]) == ("wrong", True), found["text"]
    assert "config.yaml" in found["mend"]
    assert "2 of 2 files" in run(machine, "ingest")


def test_one_that_breaks_later_stops_no_hook_and_no_command(
    machine: Machine, tmp_path: Path
) -> None:
    has_packages(machine)
    package = broken(tmp_path)
    name_in_settings(machine, package)
    machine.installed()
    assert "Anvil" in claude_prompt(machine)
    for member in ("is_own", "all_folders", "folder_name", "refresh"):
        source = (PACKAGE / "anvil_runtime/__init__.py").read_text()
        raising = f"    def {member}(self, *_):\n        raise RuntimeError(7)\n\n\nRUNTIME"
        (package / "__init__.py").write_text(source.replace("RUNTIME", raising, 1))
        assert '"ship it" (5m ago' in claude_prompt(machine), member
    asked = ("config_dir", "project_dir", "copies_dir", "own_path", "session_id_of", "evidence")
    raising = "".join(
        f"    def {member}(self, *_):\n        raise SystemExit(7)\n\n" for member in asked
    )
    (package / "__init__.py").write_text(source.replace("\n\nRUNTIME", f"\n{raising}\nRUNTIME", 1))
    assert '"ship it" (' in claude_prompt(machine)
    command = str(machine.program_dir / "bin/session-memory")
    for words in (["ingest"], ["sessions", "--all"], ["agents"], ["status"]):
        done = machine.run(command, *words)
        assert (done.returncode, done.stderr) == (0, ""), (words, done.stdout)
    (package / "__init__.py").write_text("raise SystemError('gone')\n")
    assert '"ship it" (5m ago' in claude_prompt(machine)
    done = machine.run(command, "ingest")
    assert (done.returncode, done.stdout) == (0, "Nothing new in 2 files.\n"), done.stderr


HANGS = "while True:\n            pass\n"
SHORT = (
    "import sys; from session_memory.sessions.runtimes import _call_limit; _call_limit.SECONDS = 1; "
    "from session_memory.cli import main; sys.exit(main())"
)


def run_with_short_limit(machine: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that gives code of other packages one second."""
    environ = {**machine.environ, "PYTHONPATH": str(PACKAGE.parents[1])}
    command = [sys.executable, "-c", SHORT, *words]
    return subprocess.run(
        command, env=environ, cwd=machine.home, capture_output=True, text=True, timeout=100
    )


@pytest.mark.parametrize("member", ["is_own", "all_folders", "refresh"])
def test_one_that_never_returns_is_named_by_doctor_and_left_out_by_commands(
    member: str, machine: Machine, tmp_path: Path
) -> None:
    package = broken(tmp_path)
    name_in_settings(machine, package)
    findings(machine)
    source = (package / "__init__.py").read_text()
    hanging = f"    def {member}(self, *_):\n        {HANGS}\n\nRUNTIME"
    (package / "__init__.py").write_text(source.replace("RUNTIME", hanging, 1))

    if member == "all_folders":
        done = run_with_short_limit(machine, "sessions", "--all")
        assert done.returncode == 0, done.stderr
        assert "ship it" in done.stdout
        assert done.stderr.splitlines() == [
            f"session-memory: Anvil, of the package {package.name}: project_sessions did not end "
            "within 1 seconds",
            "  its sessions are left out; session-memory doctor checks it",
        ]
    done = run_with_short_limit(machine, "doctor", "hooks", "--json")
    found = [one for one in json.loads(done.stdout)["findings"] if one["about"] == "runtimes"]
    wrong = [one["text"] for one in found if one["state"] == "wrong"]
    what = {"all_folders": "reading its newest session"}.get(member, member)
    assert [text.partition(": ")[2] for text in wrong] == [
        f"{what} of {package.name}:RUNTIME did not end within 1 seconds"
    ]
    done = run_with_short_limit(machine, "sessions", "--all")  # it is not noted any more
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("fault", ["raise ValueError(7)", HANGS])
@pytest.mark.parametrize("member", ["events", "recognises"])
def test_a_session_that_one_could_not_decode_is_read_by_the_next_ingest(
    member: str, fault: str, machine: Machine, tmp_path: Path
) -> None:
    package = broken(tmp_path)
    name_in_settings(machine, package)
    findings(machine)
    decoder = package / "records.py"
    source = decoder.read_text()
    failing = source.replace(f"def {member}(", "def other(").replace("def owns(", "def another(")
    members = f"    def {member}(self, *_):\n        {fault}\n\n"
    if member == "recognises":
        members += "    def owns(self, _):\n        return False\n\n"
    decoder.write_text(failing.replace("    def may_hold(", f"{members}    def may_hold(", 1))
    why = "raised ValueError: 7" if "7" in fault else "did not end within 1 seconds"
    for _ in range(2):
        done = run_with_short_limit(machine, "ingest")
        assert done.returncode == 1, done.stderr
        told = " ".join(done.stdout.split())
        assert f"the runtime anvil cannot read it: {member} {why}" in told
    decoder.write_text(source)
    done = run_with_short_limit(machine, "ingest")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 3 files had something new" in done.stdout
    assert "ship it" in run_with_short_limit(machine, "search", "ship").stdout


def test_a_part_that_one_could_not_decode_is_left_to_the_process_that_reports_it(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [path] = (machine.home / ".anvil").rglob("*.jsonl")
    raising = (
        "    def events(",
        "    def events(self, *_):\n        return 1 / 0\n\n    def other(",
    )
    extracts = []
    for changes in ((), (raising,)):
        package = broken(tmp_path, *changes, file="records.py")
        anvil = load(f"{package.name}:RUNTIME", str(package.parent))
        monkeypatch.setattr(detection, "all_runtimes", lambda anvil=anvil: [anvil])
        extracts += read_spans([Span(str(path), 0, 0)], "")
    assert [extract and len(extract.entries) for extract in extracts] == [2, None]


def test_an_import_that_never_ends_is_named_by_doctor_and_left_out_by_commands(
    machine: Machine, tmp_path: Path
) -> None:
    package = broken(tmp_path)
    name_in_settings(machine, package)
    findings(machine)
    (package / "__init__.py").write_text("import time\ntime.sleep(1000)\n")
    problem = f"the import of {package.name}:RUNTIME did not end within 1 seconds"
    done = run_with_short_limit(machine, "sessions", "--all")
    assert problem in done.stderr
    assert "ship it" in done.stdout
    done = run_with_short_limit(machine, "doctor", "hooks")
    assert problem in " ".join(done.stdout.split())


def test_a_call_in_time_is_not_interrupted_later(machine: Machine, tmp_path: Path) -> None:
    """The timer of a call that has ended rings during the next one."""
    slow = "    def all_folders(self, config_dir):\n        import time\n        time.sleep(.7)\n"
    slow += "        return super().all_folders(config_dir)\n\n\nRUNTIME"
    name_in_settings(machine, broken(tmp_path, ("RUNTIME", slow)))
    findings(machine)
    done = run_with_short_limit(machine, "sessions", "--all")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Rename the cart" in done.stdout


IN_A_FORK = """
import os, sys, time
from session_memory.sessions.runtimes._call_limit import CallLimit, OverdueCallError

limit = CallLimit()
limit.run(.1, lambda: None)
process = os.fork()
if process:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
try:
    limit.run(.2, time.sleep, 5)
except OverdueCallError:
    os._exit(7)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no forks")
def test_a_call_in_a_forked_process_has_the_limit_too() -> None:
    """A first ingest reads in forks, which do not inherit the timer."""
    assert subprocess.run([sys.executable, "-c", IN_A_FORK], timeout=60).returncode == 7


AT_ITS_END = """
import atexit, os, signal
from session_memory.sessions.runtimes._call_limit import CallLimit

atexit.register(lambda: os._exit(7 if signal.getitimer(signal.ITIMER_REAL)[0] else 0))
CallLimit().run(60, lambda: None)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no such timer")
def test_the_timer_does_not_end_a_command_that_is_ending() -> None:
    """Python takes its handlers away before it ends, and a timer then ends the process."""
    assert subprocess.run([sys.executable, "-c", AT_ITS_END], timeout=60).returncode == 0


def test_one_that_was_noted_before_this_package_had_its_name_is_left_out(
    machine: Machine, tmp_path: Path
) -> None:
    package = broken(tmp_path, ('name = "anvil"', 'name = "droid"'))
    name_in_settings(machine, package)
    note = machine.home / ".session-memory/state/runtimes.json"
    note.parent.mkdir(parents=True)
    row = [f"{package.name}:RUNTIME", ".anvil", "ANVIL_DIR", str(package.parent)]
    note.write_text(json.dumps({"config.yaml": {"droid": row}}))
    assert [one.name for one in NotedRuntimes(str(note)).usable(lambda row: True)] == ["droid"]
    assert NotedRuntimes(str(note), PREBUILT).usable(lambda row: True) == []
    assert "2 of 2 files" in run(machine, "ingest")
    found = [one["text"] for one in findings(machine) if one["state"] == "wrong"]
    assert ["has the name of Droid" in text for text in found] == [True]


@pytest.mark.parametrize(
    "note",
    [
        b'{"config.yaml": {"anvil',
        b'{"config.yaml": 7, "/": {"x": ["anvil_runtime:RUNTIME"], "y": 7, "z": [1, 2, 3, 4]}}',
        b"[" * 20_000,
        b"\xff",
    ],
    ids=["torn", "odd", "deep", "binary"],
)
def test_a_damaged_note_is_written_again(note: bytes, machine: Machine, tmp_path: Path) -> None:
    name_in_settings(machine, broken(tmp_path))
    findings(machine)
    path = machine.home / ".session-memory/state/runtimes.json"
    whole = path.read_bytes()
    path.write_bytes(note)
    assert "2 of 2 files" in run(machine, "ingest")
    assert [one["text"] for one in findings(machine)] == ["of other packages: Anvil; new: anvil"]
    assert path.read_bytes() == whole


def test_what_everything_asks_of_a_runtime_is_guarded(tmp_path: Path) -> None:
    package = broken(
        tmp_path,
        ("def folder_name(", "def is_automated_(x):\n        pass\n\n    def folder_name("),
    )
    runtime = load(f"{package.name}:RUNTIME", str(package.parent))
    assert runtime.is_own(None, {}) is False  # type: ignore[arg-type]
    assert runtime.records.events({"type": "turn", "message": 7, "id": 7}, 0, None) == []  # type: ignore[arg-type]
    assert runtime.folder_name("/srv/site") == "-srv-site"


def test_on_the_page_it_has_one_of_the_colours_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = broken(tmp_path)
    anvil = load(f"{package.name}:RUNTIME", str(package.parent))
    monkeypatch.setattr(_labels, "all_runtimes", lambda: [*all_runtimes(), anvil])
    style = (Path(_labels.__file__).parent / "static/page.css").read_text()
    title, hue = _labels.shown_runtime("anvil")
    assert title == "Anvil"
    assert f".hue-{hue}::before" in style


def test_on_the_page_a_family_has_one_colour_and_the_first_families_share_theirs_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def extending(name: str, *bases: type[Runtime]) -> Runtime:
        return type(name, bases, {"name": name, "TITLE": name})()

    alone = [extending(f"alone-{number}", Runtime) for number in range(20)]
    member = extending("member", type(alone[1]))
    monkeypatch.setattr(_labels, "all_runtimes", lambda: [*alone, member])
    hues = [_labels.shown_runtime(one.name).hue for one in alone]
    assert hues == [*range(8), *reversed(range(8)), *range(4)]
    assert _labels.shown_runtime("member").hue == hues[1]


def test_without_any_the_table_has_the_runtimes_of_this_package_only() -> None:
    assert not [one for one in all_runtimes() if one.INTERFACE]
    assert Settings({}).runtimes is None
