"""The hooks as programs that a runtime starts: JSON on stdin, at most one JSON object on stdout.

They fail open: if anything goes wrong, they print nothing, log one line in the home's hook.log, and
exit with 0.
"""

from __future__ import annotations

import sys

from ...common.system.deadline import Deadline, DeadlineError
from ...common.system.files import UNFINISHED, is_file, os
from ...common.system.json import decode, encode
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.table import runtime as runtime_of
from ...sessions.runtimes.table import sender_of
from ...sessions.settings.homes import (
    ENV_GUARD,
    Home,
    environment,
    naming,
    person_home,
    runtime_home,
)
from .context import MISSED, context_of, home_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .context import Context, Event

HOME_OPTION = "--home"  # names the agent home in the command of a hook
# other runtimes use its plugins and hooks too, and their events show who sent them
_FIRST = "agent-sdk"
FINISH_SECONDS = 30.0  # writing all that a prompt can read takes about one


def user_prompt_submit() -> None:
    """Run the hook UserPromptSubmit: report the other sessions' activity."""
    _answer_prompt()


def before_agent_start() -> None:
    """Run the hook for Pi, whose extension starts it before the agent answers a prompt."""
    _answer_prompt("pi")


def pre_tool_use() -> None:
    """Run the hook PreToolUse, and Pi's `tool_call`.

    It reports collisions over the file to be edited."""
    from .tool_call import answer, is_answered

    _run(is_answered, answer, is_waited_for=True, tries=2)


def post_tool_use_failure() -> None:
    """Run the hook PostToolUseFailure: name the file that a call looked for in the wrong place."""
    from .failed_call import answer, is_answered

    _run(is_answered, answer, is_waited_for=True)


def subagent_start() -> None:
    """Run the hook SubagentStart: report the facts that concern a sub-agent's task."""
    from ._sub_agent import answer, is_answered

    _run(is_answered, answer, is_waited_for=True)


def session_start() -> None:
    """Run the hook SessionStart: note where a fork begins, and inject the session's past."""
    from ._session_start import answer, is_answered

    _run(is_answered, answer, with_upkeep=True, is_waited_for=True)


def pre_compact() -> None:
    """Run the hook PreCompact: archive the conversation before it is compacted.

    It never prints, because the output would become part of the summariser's instructions."""
    from .session_end import end

    _run(lambda event, runtime: True, end)


def session_end() -> None:
    """Run the hook SessionEnd, which has 1.5 s: archive in a separate process."""
    from .session_end import end_in_background, is_left_or_compacted

    _run(is_left_or_compacted, end_in_background, with_upkeep=True)


def session_waits() -> None:
    """Run the hooks Stop and PermissionRequest: send a notice from a separate process.

    The event alone does not show whether the session waits: a turn may go on."""
    _run(_wants_notices, _start_notice)


def pi_archive() -> None:
    """Run Pi's `session_before_compact` and `session_shutdown`.

    Pi's extension kills a hook that takes long."""
    from .session_end import end_in_background, is_left_or_compacted

    _run(is_left_or_compacted, end_in_background, "pi", with_upkeep=True)


def pi_session_start() -> None:
    """Answer Pi's `session_start`: tell the extension to show the status line, if the settings turn
    it on."""

    def answer(context: Context) -> None:
        if context.settings.statusline:
            _printer(context)({"statusLine": True})

    _run(lambda event, runtime: True, answer, "pi", with_upkeep=True)


