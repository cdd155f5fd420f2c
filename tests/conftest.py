"""Shared parts of test modules: fake APIs, the real programs that run against them, and scenes.

A fixture imports the feature that it needs itself, because tests also run in copies without that
feature.
"""

from __future__ import annotations

import gc
import os
import posix
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import share
from audit.sitecustomize import opened as opened_databases
from clients import npm
from clients import pi as pi_client
from clients.claude import Claude, claude_executable
from clients.npm import NpmPlace
from clients.pi import Pi
from fakes.fake_anthropic import FakeAnthropic
from fakes.fake_llm import FakeLLM
from hooks_scene import PlainUser
from hypothesis import HealthCheck, settings
from no_sync import stop_syncing

from session_memory.sessions.settings.host_layout import Layout

if TYPE_CHECKING:
    from clients.claude_plugin import ClaudePlugin
    from host_scene import Clock, HostMachine
    from install_machine import Machine
    from memories_scene import MemoryDirectory
    from postgres_server import PostgresServer
    from team_scene import Team

    from session_memory.extras.host._ledger import Ledger
    from session_memory.memory.shared_store import SharedPool
    from session_memory.sessions.transcripts.pointers import SessionManager

pytest_plugins = ["browser_scene", "progress", "runtime_table"]


GROUPS = [f"g{number}" for number in range(50)]
ONLY_WITH_ALL = {"client", "cost", "slow"}  # markers
HOME = tempfile.mkdtemp(prefix="session-memory-tests-home-")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="run everything, also tests marked slow, cost or client"
    )
    parser.addoption("--clients", action="store_true", help="also test with the clients from npm")
    parser.addoption("--fuzz", action="store_true", help="try all odd values, and others each time")
    parser.addoption(
        "--queries",
        type=int,
        default=0,
        help="how many random searches to check (200; 1,000 with --all)",
    )
    parser.addoption(
        "--histories",
        type=int,
        default=0,
        help="how many random histories of teams to try (2; 8 with --all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Give the process that runs tests an empty HOME, but the caches of the person who runs them."""
    share.is_all = config.getoption("--all")
    share.seed = int(time.time()) if config.getoption("--fuzz") else 0
    # which uses none, and would fail for that
    config.option.warn_unused_snapshots |= config.option.collectonly
    slow = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    count, is_fuzz = share.some(100), config.getoption("--fuzz")
    settings.register_profile(
        "tests",
        max_examples=count,
        deadline=None,
        derandomize=not is_fuzz,
        suppress_health_check=slow,
    )
    settings.load_profile("tests")
    if not hasattr(config, "workerinput"):
        os.environ[share.DIRECTORY] = tempfile.mkdtemp(prefix="session-memory-tests-")
        if config.getoption("numprocesses", None):
            return  # it only starts those that run tests
    gc.disable()
    # inherited from a shell that started this in the background
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    stop_syncing()
    os.environ.setdefault("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    # the zone is that of `plain_environment`, whatever zone the machine is in
    for name, value in (("HOME", HOME), ("TZ", "UTC")):
        os.environ[name] = value
        posix.environ[os.fsencode(name)] = os.fsencode(value)
    time.tzset()


def pytest_collection_finish() -> None:
    """Keep the thousands of collected tests from the garbage collector, which has not looked at
    them until now either."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[share.DIRECTORY], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what only `--all` runs, unless the command line names single tests."""
    for item in items:
        if "npm_place" in getattr(item, "fixturenames", ()):
            item.add_marker("client")
    if config.getoption("--all") or any("::" in argument for argument in config.args):
        return
    left_out = ONLY_WITH_ALL - {"client"} if config.getoption("--clients") else ONLY_WITH_ALL
    gone = {
        item for item in items if left_out & {mark.name for mark in item.iter_markers()}
    } | beyond_samples(items)
    config.hook.pytest_deselected(items=[item for item in items if item in gone])
    items[:] = [item for item in items if item not in gone]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long value by its argument: it may hold the time, and processes that number tests
    apart run none."""
    return argname if isinstance(val, (str, bytes)) and len(val) > 100 else None


def beyond_samples(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the cases of tests marked `sample` beyond the number it names; the kept ones are
    spread over all cases."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    gone: set[pytest.Item] = set()
    for found in cases.values():
        (number,) = found[0].get_closest_marker("sample").args
        kept = {at * len(found) // number for at in range(number)}
        gone |= {item for at, item in enumerate(found) if at not in kept}
    return gone


def open_files() -> set[str]:
    """Return the paths of the files and directories that this process has open; none on macOS,
    which does not list them."""
    paths = set()
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with suppress(OSError):  # the listing's own
            path = os.readlink(f"/proc/self/fd/{name}")
            # Kuzu leaves a graph open that it could not open, because another process has it locked.
            if path.startswith("/") and not path.startswith("/dev/") and ".kuzu" not in path:
                paths.add(path)
    return paths


@pytest.fixture(autouse=True)
def same_chances(request: pytest.FixtureRequest) -> None:
    """Give a test the same random numbers in every run, but with `--fuzz`."""
    if not request.config.getoption("--fuzz"):
        random.seed(request.node.nodeid)


@pytest.fixture(autouse=True)
def home_of_the_tests() -> Iterator[None]:
    """Empty HOME after a test that wrote to it, so that the next does not find it."""
    yield
    for name in os.listdir(HOME):
        shutil.rmtree(os.path.join(HOME, name), ignore_errors=True)


@pytest.fixture(autouse=True)
def local_time_stays() -> Iterator[None]:
    """Fails a test that leaves this process in another time zone, in which later tests would run."""
    before = time.tzname
    yield
    left = time.tzname
    time.tzset()
    assert left == before, "use the fixture set_zone"


@pytest.fixture
def set_zone() -> Iterator[Callable[[str], None]]:
    """Changes the time zone of this process until the end of the test."""
    with pytest.MonkeyPatch.context() as patch:

        def set_zone(name: str) -> None:
            patch.setenv("TZ", name)
            time.tzset()

        yield set_zone
    time.tzset()


@pytest.fixture(autouse=True)
def only_sqlite_opens_databases() -> Iterator[None]:
    """Fails a test in which the program itself opens a file of SQLite, whatever becomes of the error."""
    opened_databases.clear()
    yield
    assert opened_databases == []


@pytest.fixture(autouse=True)
def nothing_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a file or directory open: after a thousand of them, a process of
    tests can no longer wait for a pipe."""
    before = open_files()
    yield
    request.node.funcargs.clear()  # as pytest does after this
    until = time.monotonic() + 10
    while open_files() - before and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)  # a thread that was given up may still have a file
    assert open_files() - before == set()


@pytest.fixture(scope="session")
def npm_place() -> NpmPlace:
    """Where npm has installed a package; skips a test where there is no npm."""

    def place_of(package: str) -> Path:
        try:
            return npm.place_of(package)
        except npm.UnavailableError as error:
            pytest.skip(str(error))

    return place_of


@pytest.fixture(scope="session")
def fake_anthropic() -> Iterator[FakeAnthropic]:
    """One fake Messages API for all tests of a worker."""
    with FakeAnthropic() as api:
        yield api


@pytest.fixture
def api(fake_anthropic: FakeAnthropic) -> FakeAnthropic:
    """The fake Messages API, without requests or replies of an earlier test."""
    fake_anthropic.reset()
    return fake_anthropic


@pytest.fixture(scope="session")
def bundled_cli() -> None:
    """Skips a test where claude-agent-sdk is installed without a Claude Code, which its wheels for
    a platform carry."""
    if claude_executable() is None:
        pytest.skip(
            "claude-agent-sdk is installed without the Claude Code that its wheels for a platform carry"
        )


@pytest.fixture
def bare_claude(tmp_path: Path, api: FakeAnthropic, bundled_cli: None) -> Claude:
    """The real CLI as it comes."""
    return Claude(tmp_path, api)


@pytest.fixture
def claude(bare_claude: Claude) -> Claude:
    """The real CLI with the pack's hooks installed for its user."""
    bare_claude.install_hooks()
    return bare_claude


@pytest.fixture
def plugin(tmp_path: Path, bare_claude: Claude) -> ClaudePlugin:
    """Claude Code, with a `python3` on the PATH that has no packages, and no index from which it
    could get some."""
    from clients.claude_plugin import ClaudePlugin
    from install_machine import NOBODY_LISTENS, compiled_copy_of_repository, make_bare_environment

    make_bare_environment(tmp_path / "bare")
    bare_claude.environment["PATH"] = f"{tmp_path}/bare/bin:{bare_claude.environment['PATH']}"
    bare_claude.environment.update(
        PIP_INDEX_URL=NOBODY_LISTENS, PIP_RETRIES="0", PIP_CONFIG_FILE="/dev/null"
    )
    return ClaudePlugin(bare_claude, compiled_copy_of_repository(tmp_path / "copy"))


@pytest.fixture(scope="session")
def fake_llm() -> Iterator[FakeLLM]:
    """One fake model for all tests of a worker that run the real pi."""
    with FakeLLM() as model:
        yield model


@pytest.fixture
def bare_pi(tmp_path: Path, npm_place: NpmPlace, fake_llm: FakeLLM) -> Pi:
    """The real pi as it comes."""
    npm_place(pi_client.PACKAGE)
    fake_llm.reset()
    return Pi(tmp_path, fake_llm)


@pytest.fixture
def pi(bare_pi: Pi) -> Pi:
    """The real pi with our package."""
    bare_pi.use_package()
    return bare_pi


@pytest.fixture
def bare_machine(tmp_path: Path) -> Machine:
    """A machine with an empty home directory."""
    from install_machine import Machine

    (tmp_path / "home").mkdir()
    return Machine(tmp_path / "home")


@pytest.fixture
def plain(tmp_path: Path) -> PlainUser:
    """A plain user of Claude Code, without any session yet."""
    return PlainUser(tmp_path)


@pytest.fixture
def memory_dir(tmp_path: Path) -> Iterator[MemoryDirectory]:
    """A directory of memories, empty."""
    from memories_scene import MemoryDirectory

    with closing(MemoryDirectory(tmp_path)) as memory_dir:
        yield memory_dir


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A host's directory with the groups main and garden."""
    layout = Layout(tmp_path / "host")
    layout.make()
    for name in ("main", "garden"):
        layout.group(name).make()
    return layout


@pytest.fixture
def sessions(layout: Layout) -> Iterator[SessionManager]:
    """The pointers of these groups."""
    from session_memory.history.archives.writer import open_sessions

    with closing(open_sessions(layout)) as sessions:
        yield sessions


@pytest.fixture
def clock() -> Clock:
    """What time it is for the ledger."""
    from host_scene import Clock

    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    """A ledger with the groups main and garden; garden answers only to @anna."""
    from session_memory.extras.host._ledger import Ledger

    with closing(Ledger(str(tmp_path / "store" / "messages.db"), clock)) as ledger:
        ledger.register("main", "local:main", "main", "", False)
        ledger.register("garden", "chat:7", "garden", "@anna", True)
        yield ledger


@pytest.fixture(scope="session")
def served(bundled_cli: None) -> Iterator[HostMachine]:
    """One host on the real CLI for all tests: each has a group of its own, and leaves the host running."""
    from host_scene import Echo, HostMachine

    with Echo() as api, closing(HostMachine(api)) as machine:
        machine.init("main", *GROUPS, config="idle_seconds: 1\nattempts: 2\ngroups_at_once: 3\n")
        machine.start()
        for opened in (machine.ledger, machine.sessions):  # for all tests
            assert opened
        yield machine


@pytest.fixture
def host(served: HostMachine) -> HostMachine:
    """This host, running, with an API that has not been asked anything yet."""
    served.api.reset()
    if served.child is None:
        served.start()
    return served


@pytest.fixture(scope="session")
def unused_groups() -> Iterator[str]:
    """The groups of this host that no test has used yet."""
    return iter(GROUPS)


@pytest.fixture
def group(unused_groups: Iterator[str]) -> str:
    """A group that no other test uses."""
    return next(unused_groups)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL server."""
    from postgres_server import running_server

    with running_server() as server:
        if isinstance(server, str):
            pytest.skip(server)
        yield server


@pytest.fixture
def team(postgres: PostgresServer) -> Team:
    """A team to which nothing was pushed."""
    from team_scene import Team

    return Team(postgres)


@pytest.fixture
def teams() -> Iterator[SharedPool]:
    """What tools ask a team by, of which no connection stays open."""
    from session_memory.memory.shared_store import SharedPool

    with closing(SharedPool()) as pool:
        yield pool
