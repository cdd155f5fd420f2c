"""Notices that a session begins to wait for its user: each once, by the person's own settings.

A hook leaves them to a watcher that claims to see all sessions."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ..awareness.events.log import HookLog
from ..common.errors import LockedError, described
from ..common.system.files import lock, make_private_dir, names_in, path_stamp
from ..common.system.leftover_files import remove_old_files
from ..common.system.terminal import ring_bell
from ..common.text.sanitize import shortened
from ..sessions.settings.homes import person_home
from ..sessions.settings.program import leave_session, stay_with_version
from ..sessions.states import WAITS, State
from .active_sessions import ActiveSession
from .session_reader import SessionReader

TEXT_CHARACTERS = 200
SECONDS = 10.0  # in which a program has to show a notice
_POLL_SECONDS = 0.05
KEPT_SECONDS = 86_400.0  # of the record that a notice was sent
_RECORD = re.compile("^[0-9a-f]{32}$")
_CLAIM = "watcher-"  # begins the name of a file that a watcher locks
CLAIMED_SECONDS = 10.0  # since a watcher renewed its claim; one that was suspended sends nothing
NEWS_SECONDS = 60.0  # later, nobody is told that a session began to wait
_EVENT = "notice"  # in the log
WAITING_SECONDS = 10.0  # from a hook's event until the runtime has written that its session waits
_FIRST_PAUSE, _LAST_PAUSE = 0.1, 1.0
_LOCK_SECONDS = 0.1  # several hooks look at the same file for a moment
_OSASCRIPT = (
    "on run words",
    'display notification (item 1 of words) with title "session-memory"',
    "end run",
)


class Notices:
    """Sends notices as the settings in the person's home directory say; no repository can.

    Several watchers send each notice once together. `note` gets the reason if one cannot be sent."""

    def __init__(self, environ: Mapping[str, str], note: Callable[[str], None]) -> None:
        home = person_home(environ)
        settings = home.settings()
        self._directory = f"{home.state_dir}/notices"
        self._note = note
        self._has_failed = False
        self._is_closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self._claim = -1
        self._states: dict[str, State] | None = None
        self._followed_at = 0.0
        self.has_bell = settings.notices == "bell"
        self._command = _command(settings.notices, settings.notice_command, environ)
        self.is_on = settings.notices != "off"
        if settings.notices == "command" and not self._command:
            note("notices: the setting notice_command is empty")
        elif settings.notices == "desktop" and not self._command:
            note("notices: neither notify-send nor osascript is installed")

    def follow(self, sessions: Sequence[ActiveSession]) -> None:
        """Send a notice for each session that began to wait since the last call.

        The first call sends nothing, and so does a call long after the last one, as of a page that
        is opened again. Neither does a session that its user has just opened."""
        before, self._states = self._states, {each.id: each.state for each in sessions}
        last_at, self._followed_at = self._followed_at, time.monotonic()
        if before is None or self._followed_at - last_at > NEWS_SECONDS:
            return
        for session in sessions:
            state, last = session.state, before.get(session.id)
            was_ended = last.has_ended if last else session.last_at < time.time() - NEWS_SECONDS
            is_opened = was_ended and state.name == WAITS
            if not (is_opened or (last is not None and last.news == state.news)):
                self.send_if_waiting(session)

    def send_if_waiting(self, session: ActiveSession) -> bool:
        """Send a notice if a session waits for its user, and return whether it does."""
        state = session.state
        if state.needs_user:
            parts = [f"{state.name}: {session.place}", session.doing or session.request]
            key = session.id, state.name, round(state.since), state.argument
            self.send(": ".join(filter(None, parts)), key)
        return state.needs_user

    def claim(self) -> None:
        """Tell hooks that this watcher sees all sessions, so they send nothing.

        Renew the claim often. It ends with the process."""
        if not self.is_on:
            return
        path = f"{self._directory}/{_CLAIM}{os.getpid()}"
        try:
            make_private_dir(self._directory)
            if self._claim < 0:
                self._claim = lock(path, _LOCK_SECONDS)
            os.utime(self._claim)
        except (OSError, LockedError):
            pass  # hooks then send too, each notice once

    def is_claimed(self) -> bool:
        """Check if a watcher sees all sessions and sends their notices."""
        for name in names_in(self._directory):
            path = f"{self._directory}/{name}"
            if not name.startswith(_CLAIM):
                continue
            try:
                os.close(lock(path, _LOCK_SECONDS))
                os.unlink(path)  # its watcher has ended
            except LockedError:
                if abs(time.time() - path_stamp(path)[2] / 1e9) < CLAIMED_SECONDS:
                    return True
            except OSError:
                pass
        return False

    def send(self, text: str, key: Iterable[object]) -> None:
        """Send a notice unless one with the same key was sent. It waits for nothing."""
        if not (self.is_on and self._is_first(" ".join(map(str, key)))):
            return
        if self.has_bell:
            ring_bell()
        elif self._command:
            words = [*self._command, shortened(text, TEXT_CHARACTERS)]
            thread = threading.Thread(target=self._run, args=(words,), daemon=True)
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            thread.start()

    def finish(self) -> None:
        """Wait until all notices are shown, or their time is over."""
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """End the programs that still run, with the processes that they started, and the claim."""
        self._is_closed.set()
        self.finish()
        if self._claim >= 0:
            os.close(self._claim)

    def _is_first(self, key: str) -> bool:
        """Record that a notice is sent; return False if another watcher did."""
        name = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]
        try:
            make_private_dir(self._directory)
            remove_old_files(self._directory, _RECORD, KEPT_SECONDS)
            os.close(os.open(f"{self._directory}/{name}", os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        except OSError as error:
            self._report(error)
        return True

    def _run(self, words: Sequence[str]) -> None:
        """Run a program in a process group of its own, which ends with its time or this object."""
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._report(error)
            return
        until = time.monotonic() + SECONDS
        while process.poll() is None:
            is_late = time.monotonic() >= until
            if is_late or self._is_closed.wait(_POLL_SECONDS):
                os.killpg(process.pid, signal.SIGKILL)  # it was not waited for, so the group exists
                process.wait()
                if is_late:
                    self._report(subprocess.TimeoutExpired(words, SECONDS))
                return
        if process.returncode:
            self._report(subprocess.CalledProcessError(process.returncode, words))

    def _report(self, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._note(f"a notice cannot be sent: {described(error)}")


def main(words: list[str]) -> None:
    """Send a notice if the session whose id is the first argument begins to wait.

    A hook that saw the session stop or ask starts this in a process of its own. Errors go to the
    log of the person's home."""
    stay_with_version()
    leave_session()
    log = HookLog(person_home(os.environ))
    try:
        notices = Notices(os.environ, partial(log.write, _EVENT))
        if notices.is_on and not notices.has_bell and not notices.is_claimed():
            _send_once_waiting(words[0], notices)
            notices.finish()
    except Exception as error:  # nobody waits for this process
        log.write_fault(_EVENT, error)


def _send_once_waiting(session_id: str, notices: Notices) -> None:
    """Look at a session again and again until it waits, or the time is over."""
    reader = SessionReader(None, os.environ, delivery_seconds=0.0, only=session_id)
    until, pause = time.monotonic() + WAITING_SECONDS, _FIRST_PAUSE
    while not any(map(notices.send_if_waiting, reader.read(time.time()))):
        if time.monotonic() >= until:
            return
        time.sleep(pause)
        pause = min(2 * pause, _LAST_PAUSE)


def _command(kind: str, command: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the program that shows a notice, with its arguments; [] without one."""
    if kind == "command":
        return list(command)
    if kind != "desktop":
        return []
    directories = [each for each in environ.get("PATH", "").split(os.pathsep) if each[:1] == "/"]
    path = os.pathsep.join(directories)  # never the current directory, which may be a repository
    if program := shutil.which("notify-send", path=path):
        return [program, "--app-name=session-memory", "--"]
    if program := shutil.which("osascript", path=path):
        return [program, *[word for line in _OSASCRIPT for word in ("-e", line)]]
    return []