def status_line() -> None:
    """Print a session's status line, for the runtime that the event or first argument names.

    It may run every few seconds, so errors are not logged."""
    from ..activity.status_line import WaitingSessions
    from ..activity.status_line import status_line as line_of

    try:
        environ = environment()
        fields = decode(sys.stdin.buffer.read().decode("utf-8", "replace"))
        runtime = runtime_of(fields.get("runtime") or (sys.argv[1:] or [_FIRST])[0])
        event = {**fields, "cwd": fields.get("cwd") or fields["workspace"]["current_dir"]}
        if not str(event.get("transcript_path")).endswith(".jsonl"):  # Copilot names the directory
            event.pop("transcript_path", None)
        context = context_of(event, environ, runtime, home_of(event, environ, runtime))
        line = line_of(context.cursor_file) if context.settings.statusline else ""
        sessions = None
        if context.settings.statusline and not context.home.is_isolated:
            sessions = WaitingSessions(person_home(environ).waiting_file)
            line = " · ".join(filter(None, [sessions.text(context.session_id), line]))
        if line:
            sys.stdout.buffer.write(f"{line}\n".encode())
            sys.stdout.buffer.flush()
        if sessions and sessions.must_count():
            from .upkeep_start import start_script

            start_script("/hooks/waiting.py")
    except Exception:
        pass
    os._exit(0)


def _answer_prompt(runtime_name: str = _FIRST) -> None:
    from .prompt import answer, is_typed

    def answer_any(context: Context, print_answer: Callable[[dict[str, object]], None]) -> None:
        if not is_typed(context.event, context.runtime):
            return
        if context.runtime.sub_agent(context.event):
            from ._sub_agent import answer as answer_start

            answer_start(context, print_answer)
        else:
            context.writes_later = hasattr(os, "fork")
            answer(context, print_answer)

    _run(lambda event, runtime: True, answer_any, runtime_name, is_waited_for=True)


def _run(
    is_answered: Callable[[Event, Runtime], bool],
    answer: Callable[..., object],
    runtime_name: str = _FIRST,
    *,
    with_upkeep: bool = False,
    is_waited_for: bool = False,
    tries: int = 1,
) -> None:
    """Read an event, answer it if `is_answered` says so, and end the process.

    `with_upkeep`, or the setting `upkeep_minutes`, then starts the store's upkeep. A hook that
    `is_waited_for` prints its answer; at the deadline it prints the part that is ready. If not even
    the context was known at the deadline, there are more `tries`. The event comes from the runtime
    `runtime_name`, unless it names or shows another sender, because several runtimes use Claude
    Code's plugins."""
    environ: Mapping[str, str] = environment()
    if not environ.get(ENV_GUARD):
        given = _Given(runtime_name, environ)
        context, deadline = None, given.deadline
        try:
            given.read()
            context = given.context(is_answered, tries, is_waited_for=is_waited_for)
            try:
                if context is not None:
                    context.note_active()
                    answer(context, *([_printer(context)] if is_waited_for else []))
            finally:
                if context is not None and (with_upkeep or context.settings.upkeep_minutes):
                    _start_upkeep(context)
        except BaseException as error:
            deadline.end()
            if isinstance(error, DeadlineError):
                deadline.late.append("all of it")
            if given.home is not None:
                _log_fault(given.home, given.event_name, error)
        deadline.end()
        if context is not None:
            _note_end(context, given.event_name)
        _finish_files()
    os._exit(0)


class _Given:
    """The event that a runtime gave to the hook: its name, its `home` if known, its `deadline`."""

    def __init__(self, runtime_name: str, environ: Mapping[str, str]) -> None:
        self.home: Home | None = None
        self.event_name = "hook"
        self.deadline = Deadline()
        self._runtime_name = runtime_name
        self._environ = environ
        self._content = b""

    def read(self) -> None:
        """Read the event's JSON from stdin."""
        runtime = runtime_of(self._runtime_name)
        directory = runtime.config_dir(self._environ)
        self.home = runtime_home(directory, runtime.USUAL_DIR, self._environ)
        self._content = sys.stdin.buffer.read()

    def context(
        self, is_answered: Callable[[Event, Runtime], bool], tries: int, *, is_waited_for: bool
    ) -> Context | None:
        """Return the context of the event, or None if the event is not to be answered.

        For a hook that `is_waited_for`, the deadline starts with each of the `tries`. Raises
        ValueError, SessionMemoryError, DeadlineError."""
        while True:
            try:
                if is_waited_for:
                    self.deadline.start()
                return self._try_context(is_answered)
            except DeadlineError:
                tries -= 1
                if not tries:
                    raise

    def _try_context(self, is_answered: Callable[[Event, Runtime], bool]) -> Context | None:
        environ, event = self._environ, decode(self._content.decode("utf-8", "replace"))
        if not isinstance(event, dict):
            raise ValueError("stdin does not contain a JSON object")
        self.event_name = str(event.get("hook_event_name", self.event_name))
        sender = sender_of(event, environ, runtime_of(event.get("runtime", self._runtime_name)))
        if sender is None or not is_answered(event, sender):
            return None
        named = _named_home(sys.argv)
        environ = naming(named, environ)
        self.home = home_of(event, environ, sender)
        if named and self.home.sessions_dir:
            from ...sessions.settings.registry import register_named

            try:
                register_named(self.home.root, environ)
            except OSError:  # the next hook does
                pass
        return context_of(event, environ, sender, self.home, self.deadline)


