"""Real clients, each driven at its terminal into every state that `agents` knows.

    cd tests && python -m clients.driven copilot pi --rounds 5

prints a table: how often `agents` was right, and how long after the event. An event is seen on the
client's screen, at the fake model, or in a process; `agents --watch --json` runs all the time, and
`agents --json` must still say so STEADY_SECONDS later. A clock that was set is a clock that `agents`
reads differently."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from clients import npm
from clients.everyone import CLIENTS, User
from clients.terminal import Terminal
from runtimes_scene import SHELL
from store_scene import COMMAND

from session_memory.sessions.states import ASKS, BACKGROUND, ENDED, GONE, WAITS, WORKING

FOLLOW_SECONDS = 15.0  # after which an answer counts as wrong
STEADY_SECONDS = 4.0  # after an event; longer than a call may do nothing before it counts as asking
DIALOG_SECONDS = 1.5  # in which a new dialog takes no key, in case it was meant for the prompt
AGAIN_SECONDS = 3.0  # after which Return is pressed again if it sent no prompt
CLOCK_SECONDS = (3600, -3600)
_CLOCK = "import time; real = time.time; time.time = lambda: real() + {}; "
QUESTION = "Which cup?"
RESUMED = "resumed in another terminal"
QUESTIONS = "asks a question"
FIRST = "the model answers"
_COMMAND = "sh wait.sh"
_SCRIPT = "touch began\nuntil [ -e go ]; do sleep .1; done\nrm -f began go\n"


Call = tuple[str, dict[str, Any]]  # of a tool: its name, and its arguments


@dataclass(frozen=True)
class Habits:
    """How a client is used at its terminal.

    `ready` shows that it takes a prompt, `dialog` that it asks for approval ('' if it never asks).
    `call` runs the command if that is not the plain call of its shell. `ask` asks the user
    something, and `background` runs the command beyond the turn; None if it has no such tool.
    `resume` goes on with the session `{}`. In `options`, PROJECT is the directory; `environment`
    has more variables. `names_call` says whether its transcript names a call that asks, and
    `untold` has the states that nothing shows: see docs/use/agents.md."""

    ready: str
    resume: tuple[str, ...]
    options: tuple[str, ...] = ()
    dialog: str = ""
    call: Call | None = None
    ask: Call | None = None
    background: Call | None = None
    quits: tuple[str, ...] = ("/quit", "\r")
    names_call: bool = True
    environment: tuple[tuple[str, str], ...] = ()
    untold: tuple[str, ...] = ()


def _questions(**more: Any) -> dict[str, Any]:
    """Return what most clients give to a tool that asks the user."""
    options = [{"label": cup, "description": f"The {cup} cup."} for cup in ("red", "blue")]
    return {"questions": [{"question": QUESTION, "header": "Cup", "options": options, **more}]}


def _of_codex(**more: Any) -> Call:
    """Return what a model of Codex in code mode writes to run the command."""
    script = f"await tools.exec_command({json.dumps({'cmd': _COMMAND, **more})})"
    return "exec", {"script": script}


_ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "Wait."}
HABITS = {
    "copilot": Habits(
        ready="/ commands",
        resume=("--resume={}",),
        dialog="Do you want to run this command?",
        ask=(
            "ask_user",
            {
                "message": QUESTION,
                "requestedSchema": {
                    "type": "object",
                    "properties": {"cup": {"type": "string", "enum": ["red", "blue"]}},
                    "required": ["cup"],
                },
            },
        ),
        background=("bash", {"command": _COMMAND, "description": "Wait.", "mode": "async"}),
    ),
    "pi": Habits(
        ready="escape interrupt",
        resume=("--session", "{}"),
        options=("--model", "fake/fake-1"),
        untold=(RESUMED,),
    ),
    "omp": Habits(
        ready="⬢ Fake",
        resume=("--resume", "{}"),
        options=("--model", "fake/fake-1", "--approval-mode", "always-ask"),
        dialog="Allow tool: bash",
        ask=("ask", {"i": "choose", **_questions(id="cup", multi=False)}),
        # it writes a session with the first answer
        untold=(FIRST, *[f"{FIRST}, clock {change}" for change in ("+1 h", "-1 h")]),
    ),
    "claude-code": Habits(
        ready="❯",
        resume=("--resume", "{}"),
        options=("--permission-mode", "default"),
        dialog="Do you want to proceed?",
        ask=("AskUserQuestion", _questions(multiSelect=False)),
        background=(
            "Bash",
            {"command": _COMMAND, "description": "Wait.", "run_in_background": True},
        ),
        quits=("/exit", "\r"),
    ),
    "codex": Habits(
        ready="? for shortcuts",
        resume=("resume", "{}"),
        options=(
            *("-m", "gpt-6.1-sol", "-a", "on-request", "-s", "workspace-write"),
            *("-c", 'projects={"PROJECT"={trust_level="trusted"}}'),
            *("-c", "check_for_update_on_startup=false"),
        ),
        dialog="Would you like to run the following command?",
        call=_of_codex(**_ESCALATED),
        background=_of_codex(yield_time_ms=500, **_ESCALATED),
    ),
    "opencode": Habits(
        ready="fake-1",
        resume=("--session", "{}"),
        dialog="Permission required",
        ask=("question", _questions()),
        environment=(("OPENCODE_PERMISSION", '{"bash": "ask"}'),),
        quits=("/exit", "\r"),
    ),
    "gemini": Habits(
        ready="Type your message",
        resume=("--resume", "{}"),
        options=("-m", "gemini-2.5-flash"),
        dialog="Allow execution of",
        ask=("ask_user", _questions(type="choice")),
        background=(
            "run_shell_command",
            {"command": _COMMAND, "description": "Wait.", "is_background": True},
        ),
        names_call=False,
        untold=(QUESTIONS,),
    ),
    "qwen-code": Habits(
        ready="Type your message",
        resume=("--resume", "{}"),
        options=("--auth-type", "openai"),
        dialog="Allow execution of",
        ask=("ask_user_question", _questions(multiSelect=False)),
        background=(
            "run_shell_command",
            {"command": _COMMAND, "description": "Wait.", "is_background": True},
        ),
    ),
}


@dataclass(frozen=True)
class Cell:
    """A state that a client was driven into, and what `agents` said: '' if it was right, after so
    many seconds."""

    client: str
    state: str
    problem: str
    seconds: float


class Watched:
    """What `agents --watch --json` printed so far, with the time of each line."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        command = [sys.executable, "-c", COMMAND, "agents", "--watch", "--json"]
        self._process = subprocess.Popen(
            command, env=environment, cwd=directory, stdout=subprocess.PIPE, text=True
        )
        self.lines: list[tuple[float, dict[str, Any]]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def seconds_until(self, matches: Callable[[dict[str, Any]], bool], event: float) -> float:
        """Wait until the last line matches; return its age at the event, 0.0 if it came before.

        Raises TimeoutError."""
        while time.monotonic() < event + FOLLOW_SECONDS:
            if self.lines and matches(self.lines[-1][1]):
                return max(0.0, self.lines[-1][0] - event)
            time.sleep(0.02)
        raise TimeoutError

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(FOLLOW_SECONDS)
        self._reader.join(5)
        assert self._process.stdout
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.lines.append((time.monotonic(), json.loads(line)))


class Drive:
    """One client at a terminal on a machine of its own, and `agents` beside it."""

    def __init__(self, name: str, root: Path, place: Path, model: Any) -> None:
        self.name = name
        self.habits = HABITS[name]
        self.user = User(name, CLIENTS[name].program(root, place, model), model)
        self.program: Any = self.user.program
        self.environment = {
            **self.program.environment,
            "TERM": "xterm-256color",
            **dict(self.habits.environment),
        }
        self.cells: list[Cell] = []
        self.began = self.program.project / "began"
        (self.program.project / "wait.sh").write_text(_SCRIPT)
        self.watched = Watched(self.environment, self.program.home)
        self.terminal: Terminal | None = None
        self._id = self._asked = ""
        self._before = self._mark = 0

    def run(self) -> list[Cell]:
        """Drive the client into each state; return what `agents` said of them."""
        try:
            self._open()
            self._works_and_finishes("count the cups")
            self._asks_and_is_approved("wash the cups")
            self._asks_a_question("choose a cup")
            self._leaves_a_command("fill the cups")
            self._quits()
            self._open(resumed=True)
            self._expect(RESUMED, WAITS, time.monotonic())
            hold = self._prompt("count them again", held=True)
            self._expect("resumed, at work", WORKING, time.monotonic())
            self._terminal.kill()
            self._expect("kill -9", ENDED, time.monotonic())
            hold.released.set()
            self._open(resumed=True)
            hold = self._prompt("look at the cups", held=True)
            # it waited before, too
            self.watched.seconds_until(lambda line: line["state"] == WORKING, time.monotonic())
            hold.released.set()
            self._expect("resumed, its turn has ended", WAITS, self._answered())
            shutil.rmtree(self.program.project)
            self._expect("directory removed", GONE, time.monotonic())
        finally:
            self.close()
        return self.cells

    def close(self) -> None:
        """End the client, `agents`, and what the client left running."""
        if self.terminal:
            self.terminal.close()
        self.watched.close()
        _end_programs_below(self.program.home)

    @property
    def _terminal(self) -> Terminal:
        assert self.terminal
        return self.terminal

    def _open(self, *, resumed: bool = False) -> None:
        """Start the client in a terminal, in a new session or the one before."""
        if self.terminal:
            self.terminal.close()
        words = [*(self.habits.resume if resumed else ()), *getattr(self.program, "options", ())]
        words += [
            word.replace("PROJECT", str(self.program.project)) for word in self.habits.options
        ]
        command = [*self.program.command, *[word.replace("{}", self._id) for word in words]]
        self.terminal = Terminal(command, self.program.project, self.environment)
        self.terminal.wait(lambda: self._terminal.shows(self.habits.ready), "the input line")

    def _works_and_finishes(self, prompt: str) -> None:
        hold = self._prompt(prompt, held=True)
        self._expect(FIRST, WORKING, time.monotonic())
        self._expect_with_other_clocks(FIRST, WORKING)
        hold.released.set()
        self._expect("the turn has ended", WAITS, time.monotonic())
        self._expect_with_other_clocks("the turn has ended", WAITS)

    def _asks_and_is_approved(self, prompt: str) -> None:
        self.user.orders(prompt, self.habits.call or self.user.call(SHELL, _COMMAND))
        self._prompt(prompt)
        asked_at = self._answered()
        if self.habits.dialog:
            self._shown(self.habits.dialog)
            argument = _COMMAND if self.habits.names_call else ""
            self._expect("asks for approval", ASKS, asked_at, argument)
            self._expect_with_other_clocks("asks for approval", ASKS)
            self._terminal.press("\r")
        self._wait_for(self.began)
        self._expect("a command runs", WORKING, time.monotonic())
        self._finish_command()
        self._expect("its turn has ended", WAITS, self._answered(1))

    def _asks_a_question(self, prompt: str) -> None:
        if self.habits.ask:
            self.user.orders(prompt, self.habits.ask)
            self._prompt(prompt)
            asked_at = self._answered()
            self._shown(QUESTION)
            self._expect(QUESTIONS, WAITS, asked_at)
            self._terminal.press("\r")
            self._answered(1)

    def _leaves_a_command(self, prompt: str) -> None:
        if self.habits.background:
            self.user.orders(prompt, self.habits.background)
            self._prompt(prompt)
            if self.habits.dialog:
                self._shown(self.habits.dialog)
                time.sleep(DIALOG_SECONDS)
                self._terminal.press("\r")
            self._wait_for(self.began)
            self._expect("a command in the background", BACKGROUND, self._answered(1))
            self._finish_command()

    def _quits(self) -> None:
        for keys in self.habits.quits:
            self._terminal.press(keys)
            time.sleep(0.5)
        _until(lambda: self._terminal.has_ended, "the client to quit")
        self._expect("quit", ENDED, time.monotonic())

    def _prompt(self, prompt: str, *, held: bool = False) -> Any:
        """Type a prompt, and return its request at the model, which may be held."""
        hold = self.user.model.hold(prompt, _may_call) if held else None
        self._before, self._asked, self._mark = len(self._requests()), prompt, self._terminal.drawn
        self._terminal.enter(prompt)
        pressed = time.monotonic()

        def is_sent() -> bool:
            """Press Return again: some take a quick one for a part of pasted text."""
            nonlocal pressed
            if not self._turn() and time.monotonic() > pressed + AGAIN_SECONDS:
                self._terminal.press("\r")
                pressed = time.monotonic()
            return bool(self._turn())

        self._terminal.wait(is_sent, f"the request for {prompt!r}")
        return hold

    def _answered(self, calls: int = 0) -> float:
        """Wait until the model has answered the last prompt after so many calls; return the time."""
        self._terminal.wait(lambda: self._answer_times()[calls:] != [], "the answer")
        return self._answer_times()[calls]

    def _answer_times(self) -> list[float]:
        """Return when the model answered the requests of the last prompt so far."""
        return [each.answered_at for each in self._turn() if each.answered_at]

    def _turn(self) -> list[Any]:
        """Return the requests of the last prompt, without titles and other chores."""
        sent = self._requests()[self._before :]
        return [each for each in sent if self._asked in json.dumps(each.body) and _may_call(each)]

    def _requests(self) -> list[Any]:
        with self.user.model.lock:
            return list(self.user.model.requests)

    def _shown(self, text: str) -> None:
        """Wait until a text shows, drawn since the last prompt."""
        self._terminal.wait(lambda: self._terminal.shows(text, self._mark), repr(text))

    def _wait_for(self, path: Path) -> None:
        self._terminal.wait(path.exists, str(path))

    def _finish_command(self) -> None:
        (self.program.project / "go").touch()
        self._terminal.wait(lambda: not self.began.exists(), "the command's end")

    def _expect(self, state: str, name: str, event: float, argument: str = "") -> None:
        """Note whether `agents` says that a session is in the state `name`, and when it did so."""

        def is_right(line: dict[str, Any]) -> bool:
            return line["state"] == name and (not argument or line["argument"] == argument)

        try:
            seconds = self.watched.seconds_until(is_right, event)
        except TimeoutError:
            last = self.watched.lines[-1][1] if self.watched.lines else {}
            seconds, problem = FOLLOW_SECONDS, f"--watch said {_told(last)}"
        else:
            time.sleep(max(0.0, event + STEADY_SECONDS - time.monotonic()))
            problem = self._problem_of_a_reading(is_right, name)
        if self.watched.lines:
            self._id = self.watched.lines[-1][1]["id"]
        self.cells.append(Cell(self.name, state, problem, seconds))

    def _expect_with_other_clocks(self, state: str, name: str) -> None:
        for seconds in CLOCK_SECONDS:
            problem = self._problem_of_a_reading(
                lambda line: bool(line["state"] == name), name, clock=seconds
            )
            self.cells.append(
                Cell(self.name, f"{state}, clock {seconds // 3600:+} h", problem, 0.0)
            )

    def _problem_of_a_reading(
        self, is_right: Callable[[dict[str, Any]], bool], name: str, clock: int = 0
    ) -> str:
        """Return what `agents --json` says wrongly; '' if it lists the session as it is."""
        code = _CLOCK.format(clock) + COMMAND
        done = subprocess.run(
            [sys.executable, "-c", code, "agents", "--json"],
            env=self.environment,
            cwd=self.program.home,
            capture_output=True,
            text=True,
            check=True,
        )
        agents = json.loads(done.stdout)["agents"]
        if name == ENDED:
            return f"open: {[_told(each) for each in agents]}" if agents else ""
        if len(agents) != 1:
            return f"{len(agents)} open sessions"
        return "" if is_right(agents[0]) else f"--json said {_told(agents[0])}"


def _told(line: dict[str, Any]) -> str:
    return " ".join(str(line.get(key) or "") for key in ("state", "tool", "argument", "reason"))


def _may_call(request: Any) -> bool:
    """Return whether the model may answer a request with calls."""
    given = [item.get("type") for item in request.body.get("input", ()) if isinstance(item, dict)]
    has_tools = bool(request.body.get("tools")) or "additional_tools" in given
    return has_tools and request.body.get("stream") is not False


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + FOLLOW_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


def _end_programs_below(home: Path) -> None:
    """End the programs that a client installed below its home and left running."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "exe").startswith(f"{home}/"):
                os.kill(int(process.name), signal.SIGKILL)


def drive(name: str, root: Path, place: Path) -> list[Cell]:
    """Drive a client, installed at `place`, into each state once."""
    with CLIENTS[name].model() as model:
        return Drive(name, root, place, model).run()


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines of a Markdown table: a row for each state of a client."""
    yield "| Client | State | Right | Median | Worst |"
    yield "|---|---|---|---|---|"
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.client, cell.state), []).append(cell)
    for (client, state), found in rows.items():
        right = [cell.seconds for cell in found if not cell.problem]
        times = [f"{median(right):.1f} s", f"{max(right):.1f} s"] if right else ["-", "-"]
        yield " | ".join([f"| {client}", state, f"{len(right)}/{len(found)}", *times]) + " |"
    wrong = {f"{cell.client}, {cell.state}: {cell.problem}" for cell in cells if cell.problem}
    yield from sorted(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", choices=[*HABITS, []], help="all by default")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for name in arguments.clients or HABITS:
        cells: list[Cell] = []
        place = npm.place_of(CLIENTS[name].package)
        for _ in range(arguments.rounds):
            with tempfile.TemporaryDirectory() as root:
                cells += drive(name, Path(root), place)
        print(f"\n{place.name}\n", *table(cells), sep="\n", flush=True)


if __name__ == "__main__":
    main()
