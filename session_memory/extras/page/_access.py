"""Access control of the page: only visitors with a link from the terminal or the browser's start.

Cookies ignore ports. To keep them from another server on 127.0.0.1, they are limited to an
unguessable path that contains the whole page. Checks of Host (DNS rebinding) and Origin keep out
other sites.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "session_memory"
ENTRANCE = "/enter"
MOST_BODY_BYTES = 64 * 1024
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cache-Control": "no-store",
}
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_NO_ENTRY = (
    "This page is private to its user: open the link that `session-memory page` shows in "
    "its terminal.\n"
)
_USED = (
    "This link was already used, or is incomplete: open the link that `session-memory page` shows "
    "in its terminal.\n"
)


class Access:
    """The secrets of one run of the page.

    `root` is the path that contains all of it; `form_token` is in each of our forms, and nowhere
    else."""

    def __init__(self, port: int) -> None:
        self.root = "/" + secrets.token_urlsafe(16)
        self.form_token = secrets.token_urlsafe(24)
        self._cookie = secrets.token_urlsafe(32)
        self._token = secrets.token_urlsafe(24)
        self._single_use: set[str] = set()
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    @property
    def link(self) -> str:
        """The link for the terminal.

        Only its user reads the terminal, so the link is valid as long as the page runs."""
        return self._link(self._token)

    def single_use_link(self) -> str:
        """Return a link that works once, for starting a browser.

        Any user of the machine can read a browser's arguments."""
        token = secrets.token_urlsafe(24)
        self._single_use.add(token)
        return self._link(token)

    def _link(self, token: str) -> str:
        return f"http://{self._hosts[0]}{self.root}{ENTRANCE}?token={token}"

    def refusal(self, scope: Scope) -> Response | None:
        """Return the response to a forbidden request; None if it is allowed.

        Requests from elsewhere, or for a path outside the root, are forbidden."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        authority, path = headers.get(b"host", ""), scope["path"]
        if authority not in self._hosts:
            return PlainTextResponse("Wrong Host header: open the page by its link.\n", 421)
        if not path.startswith(self.root + "/"):
            return PlainTextResponse("Not found.\n", 404)
        if path == self.root + ENTRANCE:
            return self._enter(scope)
        if not self._knows(headers.get(b"cookie", "")):
            return PlainTextResponse(_NO_ENTRY, 403)
        is_change = scope["method"] not in ("GET", "HEAD")
        site, own_origin = headers.get(b"sec-fetch-site", "none"), f"http://{authority}"
        origin = headers.get(b"origin", "" if is_change else own_origin)
        # A form of a page without referrers has the origin `null`. Only a browser states that it
        # comes from the same page.
        if not (
            origin == own_origin or (origin == "null" and site == "same-origin")
        ) or site not in (
            "same-origin",
            "none",
        ):
            return PlainTextResponse("Cross-site request refused.\n", 403)
        return None

    def _enter(self, scope: Scope) -> Response:
        """Admit a visitor with a token.

        The next request comes from our own page, because a browser withholds the cookie while it
        follows a link from another site or a file."""
        token = "".join(parse_qs(scope["query_string"].decode("latin-1")).get("token", [])[:1])
        if token in self._single_use:
            self._single_use.remove(token)
        elif not hmac.compare_digest(token.encode(), self._token.encode()):
            return PlainTextResponse(_USED, 403)
        response = HTMLResponse(
            '<!DOCTYPE html><meta charset="utf-8"><title>Session memory</title><link rel="icon" '
            'href="data:,">'
            f'<meta http-equiv="refresh" content="0;url={self.root}/">'
            f'<p><a href="{self.root}/">Session memory</a></p>'
        )
        response.set_cookie(
            COOKIE, self._cookie, path=self.root + "/", httponly=True, samesite="strict"
        )
        return response

    def _knows(self, cookies: str) -> bool:
        pairs = [pair.strip().partition("=") for pair in cookies.split(";")]
        given = [value for name, _, value in pairs if name == COOKIE]
        return any(hmac.compare_digest(value.encode(), self._cookie.encode()) for value in given)


class Guard:
    """Passes to `app` the requests that `access` allows, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in _HEADERS if pair[0] not in names),
                ]
            await send(message)

        answer = self._access.refusal(scope) or self._app
        await answer(scope, receive, send_with_headers)
