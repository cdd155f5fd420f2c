"""The host's service: gives messages and tasks to the groups' workers, and replies to channels."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

from ...app.tools.values import RefusedError
from ...awareness.events.log import notices
from ...awareness.events.upkeep_start import SCRIPT, is_due
from ...common.errors import ConfigError, SessionMemoryError
from ...common.text.format import counted
from ...history.archives.writer import open_sessions
from ...memory.shared_store import SharedPool
from ...sessions.settings.check import FileCheck
from ...sessions.settings.homes import home_at
from ...sessions.settings.host_layout import Group, Layout
from ...sessions.settings.program import source_dir
from . import _agent as agent
from . import _ipc as ipc
from ._group_files import prepare_host
from ._group_skills import sync_skills
from ._kept_transcripts import restore_if_gone
from ._ledger import Ledger
from ._log import HostLog
from ._values import LOCAL, ChatReply
from ._worker import Worker
from .administration import HostAdministration
from .channels.channel import Channel, Chats, NotYetError, channels_in
from .channels.telegram import Telegram
from .channels.unix_socket import UnixSocket
from .group_backend import GroupBackend
from .settings import HostSettings

POLL_SECONDS, IDLE_SECONDS = 0.05, 0.5  # while agents run, and without one
REQUEST_SECONDS = 0.2
UNREADABLE_SECONDS = 30.0  # until a group's requests are looked at again
CLOCK_SECONDS = 1.0
FIRST_UPKEEP_SECONDS, UPKEEP_POLL_SECONDS = 3.0, 30.0  # not while the host starts
AGAIN_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 300.0
LAST_TURN_SECONDS = 20.0

# the channels that are part of the program, by their names in `host.channels`
SHIPPED: dict[str, Callable[[str, HostSettings, Chats], Channel]] = {"telegram": Telegram}


class Host:
    """The program that serves the host in `layout`, one at a time (see `log.host_lock`)."""

    def __init__(self, layout: Layout, show: Callable[[str, bool], None]) -> None:
        self._layout = layout
        self._log = HostLog(layout.log_file, show)
        prepare_host(layout)
        _check_readable(layout.config_file)
        settings = home_at(layout.root, os.environ, is_host=True).settings()
        self._config = HostSettings(**settings.host)
        self._sessions = open_sessions(layout)
        self._pool = SharedPool()
        self._ledger = Ledger(layout.database)
        homes = [layout.group(group.folder).memory_home for group in self._ledger.groups()]
        for fault in dict.fromkeys(
            [*settings.faults, *[notice for home in homes for notice in notices(home)]]
        ):
            self._log.fault(fault)
        self._chats = chats = Chats(self._ledger, self._wake, self._log)
        self._channels: list[Channel] = [
            UnixSocket(layout.socket, chats),
            *self._shipped_channels(chats),
            *channels_in(layout.root + "/channels", chats),
        ]
        self._is_new, self._is_answered = asyncio.Event(), asyncio.Event()
        self._workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self._waiting: dict[str, None] = {}
        self._not_before: dict[str, float] = {}
        self._answering: dict[str, asyncio.Task[None]] = {}
        self._is_stopping = False
        self._heard = self._ledger.last_arrival()

    def _shipped_channels(self, chats: Chats) -> Iterator[Channel]:
        for name in dict.fromkeys(self._config.channels):
            if name in SHIPPED:
                yield SHIPPED[name](self._layout.root, self._config, chats)
            else:
                known = ", ".join(SHIPPED)
                self._log.fault(f"host.channels: unknown channel {name!r}; known: {known}")

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Running turns then have LAST_TURN_SECONDS to end, or until the next signal; the next run
        resumes the rest."""
        stopped = asyncio.Semaphore(0)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.release)
        loops = [
            self._start_tasks,
            self._watch,
            self._dispatch,
            self._deliver,
            self._answer_requests,
        ]
        loops += [self._do_upkeep]
        loops += [channel.serve for channel in self._channels]
        served = counted(len(self._ledger.groups()), "group")
        self._log.event(f"serving {served}, {self._config.wall}")
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._keep_up(loop)) for loop in loops
        ]
        try:
            await stopped.acquire()
            self._is_stopping = True
            ends = [asyncio.create_task(self._end_turns()), asyncio.create_task(stopped.acquire())]
            tasks += ends
            await asyncio.wait(ends, timeout=LAST_TURN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks += [*[task for _, task in self._workers.values()], *self._answering.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._pool.close()
            self._sessions.close()
            self._ledger.close()

    async def _end_turns(self) -> None:
        """Wait until no turn is running."""
        for worker, _ in self._workers.values():
            worker.finish()
        await asyncio.gather(*[task for _, task in self._workers.values()], return_exceptions=True)

    async def _keep_up(self, loop: Callable[[], Awaitable[None]]) -> None:
        """Run one of the loops forever: log an error and restart the loop after a growing pause."""
        pause = AGAIN_SECONDS
        while True:
            began = time.monotonic()
            try:
                await loop()
            except Exception as error:
                self._log.fault(
                    f"{getattr(loop, '__qualname__', loop)}: {type(error).__name__}: {error}"
                )
            pause = (
                AGAIN_SECONDS
                if time.monotonic() - began > pause
                else min(2 * pause, LONGEST_PAUSE_SECONDS)
            )
            await asyncio.sleep(pause)

    def _wake(self) -> None:
        self._is_new.set()
        self._is_answered.set()
        self._chats.tell()

    async def _start_tasks(self) -> None:
        """Start the due tasks; wake the host for prompts and replies whose delay is over."""
        while True:
            for ended in self._ledger.schedule.start_due():
                self._log.fault(ended)
            self._wake()
            await asyncio.sleep(CLOCK_SECONDS)

    async def _watch(self) -> None:
        """Wake the host when this or another program has changed the database."""
        version = (-1, -1)
        while True:
            now = self._ledger.version()
            if now != version:
                version = now
                self._wake()
            await self._pause(POLL_SECONDS, IDLE_SECONDS)

    async def _dispatch(self) -> None:
        """Give every group with work a worker, as many at once as the settings allow."""
        while True:
            await self._is_new.wait()
            self._is_new.clear()
            self._tell_arrivals()
            for name in sorted(self._ledger.ready_groups()):
                if name in self._workers:
                    self._workers[name][0].poke()
                else:
                    self._waiting.setdefault(name)
            while (
                not self._is_stopping
                and self._waiting
                and len(self._workers) < self._config.groups_at_once
            ):
                name = next(iter(self._waiting))
                del self._waiting[name]
                self._start_worker(name)
            if self._waiting:
                for worker, _ in self._workers.values():
                    worker.make_room()

    def _tell_arrivals(self) -> None:
        for position, group, name, length in self._ledger.arrivals(self._heard):
            self._heard = position
            sender = f" from {name}" if name else ""
            self._log.event(f"{group}: message{sender}, {counted(length, 'character')}")

    def _start_worker(self, name: str) -> None:
        try:
            group = self._layout.group(name)
        except SessionMemoryError as error:
            return self._log.fault(str(error))
        worker = Worker(
            group, self._ledger, self._sessions, self._config, self._start_agent, self._log
        )
        self._workers[name] = (worker, asyncio.create_task(self._work(worker)))

    async def _work(self, worker: Worker) -> None:
        name = worker.group.name
        try:
            await worker.work()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._log.fault(f"{name}: {type(error).__name__}: {error}")
            await asyncio.sleep(AGAIN_SECONDS)
        finally:
            del self._workers[name]
            self._wake()

    def _start_agent(
        self, group: Group, name: str, resume: str | None, tell: Callable[[agent.Event], None]
    ) -> agent.Agent:
        self._write_snapshots(group.name)
        if resume:
            self._restore_transcript(group, resume)
        try:
            sync_skills(self._layout, group)
        except (SessionMemoryError, OSError) as error:  # it works without them, too
            self._log.fault(f"{group.name}: skills: {error}")
        return agent.start(
            self._layout, group, self._config, self._backend(group.name), name, resume, tell
        )

    def _restore_transcript(self, group: Group, session_id: str) -> None:
        """Restore the transcript of a group's active session if it is gone and was kept."""
        with suppress(RefusedError):  # the runtime then refuses, and a new session begins
            if restored := restore_if_gone(self._layout, group, session_id):
                self._log.event(f"{group.name}: {session_id}:{restored}")

    def _write_snapshots(self, group: str) -> None:
        tasks = [task.row() for task in self._ledger.schedule.tasks()]
        last = {chat.jid: chat.last_activity for chat in self._ledger.chats()}
        chats = [
            {**group._asdict(), "last_activity": last.get(group.jid, "")}
            for group in self._ledger.groups()
        ]
        chats += [{**chat._asdict(), "folder": ""} for chat in self._ledger.strangers()]
        backend = self._backend(group)
        ipc.write_snapshots(self._layout, group, self._sessions, tasks, chats, backend.audiences)

    def _backend(self, group: str) -> GroupBackend:
        """Return the backend of the tools of a group's agent."""
        administration = HostAdministration(self._layout, group)
        return GroupBackend(
            self._layout, group, self._sessions, administration=administration, pool=self._pool
        )

    async def _deliver(self) -> None:
        """Send replies to their chats, in order within each chat."""
        while True:
            held_up: set[str] = set()
            await self._is_answered.wait()
            self._is_answered.clear()
            while waiting := self._ledger.undelivered(held_up):
                for reply in waiting:
                    if reply.jid not in held_up and not await self._sent(reply):
                        held_up.add(reply.jid)

    async def _sent(self, reply: ChatReply) -> bool:
        """Send a reply and return whether its chat has it.

        Local chats always do, because they read the database."""
        if self._not_before.get(reply.jid, 0.0) > time.monotonic():
            return False
        try:
            for channel in self._channels:
                if channel.PREFIX and reply.jid.startswith(channel.PREFIX):
                    await channel.deliver(reply)
                    break
            else:
                if not reply.jid.startswith(LOCAL):
                    raise SessionMemoryError(f"no channel has the chat {reply.jid}")
        except NotYetError as error:
            self._log.event(f"{reply.jid}: reply {reply.id} waits: {error}")
            self._not_before[reply.jid] = time.monotonic() + error.seconds
            return False
        except Exception as error:
            self._log.fault(f"{reply.jid}: reply {reply.id} was not delivered: {error}")
            self._not_before[reply.jid] = time.monotonic() + AGAIN_SECONDS
            return False
        self._ledger.mark_delivered(reply.id)
        return True

    async def _do_upkeep(self) -> None:
        """Periodically start a process that ingests the groups' sessions and makes memories."""
        home = home_at(self._layout.root, os.environ, is_host=True)
        await asyncio.sleep(FIRST_UPKEEP_SECONDS)
        while True:
            if home.settings().upkeep == "sessions" and is_due(home, time.time()):
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-I",
                    f"{source_dir()}{SCRIPT}",
                    home.root,
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    stderr=DEVNULL,
                    start_new_session=True,
                )
                try:
                    await process.wait()
                finally:
                    with suppress(ProcessLookupError):
                        process.terminate()  # the next one goes on
            await asyncio.sleep(UPKEEP_POLL_SECONDS)

    async def _answer_requests(self) -> None:
        """Answer the file requests of agents without a database.

        A slow request delays only its own group."""
        while True:
            names = [group.folder for group in self._ledger.groups()]
            for name in names:
                is_busy = name in self._answering and not self._answering[name].done()
                if not is_busy and ipc.has_requests(self._layout, name):
                    self._answering[name] = asyncio.create_task(self._answer_group(name))
            await self._pause(REQUEST_SECONDS, CLOCK_SECONDS)

    async def _answer_group(self, name: str) -> None:
        try:
            if await asyncio.to_thread(
                ipc.answer_requests, self._layout, name, self._backend(name)
            ):
                self._write_snapshots(name)
        except FileNotFoundError:  # a group that has not worked yet has no directory for them
            pass
        except Exception as error:
            self._log.fault(f"{name}: requests: {type(error).__name__}: {error}")
            await asyncio.sleep(UNREADABLE_SECONDS)

    async def _pause(self, seconds: float, idle_seconds: float) -> None:
        """Wait before a loop looks again: longer while no agent runs."""
        await asyncio.sleep(seconds if self._workers else idle_seconds)


def _check_readable(config_file: str) -> None:
    """Raise ConfigError if the host's settings are unreadable, because they may require a wall."""
    for fault in FileCheck(config_file).faults:
        if not fault.key:
            raise ConfigError(fault.text, "repair it; a host does not run with unknown settings")
