"""`python -m bench.page`: how fast the page shows the content of the store, in a real Chromium.

The store has a gigabyte of invented transcripts from a year, one of them with 10,000 entries. First
bytes are medians, taken in turn with an empty page of the same server. First paint is Chromium's
value for an opened view. A search while typing is the browser's wait for each answer. Live lag is
the time from the end of a write to its event. `--agentsview PROGRAM` (from PyPI) shows the same
transcripts, and both are asked in turn. `--home DIR` stores the transcripts there, or uses existing
ones.
"""

from __future__ import annotations

import http.client
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from statistics import median, quantiles
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from .agentsview import SETTLED_SECONDS, WAIT_SECONDS, Server, its_server
from .browser import launched
from .command import run
from .corpus import Author, Texts, write_session
from .pictures import served
from .report import Row, as_table
from .scratch import scratch_directory

SEED = 7
SESSIONS = 1000
LONG_BYTES = 97_000_000  # of the transcript with 10,000 entries
DAYS = 300
PROJECTS = ("alpha", "beacon", "cellar", "dune", "ember", "forge", "garden", "harbor")
VIEWS = (
    "/",
    "/timeline",
    "/timeline?span=week",
    "/files",
    "/search?q=file+error",
    "/memories",
    "/patterns",
    "/costs",
    "/list",
)
QUERIES = ("file error", "the server request", "branch memory", "cursor update test", "database")
LIVE_RUNS = 5


def main(
    megabytes: int = 1000, runs: int = 20, home: Path | None = None, agentsview: str = ""
) -> None:
    with scratch_directory() as name:
        place = home or name
        long_session = write_transcripts(place, megabytes)
        with served(place) as link:
            root = "/" + link.split("/")[3]
            server = entered(link)
            print(
                as_table(first_bytes(server, root, runs), runs, "seconds to the first byte"), "\n"
            )
            with sync_playwright() as playwright:
                browser = launched(playwright)
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                page.goto(link)
                page.wait_for_selector("main h1")
                base = link.rpartition("/enter")[0]
                in_browser(page, base, long_session, runs)
                if agentsview:
                    with its_server(agentsview, place, name / "agentsview") as other:
                        rows = race(server, root, other, runs)
                        page_url, its = (f"{base}/", f"http://127.0.0.1:{other.port}/")
                        paints = in_turn(
                            lambda: painted(page, page_url) / 1000,
                            lambda: painted(page, its) / 1000,
                            runs,
                        )
                        rows.append(
                            Row("first paint of the first page", *paints, "agentsview", 1.0)
                        )
                    print("\n" + as_table(rows, runs, "against agentsview"), "\n")
                browser.close()
            lag = median(live_lag(server, root, place) for _ in range(min(runs, LIVE_RUNS)))
            print(f"{'live lag':48} {lag:8.0f} ms")
            print(f"{'memory of the server, at most':48} {peak_megabytes(server.port):8.0f} MB")


def write_transcripts(home: Path, megabytes: int) -> str:
    """Write the transcripts, unless there are some; return the id of the long one."""
    texts, random = Texts(SEED), Random(SEED)
    projects = home / ".claude" / "projects"
    long = Author(
        texts, "long", PROJECTS[0], min(LONG_BYTES, megabytes * 200_000), time.time() - 3600
    )
    path = projects / f"-home-dev-{PROJECTS[0]}" / f"{long.session_id}.jsonl"
    if not path.exists():
        write_session(path, long)
    if len(list(projects.rglob("*.jsonl"))) > 1:
        return long.session_id
    for number in range(SESSIONS):
        size = int(megabytes * 1e6 / SESSIONS * random.lognormvariate(0, 1) / 1.65)
        project = random.choice(PROJECTS)
        author = Author(
            texts, str(number), project, size, time.time() - random.random() ** 1.5 * DAYS * 86_400
        )
        write_session(projects / f"-home-dev-{project}" / f"{author.session_id}.jsonl", author)
    return long.session_id


def entered(link: str) -> Server:
    """The server of the page, as somebody asks it who came by the link."""
    port, path = int(link.split("/")[2].rpartition(":")[2]), "/" + link.split("/", 3)[3]
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    cookie = connection.getresponse().headers["set-cookie"].partition(";")[0]
    return Server(port, {"Cookie": cookie})


def first_bytes(server: Server, root: str, runs: int) -> list[Row]:
    """A row for each view, beside a page with nothing on it."""
    rows = []
    for view in VIEWS:
        view_seconds, empty = in_turn(
            lambda path=view: server.ask(root + path),  # type: ignore[misc]
            lambda: server.ask(f"{root}/nothing"),
            runs,
        )
        rows.append(Row(view, view_seconds, empty, "empty page"))
    return rows


def in_turn(
    first: Callable[[], float], second: Callable[[], float], runs: int
) -> tuple[float, float]:
    """Return the medians of both, taken in turn; the first run of each does not count."""
    pairs = [(first(), second()) for _ in range(runs + 1)][1:]
    return median([first_seconds for first_seconds, _ in pairs]), median(
        [other for _, other in pairs]
    )


