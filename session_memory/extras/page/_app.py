"""The application: a view turns a request into values, and a template turns these into HTML."""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ... import __version__
from ...common.errors import SessionMemoryError, described
from ...common.system.sqlite import CorruptDatabaseError, NewerDatabaseError
from ...memory.shared_store import SharedPool, SharedStoreError
from ._access import MOST_BODY_BYTES, Access, Guard
from ._active_sessions import ActiveSessions
from ._live import Alarms, Live
from ._page_request import NotFoundError, PageRequest, VisitorGoneError
from ._store_pool import StoreMissingError, StorePool
from ._view import Action, Download, FormFields, View
from .jinja import TEMPLATES, page_environment
from .pages import ACTIONS, DOWNLOADS, VIEWS

Endpoint = Callable[[Request], Awaitable[Response]]

LEFT_SECONDS = 0.5  # then checks whether the visitor of a slow view is still there
PART = "x-part"  # the header by which our script requests a view's content without its frame


class _Assets(StaticFiles):
    """Files that a browser caches; their addresses differ between runs of the page."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        response = super().file_response(*given, **named)
        response.headers["Cache-Control"] = "private, max-age=31536000, immutable"
        return response


class PageApp:
    """State shared by all requests. `say` is called with unexpected errors."""

    def __init__(
        self,
        pool: StorePool,
        live: Live,
        access: Access,
        environ: Mapping[str, str],
        active: ActiveSessions,
        alarms: Alarms,
        say: Callable[[str], None],
    ) -> None:
        self._pool = pool
        self._shared_stores = SharedPool()
        self._live = live
        self._access = access
        self._environ = environ
        self._active = active
        self._alarms = alarms
        self._say = say
        self._templates = page_environment(access)

    def app(self) -> ASGIApp:
        routes = [Route(view.path, self._shown(view), methods=["GET"]) for view in VIEWS]
        routes += [Route(action.path, self._done(action), methods=["POST"]) for action in ACTIONS]
        routes += [Route(each.path, self._downloaded(each), methods=["GET"]) for each in DOWNLOADS]
        routes += [Route("/changes", self._changes, methods=["GET"])]
        static = Mount("/static", _Assets(directory=TEMPLATES.with_name("static")))
        mount = Mount(self._access.root, routes=[*routes, static])
        return Guard(
            Starlette(routes=[mount], exception_handlers={404: self._not_found}), self._access
        )

    def close(self) -> None:
        self._shared_stores.close()

    def _shown(self, view: View) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            is_part = PART in request.headers
            gone = threading.Event()
            answer = asyncio.ensure_future(
                run_in_threadpool(self._answer, view, request, is_part, gone.is_set)
            )
            try:
                while not (await asyncio.wait({answer}, timeout=LEFT_SECONDS))[0]:
                    if await request.is_disconnected():
                        gone.set()
                return answer.result()
            finally:  # the end of the page waits for this thread
                gone.set()

        return endpoint

    def _answer(
        self, view: View, request: Request, is_part: bool, is_gone: Callable[[], bool]
    ) -> Response:
        status = 200
        template, values = view.name, {}
        try:
            with self._pool.store() as store:
                values = view.values(self._page_request(store, request)._replace(is_gone=is_gone))
        except VisitorGoneError:
            return Response(status_code=204)
        except (SessionMemoryError, OSError) as error:
            template, values = "state", self._state(error)
            status = 404 if isinstance(error, NotFoundError) else 503
        except Exception as error:  # an error of ours affects only this view, and is logged
            self._say(f"{request.url.path}: {error!r}")
            template, values = (
                "state",
                {"title": "This view failed", "text": repr(error), "hint": "", "kind": "fault"},
            )
            status = 500
        html = self._rendered(f"{template}.html", view, values, is_part)
        return HTMLResponse(html.encode("utf-8", "replace"), status)

    def _rendered(self, name: str, view: View | None, values: dict[str, Any], is_part: bool) -> str:
        around = {
            "views": [view_shown for view_shown in VIEWS if view_shown.label],
            "view": view,
            "is_part": is_part,
            "version": __version__,
            "intake": self._live.intake,
            "live_version": self._live.version,
            "is_live": False,
            "marks_problem": "",
        }
        html: str = self._templates.get_template(name).render({**around, **values})
        return html

    def _state(self, error: Exception, problem: str = "The store cannot be read") -> dict[str, Any]:
        """Return the values of the error page about the store or the request.

        `problem` is the title for an error of no known kind."""
        hint = error.hint if isinstance(error, SessionMemoryError) else ""
        if isinstance(error, NotFoundError):
            kind, title = "missing", "Not here"
        elif isinstance(error, StoreMissingError):
            kind, title = "empty", "No store yet"
        elif isinstance(error, CorruptDatabaseError):
            kind, title = "rebuilt", "The store is being rebuilt"
            hint = (
                hint
                or "it was damaged; it is now rebuilt from the transcripts, and this page opens when that is done"
            )
        elif isinstance(error, NewerDatabaseError):
            kind, title = "newer", "A newer version made the store"
        elif isinstance(error, SharedStoreError):
            kind, title = "fault", "The team's store cannot be reached now"
        else:
            kind, title = "fault", problem
        return {"kind": kind, "title": title, "text": described(error), "hint": hint}

    def _page_request(self, store: Any, request: Request) -> PageRequest:
        self._live.catch_up()
        return PageRequest(
            store,
            self._shared_stores,
            self._pool.location,
            self._environ,
            self._active.sessions,
            self._alarms.found,
            self._access.root,
            time.time(),
            request.path_params,
            parse_qs(request.url.query, keep_blank_values=True),
        )

    def _done(self, action: Action) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            body = b""
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BODY_BYTES:
                    return Response("Request body too large.\n", 413)
            fields = FormFields(parse_qs(body.decode("utf-8", "replace")))
            if not hmac.compare_digest(
                fields.one("form_token").encode(), self._access.form_token.encode()
            ):
                return Response("Invalid form token: reload the page.\n", 403)
            return await run_in_threadpool(self._do, action, request, fields)

        return endpoint

    def _downloaded(self, download: Download) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(self._file, download, request)

        return endpoint

    def _file(self, download: Download, request: Request) -> Response:
        try:
            with self._pool.store() as store:
                name, kind, pieces = download.work(self._page_request(store, request))
                content = "".join(pieces).encode("utf-8", "backslashreplace")
        except (SessionMemoryError, OSError) as error:
            return self._failed(error)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=f"{kind}; charset=utf-8", headers=headers)

    def _failed(self, error: SessionMemoryError | OSError) -> Response:
        """Return the page about an error of a form or a download."""
        values = self._state(error, "This could not be done")
        html = self._rendered("state.html", None, values, is_part=False)
        return HTMLResponse(html, 404 if isinstance(error, NotFoundError) else 503)

    def _do(self, action: Action, request: Request, fields: FormFields) -> Response:
        try:
            with self._pool.store() as store:
                path = action.work(self._page_request(store, request), fields)
        except (SessionMemoryError, OSError) as error:
            return self._failed(error)
        self._live.changed()
        return RedirectResponse(f"{self._access.root}{path}", 303)

    async def _changes(self, request: Request) -> Response:
        """Send the version as a server-sent event whenever it changes."""

        async def events() -> AsyncIterator[str]:
            async for version in self._live.versions():
                yield ": still here\n\n" if version is None else f"data: {version}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _not_found(self, request: Request, error: Exception) -> Response:
        values = {
            "kind": "missing",
            "title": "Not here",
            "text": "There is no such page.",
            "hint": "",
        }
        return HTMLResponse(self._rendered("state.html", None, values, is_part=False), 404)
