"""The measured cases, each with its limit and the setup of its run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .many_runtimes import ManyInDatabase, ManyRuntimes
from .scenes import (
    KILOBYTE,
    MEGABYTE,
    Begun,
    Buried,
    Clash,
    MoreNews,
    News,
    Passwords,
    Remembering,
    Scene,
    Tails,
    Unsettled,
    WithSubject,
)
from .sources import Source
from .stopwatch import Command, CommandError, Stopwatch

MIXED_SIZES = [int(60 * KILOBYTE * 1.1**number) for number in range(50)]  # up to 6 MB, 68 MB in all
SMALL_SIZES = [30 * KILOBYTE] * 1000
LARGE_SIZES = [100 * MEGABYTE] * 10
READER_BYTES = 4 * MEGABYTE  # of a session in which more than 50 messages have text
DATABASE_BYTES = 1024 * MEGABYTE  # of OpenCode, against one of a megabyte


Check = Callable[[bytes], None]
Change = Callable[[Scene, Stopwatch], Tails]


class Stage(NamedTuple):
    """The setup of a case; `root` is its own directory, `app` the installed program."""

    root: Path
    app: Path
    source: Source
    stopwatch: Stopwatch


class Setup(NamedTuple):
    """The command to measure, its reference, and a function to call `before` each run.

    `check` raises CommandError for a wrong output."""

    command: Command
    reference: Command
    before: Callable[[], None]
    check: Check


class Case(NamedTuple):
    """A row of the table. Its limits are ratios of time and, if there is one, of peak memory."""

    name: str
    title: str
    limit: float
    set_up: Callable[[Stage], Setup]
    memory_limit: float | None = None
    reference_title: str = "bare"


def prompt(
    sizes: list[int],
    change: Change | None = None,
    *,
    expect: Check | None = None,
    kind: type[Scene] = Scene,
    run: Callable[[Scene], Command] = Scene.hook,
    **options: bool,
) -> Callable[[Stage], Setup]:
    """Measure a hook after all sessions were reported.

    They stay the same, or have a `change` since."""

    def set_up(stage: Stage) -> Setup:
        scene = kind(stage.root, stage.app, stage.source, sizes, **options)
        if change is None:
            scene.settle(stage.stopwatch)
        before = change(scene, stage.stopwatch).bring if change else lambda: None
        return Setup(
            run(scene),
            scene.bare(),
            before,
            expect or (_says(b"[Session Activity]") if change else _silence),
        )

    return set_up


def first_prompt(sizes: list[int]) -> Callable[[Stage], Setup]:
    """The hook never ran in this home."""

    def set_up(stage: Stage) -> Setup:
        scene = Scene(stage.root, stage.app, stage.source, sizes)
        return Setup(scene.hook(), scene.bare(), scene.forget, _says(b"[Session Activity]"))

    return set_up


def large_database(*, is_new: bool) -> Callable[[Stage], Setup]:
    """Measure a prompt with a large OpenCode database, compared with a small one.

    The 14 sessions of all runtimes stay the same, or each gets 20 KB more."""

    def set_up(stage: Stage) -> Setup:
        sizes = [("large", DATABASE_BYTES), ("small", MEGABYTE)]
        scenes = [
            ManyInDatabase(stage.root / name, stage.app, stage.source, MIXED_SIZES[:14], size)
            for name, size in sizes
        ]
        news = [News(scene, stage.stopwatch) for scene in scenes] if is_new else []
        for scene in scenes if not is_new else []:
            scene.settle(stage.stopwatch)

        def before() -> None:
            for event in news:
                event.bring()

        check = _says(b"[Session Activity]") if is_new else _silence
        return Setup(scenes[0].hook(), scenes[1].hook(), before, check)

    return set_up


def told_in_turn(stage: Stage) -> Setup:
    """Measure the prompts after one with news.

    Each reports a few more sessions until all are reported; then it starts again."""
    scene = Scene(stage.root, stage.app, stage.source, MIXED_SIZES)
    news = News(scene, stage.stopwatch)
    is_told = True

    def before() -> None:
        nonlocal is_told
        if is_told:
            news.bring()
            stage.stopwatch.run(scene.hook())
            is_told = False

    def check(stdout: bytes) -> None:
        nonlocal is_told
        is_told = not stdout

    return Setup(scene.hook(), scene.bare(), before, check)


def acknowledgement(stage: Stage) -> Setup:
    """Search for the last report in the own transcript, with nothing new.

    The reference is a prompt with nothing to search for."""
    scenes = [
        Scene(stage.root / name, stage.app, stage.source, MIXED_SIZES[:3])
        for name in ("told", "quiet")
    ]
    unsettled = Unsettled(scenes[0], stage.stopwatch)
    scenes[1].settle(stage.stopwatch)
    return Setup(scenes[0].hook(), scenes[1].hook(), unsettled.bring, _silence)


def reader(stage: Stage) -> Setup:
    """Measure reading a session of 1 GB that ends with a whole other session.

    At least 50 messages of the latter have text."""
    sizes = [READER_BYTES, 1024 * MEGABYTE - READER_BYTES]
    scene = Scene(stage.root, stage.app, stage.source, sizes, with_names=True)
    small, large = scene.sessions
    with open(large, "ab") as file:
        file.write(small.read_bytes())
    log = last_messages(scene, stage.stopwatch)

    def check(stdout: bytes) -> None:
        if stdout.partition(b"\n")[2] != log:
            raise CommandError(
                "the reader shows other entries of the large session than of the small one"
            )

    return Setup(scene.reader("session-1"), scene.reader("session-0"), lambda: None, check)


def last_messages(scene: Scene, stopwatch: Stopwatch) -> bytes:
    """Return the last 50 messages of the first session, as the reader prints them.

    Raises CommandError if it has fewer with text."""
    title, _, log = stopwatch.run(scene.reader("session-0")).stdout.partition(b"\n")
    if b"the last 50 messages" not in title:
        raise CommandError(f"the small session is too short: {title.decode()}")
    return log


def session_start(*, is_due: bool) -> Callable[[Stage], Setup]:
    """A session starts, and upkeep ran a moment ago, or is due and starts."""

    def set_up(stage: Stage) -> Setup:
        scene = Scene(stage.root, stage.app, stage.source, MIXED_SIZES[:6])
        stage.stopwatch.run(scene.session_start())
        scene.wait_for_upkeep()

        def check(stdout: bytes) -> None:
            _silence(stdout)
            scene.wait_for_upkeep()

        before = scene.make_upkeep_due if is_due else lambda: None
        return Setup(scene.session_start(), scene.bare(), before, check)

    return set_up


def end_of_turn(stage: Stage) -> Setup:
    """A turn ends with notices on; the process that could send one is not waited for."""
    scene = Scene(stage.root, stage.app, stage.source, MIXED_SIZES)
    notices = scene.want_notices()

    def check(stdout: bytes) -> None:
        _silence(stdout)
        scene.wait_for_notice()

    return Setup(scene.stop(), scene.bare(), notices.claim, check)


def status_line(stage: Stage) -> Setup:
    """Show a status line after a prompt that reported 50 other active sessions."""
    scene = Scene(stage.root, stage.app, stage.source, MIXED_SIZES)
    news = News(scene, stage.stopwatch)
    scene.want_status_line()
    news.bring()
    stage.stopwatch.run(scene.hook())
    return Setup(scene.status_line(), scene.bare(), lambda: None, _says(b" others active"))


def prompt_with_status_line(stage: Stage) -> Setup:
    """Measure a prompt that keeps the status line up to date, compared with one that does not.

    50 other sessions have nothing new."""
    scenes = [
        Scene(stage.root / name, stage.app, stage.source, MIXED_SIZES) for name in ("on", "off")
    ]
    scenes[0].want_status_line()
    for scene in scenes:
        scene.settle(stage.stopwatch)
    return Setup(scenes[0].hook(), scenes[1].hook(), lambda: None, _silence)


def _silence(stdout: bytes) -> None:
    if stdout:
        raise CommandError(f"the hook has something to tell: {stdout!r}")


def _says(*parts: bytes) -> Check:
    """Return a check that the output has these parts, each in one of the forms between bars."""

    def check(stdout: bytes) -> None:
        missing = [part for part in parts if not any(form in stdout for form in part.split(b"|"))]
        if missing:
            raise CommandError(f"the hook does not say {missing}: {stdout!r}")

    return check


EDITED = b": edited "
CASES = [
    Case("quiet-50", "50 other sessions, nothing new", 1.0, prompt(MIXED_SIZES), 1.5),
    Case(
        "quiet-50-named",
        "the same, named sessions of an agent",
        1.0,
        prompt(MIXED_SIZES, with_names=True),
        1.5,
    ),
    Case(
        "many-quiet-50",
        "50 other sessions of seven runtimes, nothing new",
        1.0,
        prompt(MIXED_SIZES, kind=ManyRuntimes),
    ),
    Case(
        "many-new-50",
        "the same, 20 KB new in each",
        5.0,
        prompt(MIXED_SIZES, News, kind=ManyRuntimes),
    ),
    Case(
        "many-quiet-1000",
        "1,000 other sessions of seven runtimes, nothing new",
        1.6,
        prompt(SMALL_SIZES, kind=ManyRuntimes),
    ),
    Case(
        "opencode-1gb",
        "14 of seven, OpenCode's database has 1 GB, nothing new",
        1.1,
        large_database(is_new=False),
        reference_title="1 MB",
    ),
    Case(
        "opencode-1gb-new",
        "the same, 20 KB new in each",
        1.1,
        large_database(is_new=True),
        reference_title="1 MB",
    ),
    Case("new-50", "50 other sessions, 20 KB new in each", 1.6, prompt(MIXED_SIZES, News), 1.5),
    Case(
        "new-50-about",
        "the same, and the prompt names another subject, so titles are compared",
        2.4,
        prompt(MIXED_SIZES, News, kind=WithSubject, expect=_silence),
        1.5,
    ),
    Case(
        "new-50-typed",
        "the same, all of it typed by users",
        1.6,
        prompt(MIXED_SIZES, partial(News, is_typed=True)),
        1.5,
    ),
    Case("new-50-next", "the prompts after that, until all are told", 1.5, told_in_turn, 1.5),
    Case(
        "new-50-secret",
        "50 other sessions, a prompt with a password in each",
        2.4,
        prompt(MIXED_SIZES, Passwords, expect=_says(b"[redacted: password]")),
    ),
    Case(
        "unreported-50",
        "50 other sessions, hardly any reported yet, 20 KB new in each",
        8.0,
        prompt(MIXED_SIZES, News, kind=Begun),
        2.0,
    ),
    Case(
        "unreported-50-next",
        "the prompt after that, 20 KB new in each again",
        3.5,
        prompt(MIXED_SIZES, MoreNews, kind=Begun),
        2.0,
    ),
    Case(
        "skipped",
        "an edit and 64 MB of screenshots and outputs behind it",
        8.0,
        prompt(MIXED_SIZES[:6], Buried, expect=_says(b"edited module.py")),
        2.0,
    ),
    Case(
        "told",
        "something told last is to be found",
        1.3,
        acknowledgement,
        reference_title="nothing",
    ),
    Case(
        "collisions",
        "6 other sessions edited files in hand, HEAD moved",
        1.6,
        prompt(MIXED_SIZES[:6], Clash, expect=_says(b"! branch is now fix", EDITED)),
        1.5,
    ),
    Case(
        "call-quiet",
        "before an edit, 50 other sessions, nothing new",
        1.0,
        prompt(MIXED_SIZES, run=Scene.call_hook),
        1.5,
    ),
    Case(
        "call-memories",
        "the same, and 1,000 memories that name other files",
        1.0,
        prompt(MIXED_SIZES, kind=Remembering, run=Scene.call_hook),
        1.5,
    ),
    Case(
        "call-new",
        "before an edit, 10 other sessions, 20 KB new in each",
        1.4,
        prompt(MIXED_SIZES[:10], News, run=Scene.call_hook, expect=_silence),
        1.5,
    ),
    Case(
        "call-collisions",
        "before an edit of what one of 6 other sessions edited",
        1.5,
        prompt(MIXED_SIZES[:6], Clash, run=Scene.call_hook, expect=_says(b"PreToolUse", EDITED)),
        1.5,
    ),
    Case("end-of-turn", "a turn ends, 50 other sessions, with notices on", 1.3, end_of_turn),
    Case("status-line", "the status line, 50 other sessions", 1.0, status_line, 1.5),
    Case(
        "quiet-50-line",
        "50 other sessions, nothing new, with the status line on",
        1.2,
        prompt_with_status_line,
        reference_title="off",
    ),
    Case("first-10", "first prompt ever, 10 sessions of 100 MB", 2.4, first_prompt(LARGE_SIZES)),
    Case("first-50", "first prompt ever, 50 sessions", 2.4, first_prompt(MIXED_SIZES)),
    Case("quiet-1000", "1,000 other sessions, nothing new", 1.6, prompt(SMALL_SIZES)),
    Case(
        "quiet-1000-named",
        "the same, named sessions of an agent",
        2.2,
        prompt(SMALL_SIZES, with_names=True),
    ),
    Case(
        "session-start",
        "a session starts, upkeep ran a moment ago",
        1.3,
        session_start(is_due=False),
    ),
    Case(
        "session-start-due", "the same, upkeep is due and starts", 1.5, session_start(is_due=True)
    ),
    Case("reader", "reader, last 50 messages of 1 GB", 1.1, reader, reference_title="of 4 MB"),
]