def in_browser(page: Page, base: str, long_session: str, runs: int) -> None:
    """Print Chromium's times: first paints, a search while typing, and a long session."""
    for view in VIEWS[:-1]:
        print(
            f"{f'first paint of {view}':48} "
            f"{median(painted(page, base + view) for _ in range(runs)):8.0f} ms"
        )
    typed = sorted(typed_times(page, base))
    print(f"{'search as you type, from key to hits: median':48} {median(typed):8.0f} ms")
    print(f"{'the same, p95':48} {quantiles(typed, n=20)[18]:8.0f} ms")
    address = f"{base}/session/{long_session}"
    shown = median(painted(page, address) for _ in range(runs))
    print(f"{'first paint of a session of 10,000 entries':48} {shown:8.0f} ms")
    read = median(scrolled(page, address) for _ in range(runs))
    print(f"{'the same, shown, and its end after a jump there':48} {read:8.0f} ms")


def live_lag(server: Server, root: str, home: Path) -> float:
    """Return the milliseconds from a new line in a transcript to the event about it."""
    time.sleep(SETTLED_SECONDS)  # everything written before is reported by then
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_SECONDS)
    connection.request("GET", f"{root}/changes", headers=server.headers)
    events = connection.getresponse()
    events.readline()
    transcript = next((home / ".claude" / "projects").rglob("*.jsonl"))
    last = transcript.read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
    with transcript.open("ab") as file:
        file.write(
            re.sub(rb'("uuid":")[0-9a-f]{8}', rb"\g<1>%08x" % (time.time_ns() & 0xFFFFFFFF), last)
            + b"\n"
        )
    began = time.perf_counter()
    while not events.readline().startswith(b"data:"):
        pass
    seconds = time.perf_counter() - began
    connection.close()
    return seconds * 1000


def painted(page: Page, address: str) -> float:
    """Milliseconds from the request to the first contentful paint."""
    page.goto(address, wait_until="load")
    script = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if milliseconds := float(page.evaluate(script)):
            return milliseconds
    raise OSError(f"{address}: nothing is painted")


def typed_times(page: Page, base: str) -> Iterator[float]:
    """Yield the milliseconds of the server's answer to each key, as the browser sees them."""
    page.goto(f"{base}/search")
    page.evaluate("performance.setResourceTimingBufferSize(5000)")
    for query in QUERIES:
        page.get_by_role("searchbox", name="Search everything").fill("")
        for letter in query:
            page.keyboard.type(letter)
            page.wait_for_timeout(160)
    script = (
        "performance.getEntriesByType('resource').filter(r => "
        "r.name.includes('/search?')).map(r => r.duration)"
    )
    yield from page.evaluate(script)


def scrolled(page: Page, address: str) -> float:
    """Return the milliseconds until a session is shown, and its end after a jump to the end."""
    began = time.perf_counter()
    page.goto(f"{address}?at=1", wait_until="domcontentloaded")
    page.wait_for_selector("#dialogue article")
    page.keyboard.press("e")
    page.wait_for_selector("#dialogue .chunk:last-child article")
    return (time.perf_counter() - began) * 1000


def peak_megabytes(port: int) -> float:
    """Return the peak memory of the process that listens on a port; 0 if unknown."""
    inode = next(
        (
            line.split()[9]
            for line in Path("/proc/net/tcp").read_text().splitlines()
            if f":{port:04X} 00000000" in line
        ),
        "",
    )
    for process in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(
                os.readlink(descriptor_link) == f"socket:[{inode}]"
                for descriptor_link in process.iterdir()
            ):
                status = (process.parent / "status").read_text()
                return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024
        except OSError:
            continue
    return 0.0


def asked(server: Server, paths: list[str]) -> float:
    """Seconds to the first bytes of answers, together."""
    return sum([server.ask(path) for path in paths])


def race(server: Server, root: str, other: Server, runs: int) -> list[Row]:
    """Race our page with the requests of agentsview's browser for the same content.

    agentsview's pages are empty, and a script fills them."""
    year = urlencode(
        {
            "from": time.strftime("%Y-%m-%d", time.gmtime(time.time() - 365 * 86_400)),
            "to": time.strftime("%Y-%m-%d"),
            "timezone": "UTC",
            "include_one_shot": "true",
            "automated_scope": "human",
        }
    )
    analytics = [
        f"/api/v1/analytics/{name}?{year}" for name in ("heatmap", "hour-of-week", "top-sessions")
    ]
    index = "/api/v1/sessions/sidebar-index?timezone=UTC&include_one_shot=true&limit=500"
    pairs = {
        "the first page, with its list": (["/", "/list"], ["/", index]),
        "the list of sessions": (["/list"], ["/api/v1/sessions?limit=400"]),
        "a search": (["/search?q=database+cursor"], ["/api/v1/search?q=database+cursor&limit=20"]),
        "maps of the year and of its hours, the longest": (["/timeline"], analytics),
    }
    rows = []
    for title, (ours, its) in pairs.items():
        try:
            our_seconds, beside = in_turn(
                partial(asked, server, [root + path for path in ours]),
                partial(asked, other, its),
                runs,
            )
        except OSError as error:
            print(f"{title}: {error}", file=sys.stderr)
            continue
        rows.append(Row(title, our_seconds, beside, "agentsview", 1.5))
    return rows


if __name__ == "__main__":
    run(main)