def _log_fault(home: Home, event_name: str, error: BaseException) -> None:
    try:
        from .log import HookLog

        HookLog(home).write_fault(event_name, error)
    except Exception:  # the log redacts, and a part of the program that redacting needs is missing
        pass


def _named_home(words: list[str]) -> str:
    """Return the directory that a hook's command names with `--home`, or ''.

    The settings in an agent home have such commands. In a copy of the home, they name the copy."""
    path = words[2].rstrip("/") if words[1:2] == [HOME_OPTION] and len(words) > 2 else ""
    if path.endswith("/.."):
        path = path[:-3].rpartition("/")[0]
    return path if path.startswith("/") or path[1:2] == ":" else ""


def _note_end(context: Context, event_name: str) -> None:
    """Log errors, and note whether the event missed its deadline."""
    late = context.deadline.late
    try:
        if context.deadline.notes:
            from .prompt import write_notes

            write_notes(context, event_name)
        if context.session and (late or is_file(context.home.state_dir + MISSED)):
            from .log import MOST_EVENT_CHARACTERS, note_deadline

            note_deadline(context.home, context.session, event_name[:MOST_EVENT_CHARACTERS], late)
    except Exception:  # there is no other place to report it
        pass


def _finish_files() -> None:
    """Write what the hook has left unwritten, in a process that nobody waits for.

    The kernel ends it after FINISH_SECONDS, even while it waits for a file."""
    left = [file for file in UNFINISHED.values() if not file.is_finished]
    UNFINISHED.clear()
    if not left:
        return
    from _signal import ITIMER_REAL, SIG_DFL, SIGALRM, setitimer, signal

    from .upkeep_start import detach

    try:
        if not detach():
            return
    except OSError:  # no further process may start, so the next prompt finds the same
        return
    try:
        signal(SIGALRM, SIG_DFL)  # a handler of Python's would wait for a C library's call
        setitimer(ITIMER_REAL, FINISH_SECONDS)
        for file in left:
            file.finish()
    finally:
        os._exit(0)


def _start_upkeep(context: Context) -> None:
    from .upkeep_start import start_upkeep

    if context.settings.shared_url:
        from ...sessions.transcripts.remote_sessions import note_start

        note_start(context.home.remote_start(context.directory), context.directory)
    start_upkeep(context.home, context.settings.upkeep)


def _wants_notices(event: Event, runtime: Runtime) -> bool:
    """Check if the person wants notices. Only their own settings count."""
    return person_home(environment()).settings().wants_notice_hooks


def _start_notice(context: Context) -> None:
    """Start the process that sends a notice if the session waits. A group has no person.

    Raises OSError."""
    from .upkeep_start import start_script

    if not context.home.is_isolated:
        start_script("/hooks/notice.py", context.session_id)


def _printer(context: Context) -> Callable[[dict[str, object]], None]:
    """Return the function that prints a hook's answer.

    It ends the deadline, because printed text must also be committed."""

    def print_answer(answer: dict[str, object]) -> None:
        context.deadline.end()
        sys.stdout.buffer.write(encode(answer).encode() + b"\n")
        sys.stdout.buffer.flush()

    return print_answer
