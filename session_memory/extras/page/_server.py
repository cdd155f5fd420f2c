"""The server: one process on the loopback interface.

It ends within a second of Ctrl-C and leaves nothing running.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import webbrowser
from collections.abc import Callable, Mapping
from types import FrameType

import uvicorn
from anyio import to_thread
from starlette.types import ASGIApp
from uvicorn.server import HANDLED_SIGNALS

from ...app.notices import Notices
from ...common.errors import SessionMemoryError
from ...history.store.location import StoreLocation
from ._access import Access
from ._active_sessions import ActiveSessions
from ._app import PageApp
from ._live import Alarm, Alarms, Live
from ._store_pool import StorePool

END_SECONDS = 0.5
# a request may wait for a thread that counts a year: by default each step waits 5 ms
SWITCH_SECONDS = 0.0005
THREADS = 4  # for requests: each has a connection to the store, with a cache


def serve(
    find_location: Callable[[], StoreLocation],
    environ: Mapping[str, str],
    alarms: Callable[[], list[Alarm]],
    watched: Callable[[], list[str]],
    say: Callable[[str], None],
    *,
    port: int = 0,
    with_browser: bool = True,
) -> None:
    """Serve the page until SIGINT or SIGTERM. Raises SessionMemoryError.

    `port` 0 means any free port. `say` receives lines for the terminal, `alarms` returns the
    problems of the installation, `watched` the files that may cause one."""
    with _listening(port) as listener:
        access = Access(listener.getsockname()[1])
        pool = StorePool(find_location())
        notices = Notices(environ, say)
        active = ActiveSessions(pool, environ, notices)
        live = Live(pool, find_location, active.read, active.directories)
        checks = Alarms(alarms, watched, live.changed)
        page = PageApp(pool, live, access, environ, active, checks, say)
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        server = _Server(_configuration(page.app()), live)
        sys.setswitchinterval(SWITCH_SECONDS)
        live.start()
        checks.start()
        try:
            say(f"the page: {access.link}")
            if with_browser and _has_screen(environ):
                webbrowser.open(access.single_use_link())
            say("Ctrl-C ends it")
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn raises the signal again at its end
            pass
        finally:
            checks.stop()
            live.stop()
            live.join(END_SECONDS)
            notices.close()
            page.close()
            pool.close()


def _configuration(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )


class _Server(uvicorn.Server):
    """A server that releases its listeners before it ends, because it would wait for them.

    It sleeps until then: uvicorn's own loop wakes ten times a second, 0.2 % of a core."""

    def __init__(self, config: uvicorn.Config, live: Live) -> None:
        super().__init__(config)
        self._live = live
        self._is_to_end = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        await super().startup(sockets)

    async def main_loop(self) -> None:
        try:
            # the loop's own handlers, because others do not wake it if a signal comes as it falls
            # asleep
            for number in HANDLED_SIGNALS:
                asyncio.get_running_loop().add_signal_handler(
                    number, self.handle_exit, number, None
                )
        except NotImplementedError:  # Windows
            await super().main_loop()
        else:
            await self._is_to_end.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._live.stop()
        super().handle_exit(sig, frame)
        self._is_to_end.set()


def _listening(port: int) -> socket.socket:
    """Return a socket on the loopback interface. Raises SessionMemoryError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # elsewhere it would let two programs have one port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        hint = "leave out --port to use any free port"
        raise SessionMemoryError(
            f"port {port} is not available: {error.strerror or error}", hint
        ) from error
    return listener


def _has_screen(environ: Mapping[str, str]) -> bool:
    """Return whether a browser can open a window.

    A browser in the terminal would take over the terminal."""
    is_other = sys.platform in ("darwin", "win32")
    return is_other or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
