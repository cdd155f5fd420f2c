"""A group's worker: gives prompts to the agent, one session at a time, and records the replies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from ...common.errors import SessionMemoryError
from ...common.text.format import counted, one_line
from ...common.text.paths import is_name
from ...common.text.sanitize import for_people, shortened
from ...common.text.timestamps import epoch_seconds
from ...history.archives.writer import archive_group_session
from ...sessions.settings.host_layout import Group
from ...sessions.transcripts.pointers import SessionManager
from ._agent import Agent, Event, PromptTaken, RuntimeStopped, SessionStarted, TurnEnded
from ._group_files import CHAT, name_session, prepare_group
from ._ledger import Ledger
from ._log import HostLog
from ._values import Prompt
from .recovery import recover, wait_for_end
from .settings import HostSettings

# Starts an agent: takes the group, the name of its session, the session to resume, and the receiver
# of its events.
Start = Callable[[Group, str, str | None, Callable[[Event], None]], Agent]

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 300.0
ORPHAN_SECONDS = 20.0  # for the unfinished turn of a killed host's runtime
SILENCE_SECONDS = 30 * 60.0
SHARE_SECONDS = 30.0  # a busy group continues this long while others wait
ERROR_CHARACTERS = 500
NO_SESSION = "No conversation found"  # the runtime says this of a session that it cannot read


class Worker:
    """Works for one group until there is nothing to do, or until other groups are waiting.

    Only the ledger records the answered messages: all state here may be lost at any moment."""

    def __init__(
        self,
        group: Group,
        ledger: Ledger,
        sessions: SessionManager,
        config: HostSettings,
        start: Start,
        log: HostLog,
    ) -> None:
        self.group = group
        self._ledger = ledger
        self._sessions = sessions
        self._config = config
        self._start = start
        self._log = log
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._agent: Agent | None = None
        self._is_begun = False
        # the name of the isolated session that the agent runs; '' for the group's own session
        self._task = ""
        self._pointer: str | None = None
        self._given: dict[str, Prompt] = {}
        self._taken: set[str] = set()
        self._since = time.monotonic()
        self._is_room_wanted = False
        self._is_last_turn = False

    def poke(self) -> None:
        self._events.put_nowait(None)

    def make_room(self) -> None:
        """Ask the worker to end soon: another group waits."""
        self._is_room_wanted = True
        self.poke()

    def finish(self) -> None:
        """Ask the worker to end after the agent's current turn."""
        self._is_last_turn = True
        self.poke()

    async def work(self) -> None:
        """Work until idle for `idle_seconds`, or until told to end.

        Raises SessionMemoryError, OSError."""
        await asyncio.to_thread(prepare_group, self.group)
        await wait_for_end(self.group.runtime, self.group.config_dir, ORPHAN_SECONDS)
        await self._recover()
        try:
            while not self._is_time_to_go():
                await self._give_next()
                try:
                    timeout = SILENCE_SECONDS if self._given else self._config.idle_seconds
                    await self._answer(await asyncio.wait_for(self._events.get(), timeout))
                except asyncio.TimeoutError:
                    if not self._given:
                        return
                    if self._agent and time.monotonic() - self._agent.heard > SILENCE_SECONDS:
                        await self._give_up(
                            f"the runtime has been silent for {SILENCE_SECONDS / 60:.0f} minutes"
                        )
        finally:
            await self._close()

    def _is_time_to_go(self) -> bool:
        """Return whether to end between two turns because other groups wait.

        The answer is yes at once if idle, else after SHARE_SECONDS."""
        if self._given or not (self._is_room_wanted or self._is_last_turn):
            return False
        return (
            self._is_last_turn
            or time.monotonic() - self._since > SHARE_SECONDS
            or self._choose() is None
        )

    async def _recover(self) -> None:
        """Record answers in transcripts that a killed host did not; ask the other prompts again."""
        waiting = self._ledger.open_prompts(self.group.name, even_later=True)
        for session_id in dict.fromkeys(
            prompt.session_id for prompt in waiting if prompt.session_id
        ):
            prompts = {prompt.uuid: prompt for prompt in waiting if prompt.session_id == session_id}
            path = self.group.transcript(session_id)
            recovered = await asyncio.to_thread(recover, self.group.runtime, path, prompts.keys())
            is_isolated = next(iter(prompts.values())).is_isolated
            if (
                (recovered.answers or recovered.begun)
                and not is_isolated
                and self._sessions.get(self.group.name) is None
            ):
                history = self._sessions.get_history(self.group.name)
                # its host died before it set the pointer
                if session_id not in {entry.session_id for entry in history}:
                    self._sessions.set(self.group.name, session_id)
            for uuids, text in recovered.answers:
                self._ledger.answer([prompts[uuid] for uuid in uuids], text)
                self._log.event(f"{self.group.name}: recovered an answer from the transcript")
            for uuid in recovered.begun:
                self._ledger.ask_again(prompts[uuid])

    def _choose(self) -> Prompt | None:
        """Return the prompt to send now, or None.

        During a turn, prompts with messages are sent one after the other, each when the runtime has
        received the previous one: it merges waiting prompts, whose answers would be
        indistinguishable. A task runs alone, and messages after a `clear` are for the next session.
        """
        if self._is_last_turn:
            return None
        if self._given:
            is_busy = self._given.keys() - self._taken or any(
                prompt.task for prompt in self._given.values()
            )
            if is_busy or not self._is_current():
                return None
        waiting = [
            prompt
            for prompt in self._open_prompts(even_later=True)
            if prompt.uuid not in self._given
        ]
        ready = {prompt.uuid for prompt in self._open_prompts()}
        for prompt in waiting:
            if prompt.uuid in ready and self._fits(prompt):
                return prompt
            if not prompt.task:
                return None  # later messages wait for a delayed one
        new = self._ledger.next_prompt(self.group.name)
        return new if new and self._fits(new) else None

    def _fits(self, prompt: Prompt) -> bool:
        """Return whether a prompt may join the current turn.

        A task runs alone. A turn that answers several prompts has one reply, which goes to one
        chat."""
        chats = {given.jid for given in self._given.values()}
        return not chats or (not prompt.task and chats == {prompt.jid})

    def _open_prompts(self, *, even_later: bool = False) -> list[Prompt]:
        return self._ledger.open_prompts(self.group.name, even_later=even_later)

    def _is_current(self) -> bool:
        """Check if the agent's session is still the one for the next message.

        Tools may switch it."""
        if self._agent is None:
            return False
        expected = self._agent.session_id if self._is_begun else self._pointer
        return self._sessions.get(self.group.name) == expected

    async def _give_next(self) -> None:
        prompt = self._choose()
        if prompt is None:
            return
        task = prompt.task if prompt.is_isolated else ""
        if self._agent and (task or self._task or not self._is_current()):
            await self._close()
        if self._agent is None:
            self._task, self._is_begun = task, False
            self._pointer = None if task else self._sessions.usable(self.group.name)
            tell = self._events.put_nowait
            self._agent = self._start(self.group, self._name(), self._pointer, tell)
            goes_on = f"continues session {self._pointer}" if self._pointer else "starts a session"
            self._log.event(f"{self.group.name}: agent started, {goes_on}")
        if prompt.task:
            self._log.event(f"{self.group.name}: {prompt.task} begins")
        prompt = self._ledger.begin(prompt, self._agent.session_id)
        self._given[prompt.uuid] = prompt
        await self._agent.give(prompt)

    async def _answer(self, event: Event | None) -> None:
        if isinstance(event, SessionStarted) and not self._is_begun:
            self._begin(event.session_id)
        elif isinstance(event, PromptTaken) and event.uuid in self._given:
            self._taken.add(event.uuid)
        elif isinstance(event, TurnEnded):
            await self._end_turn(event)
        elif isinstance(event, RuntimeStopped):
            await self._give_up(event.error or "the runtime ended")

    def _begin(self, session_id: str) -> None:
        self._is_begun = True
        if self._agent:
            self._agent.session_id = session_id
        if not self._task and self._sessions.get(self.group.name) == self._pointer != session_id:
            self._sessions.set(self.group.name, session_id)
        name_session(self.group, self._name(), session_id)

    async def _end_turn(self, ended: TurnEnded) -> None:
        uuids = ended.uuids or tuple(self._taken or (self._given if ended.error else ()))
        prompts = [self._given.pop(uuid) for uuid in uuids if uuid in self._given]
        self._taken.difference_update(uuids)
        if ended.error:
            self._fail(prompts, ended.error)
        elif prompts:
            self._ledger.answer(prompts, ended.text)
            begun = epoch_seconds(prompts[0].begun_at)
            seconds = f" in {time.time() - begun:.1f} s" if begun else ""
            what = f"{prompts[0].task} done" if prompts[0].task else "answered"
            self._log.event(f"{self.group.name}: {what}{seconds}")
        elif ended.text.strip():
            self._ledger.notify(self._ledger.group(self.group.name).jid, ended.text)
        if not self._given and (self._task or not self._is_current()):
            await self._close()

    async def _give_up(self, error: str) -> None:
        """End the agent. Recover its answers from the transcript; ask the other prompts again."""
        prompts, was_begun = list(self._given.values()), self._is_begun
        await self._close()
        await self._recover()
        still_open = {prompt.id for prompt in self._open_prompts(even_later=True)}
        prompts = [prompt for prompt in prompts if prompt.id in still_open]
        if self._pointer and not was_begun and NO_SESSION in error:
            self._log.fault(
                f"{self.group.name}: {self._pointer} cannot be resumed: "
                f"{one_line(for_people(error))}"
            )
            self._sessions.lose(self.group.name, self._pointer)  # the open prompts begin a new one
        else:
            self._fail(prompts, error)

    def _fail(self, prompts: list[Prompt], error: str) -> None:
        """Retry prompts later or, after the last attempt, answer with the error."""
        reason = shortened(error, ERROR_CHARACTERS)
        self._log.fault(f"{self.group.name}: {reason}")
        for prompt in prompts:
            if prompt.attempt < self._config.attempts:
                pause = FIRST_PAUSE_SECONDS * 2 ** (prompt.attempt - 1)
                self._ledger.put_off(prompt, min(pause, LONGEST_PAUSE_SECONDS))
            else:
                after = counted(prompt.attempt, "attempt")
                self._ledger.answer(
                    [prompt], f"There was no answer after {after}: {reason}", reason
                )

    async def _close(self) -> None:
        """End the agent. Its unanswered prompts stay open."""
        agent, self._agent = self._agent, None
        self._given.clear()
        self._taken.clear()
        if agent is None:
            return
        await agent.stop()
        self._log.event(f"{self.group.name}: agent ended")
        while not self._events.empty():
            self._events.get_nowait()
        if not self._task and self._sessions.get(self.group.name) != agent.session_id:
            # It was cleared while it ran, so its archive lacks the end of the last turn.
            with suppress(SessionMemoryError, OSError):
                await asyncio.to_thread(
                    archive_group_session, self.group, agent.session_id, time.time()
                )

    def _name(self) -> str:
        """Return the name of the agent's session for the group's other sessions."""
        if not self._task:
            return CHAT
        return self._task if is_name(self._task) and self._task != CHAT else "task"
