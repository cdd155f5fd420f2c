"""Who may see the page, and what every answer says to the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from page_scene import ServedPage
from records import exchange
from store_scene import StoreUser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """A page with one session."""
    user = StoreUser(Path(tmp_path_factory.mktemp("user")))
    user.session("s1", *exchange("Why is the cart empty?", "The cache was stale."))
    with ServedPage(user) as page:
        yield page


def test_the_link_lets_in_and_the_cookie_goes_to_this_page_alone(page: ServedPage) -> None:
    cookie = page.enter().headers["set-cookie"]
    assert f"Path={page.root}/" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Domain" not in cookie
    assert page.view().status == 200


def test_without_the_cookie_nothing_is_shown(page: ServedPage) -> None:
    for path in ("/", "/list", "/static/page.js", "/changes"):
        answer = page.view(path, Cookie="session_memory=guessed")
        assert answer.status == 403
        assert "session-memory page" in answer.text


def test_a_wrong_token_does_not_let_in(page: ServedPage) -> None:
    for query in ("", "?token=", "?token=guessed"):
        answer = page.ask(f"{page.root}/enter{query}")
        assert answer.status == 403
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/list", "/static/page.js", "/enter", "/%2e%2e/", "//"])
def test_outside_the_secret_path_there_is_nothing(page: ServedPage, path: str) -> None:
    answer = page.ask(path)
    assert answer.status == 404
    assert page.root not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "evil.example:{port}", "127.0.0.1:1", "0.0.0.0:{port}"]
)
def test_a_name_that_was_bound_to_this_address_is_refused(page: ServedPage, host: str) -> None:
    assert page.view("/", Host=host.format(port=page.port)).status == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://{host}"]
)
def test_another_site_is_refused(page: ServedPage, origin: str) -> None:
    assert page.view("/", Origin=origin.format(host=page.host)).status == 403


def test_what_another_site_embeds_is_refused(page: ServedPage) -> None:
    for site in ("cross-site", "same-site"):
        assert page.view("/static/page.js", Sec_Fetch_Site=site).status == 403


def test_a_change_needs_to_come_from_the_page_itself(page: ServedPage) -> None:
    assert page.view("/", method="POST", body="a=b").status == 403
    assert page.view("/", method="POST", body="a=b", Origin=f"http://{page.host}").status == 405
    # What a browser sends with a form of a page that has `no-referrer`.
    assert (
        page.view(
            "/", method="POST", body="a=b", Origin="null", Sec_Fetch_Site="same-origin"
        ).status
        == 405
    )
    assert (
        page.view("/", method="POST", body="a=b", Origin="null", Sec_Fetch_Site="cross-site").status
        == 403
    )
    assert page.view("/", method="POST", body="a=b", Origin="null").status == 403


@pytest.mark.parametrize("path", ["/", "/nothing-here", "/static/page.css"])
def test_every_answer_keeps_scripts_of_others_out(page: ServedPage, path: str) -> None:
    headers = page.view(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in headers
    assert ("immutable" if "/static/" in path else "no-store") in headers["cache-control"]


def test_no_template_holds_script_or_style_of_its_own(page: ServedPage) -> None:
    templates = Path(__file__).parents[3] / "session_memory" / "extras" / "page" / "templates"
    for path in templates.glob("*.html"):
        text = path.read_text()
        assert "<script>" not in text
        assert " style=" not in text
        assert " onclick" not in text
        assert "|safe" not in text, path


def test_another_program_on_the_port_is_said(tmp_path: Path, page: ServedPage) -> None:
    user = StoreUser(tmp_path)
    done = user.run("page", "--no-browser", "--port", page.port)
    assert done.returncode == 1
    assert f"port {page.port} is not available" in done.stderr
    assert "leave out --port" in done.stderr
