"""The output of a command: lines for people, in colour on a terminal, or JSON; and its errors.

It uses no packages, because install runs on a bare Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TextIO

from ... import NAME
from ..errors import SessionMemoryError, WrongCallError, described
from .files import user_dir
from .plain_output import PlainOutput, painted, plain_output, plain_text

_MISSING_HINT = "run install.py again on a network with a package index"
_INCOMPLETE_HINT = (
    "the program is incomplete: run install.py again, from a complete copy of the repository"
)
_PACKAGE_SCRIPT = "/scripts/memory.py"  # the command, as plugins and packages bring it
_WIDEST = 100
_BAR = 12  # columns that are kept free for bars; at most twice as many are used
_BAR_CHARACTER = "━"
_MOST_RENDERED = 200_000  # characters of all texts of an output; a million takes some seconds
_MOST_CAUSES = 10
_NO_MEMORY = f"""{NAME}: there is not enough memory
  nothing was lost: raise the limit (ulimit -v), or end other programs
""".encode()
_OF_LOADER = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")


def exit_code(
    command: Callable[[], int], how_to_add: Callable[[str], str] = lambda module: _MISSING_HINT
) -> int:
    """Run a command and return its exit code.

    For a SessionMemoryError, an OSError or a missing package, print one line and a hint to stderr
    and return 1 (2 for a WrongCallError). Print `?` for characters that stdout's encoding lacks.
    `how_to_add` returns the hint for a missing module."""
    _open_closed_streams()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(plain_output, before)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _interrupt_again
    try:
        code = _with_enough_memory(command, how_to_add)
    # from argparse; any other exception is a bug, and its traceback must pass through the same
    # stream
    except SystemExit:
        sys.stdout, sys.stderr = before
        raise
    sys.stdout, sys.stderr = before
    return code


def _open_closed_streams() -> None:
    """Open the standard streams that the caller has closed (`>&-`).

    Otherwise the next file to be opened would take their number and get the output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  open to the end


def _with_enough_memory(command: Callable[[], int], how_to_add: Callable[[str], str]) -> int:
    try:
        return _interruptible(command, how_to_add)
    except Exception as error:
        if not any(map(_is_of_memory, _causes(error))):
            raise
    os.write(2, _NO_MEMORY)  # with nothing that has to be imported
    return 1


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it was raised from or after."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _is_of_memory(error: BaseException) -> bool:
    """Return whether an error reports too little memory.

    It may come from Python, SQLite, the loader or a thread."""
    is_loader_s = isinstance(error, ImportError) and any(text in str(error) for text in _OF_LOADER)
    is_thread_s = isinstance(error, RuntimeError) and "start new thread" in str(error)
    # Python could not make one
    is_lost = isinstance(error, SystemError) and "exception" in str(error)
    is_plain = isinstance(error, MemoryError) or type(error).__name__ == "NoMemError"
    return is_plain or is_loader_s or is_thread_s or is_lost


def _interruptible(command: Callable[[], int], how_to_add: Callable[[str], str]) -> int:
    try:
        return _finished(command, how_to_add)
    except (KeyboardInterrupt, RuntimeError) as error:
        # An interrupt during the import of a dataclass: up to Python 3.11 it is the cause of a
        # RuntimeError.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(
            error.__cause__, KeyboardInterrupt
        ):
            raise
        _ignore_alarms()
        print(f"\n{NAME}: stopped; run it again to continue from here", file=sys.stderr)
        return 130


def main_of(module: str, *arguments: object) -> int:
    """Import a module of this package and run its `main`, for a script; return the exit code.

    The import may fail if a file of the program is missing."""
    from .utf8_mode import ensure_utf8_mode

    ensure_utf8_mode()
    package = __package__.partition(".")[0]
    return exit_code(
        lambda: int(__import__(f"{package}.{module}", fromlist=["main"]).main(*arguments))
    )


def _finished(command: Callable[[], int], how_to_add: Callable[[str], str]) -> int:
    try:
        code = command()
        sys.stdout.flush()  # else a full disk is noticed when nothing can report it
        return code
    except SessionMemoryError as error:
        print_error(str(error), error.hint)
        return 2 if isinstance(error, WrongCallError) else 1
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] in (
            __package__.partition(".")[0],
            *sys.stdlib_module_names,
        ):
            raise  # a bug of ours
        print_error(f"this needs {error.name}, which is not installed", how_to_add(error.name))
    except BrokenPipeError:  # for example closed by `| head`
        pass
    except OSError as error:
        package = os.path.abspath(f"{__file__}/../../..") + os.sep
        is_ours = isinstance(error, FileNotFoundError) and str(error.filename).startswith(package)
        print_error(described(error), _INCOMPLETE_HINT if is_ours else "")
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # a closed pipe, a full disk: flushing it at exit would print a traceback
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Raise an interrupt once more that came in a callback, such as a callback of import.

    Python would print a traceback and drop it."""
    import signal

    if not isinstance(dropped.exc_value, KeyboardInterrupt) or not hasattr(signal, "setitimer"):
        sys.__unraisablehook__(dropped)
        return
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.001)  # when the callback is over


def _ignore_alarms() -> None:
    """Ignore an alarm of `_interrupt_again` that is still to come.

    Python takes its handler away at exit, and the alarm would kill the process."""
    import signal

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)


def print_error(text: str, hint: str = "") -> None:
    """Print the problem and the remedy to stderr, with the command as the user can call it."""
    import re  # only errors need it

    # a path that ends with the name may belong to a program that called this one
    lines = re.sub(rf"(?<![\w./-]){NAME} ", lambda _: f"{called_as()} ", hint).splitlines()
    print("\n  ".join([f"{NAME}: {text}", *lines]), file=plain_output(sys.stderr))


def print_note(text: str) -> None:
    """Print a line to stderr: the result may be piped elsewhere."""
    print(f"{NAME}: {text}", file=plain_output(sys.stderr), flush=True)


def ring_bell() -> None:
    """Ring the bell of the terminal that shows stdout, else of the one that shows stderr."""
    streams = [plain_output(stream) for stream in (sys.stdout, sys.stderr)]
    for stream in [stream for stream in streams if stream.isatty()][:1]:
        stream.bell()


def print_traceback(error: Exception) -> None:
    """Print the traceback of a bug to stderr."""
    import traceback

    traceback.print_exception(
        type(error), error, error.__traceback__, file=plain_output(sys.stderr)
    )


def called_as() -> str:
    """Return the words with which to call this program again.

    They are its name if that would find it. If it was called by the path that skills give (of the
    launcher, or of a package's script), they are that path, because permissions match it. Otherwise
    they are its path."""
    from shlex import quote  # only few lines name the command

    script = sys.argv[0]
    if script.endswith(_PACKAGE_SCRIPT):
        return quote(os.path.abspath(script))
    directory, name = os.path.split(script)
    if name != NAME or not os.path.isabs(script):
        return NAME
    program_dir = os.path.abspath(f"{__file__}/../../../../..")  # if the package is in app/
    is_found = directory in os.environ.get("PATH", "").split(os.pathsep)
    return NAME if is_found and directory != f"{program_dir}/bin" else quote(script)


class Result:
    """The outcome of a command, as a dataclass from which both its text and its JSON follow.

    Without an `as_json` of its own, the fields are the keys of the JSON."""

    def show(self, terminal: Terminal) -> None:
        """Print the result for people."""
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return dict(vars(self))

    @property
    def verbatim(self) -> Collection[str]:
        """The keys of the JSON whose texts are printed as they are."""
        return ()

    @property
    def indent(self) -> int | None:
        """The indentation of the JSON; None prints it on one line, as for streams."""
        return 2


class Terminal:
    """The output of a command, stdout unless `out` is given.

    With `is_json` it prints only results."""

    def __init__(
        self, environ: Mapping[str, str], *, is_json: bool = False, out: TextIO | None = None
    ) -> None:
        self.is_json = is_json
        self.environ = environ
        self._out: PlainOutput = plain_output(sys.stdout if out is None else out)
        self.is_interactive = self._out.isatty()
        self._is_coloured = (
            self.is_interactive and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        )
        self.width = min(columns() if self.is_interactive else 80, _WIDEST)
        self._collected: list[str] | None = None
        self._broken: Callable[[str], str] = str  # breaks the lines that are collected
        self._left_to_render = _MOST_RENDERED

    def paint(self, style: str, text: str) -> str:
        """Return `text` in a style, such as bold or red, if the terminal shows colours."""
        return painted(style, text) if self._is_coloured else text

    def short(self, text: str) -> str:
        """Return `text` on one line, with each path below the home directory shortened to `~`."""
        text = text.replace("\n", " ")
        home = user_dir(self.environ)
        shown, *parts = text.split(home + os.sep) if home else [text]
        for part in parts:
            # of another path: /mnt/root/x
            is_inside = shown[-1:].isalnum() or shown[-1:] in ("-", "_", ".", "~")
            shown += f"{home if is_inside else '~'}{os.sep}{part}"
        return shown

    @property
    def is_screen(self) -> bool:
        """Check if the output is a terminal whose screen can be drawn again."""
        return (
            self.is_interactive and not self.is_json and self.environ.get("TERM", "dumb") != "dumb"
        )

    def can_ask(self) -> bool:
        """Check if a person can see the output and answer."""
        return (
            not self.is_json
            and self.is_interactive
            and sys.stdin is not None
            and sys.stdin.isatty()
        )

    def ask(self, question: str) -> bool:
        """Ask a yes/no question. Anything but yes, and the end of the input, means no."""
        return self._answer(f"{question} [y/N] ").lower() in ("y", "yes")

    def _answer(self, question: str) -> str:
        """Return the line that a person types after a question; '' at the end of the input."""
        self._out.write(question)
        self._out.flush()
        typed = sys.stdin.readline()
        if not typed:  # Ctrl-D leaves the cursor behind the question
            self.line()
        return typed.strip()

    def choose(self, rows: Sequence[Sequence[str]], question: str) -> int | str:
        """Let a person choose a row; the first row has headings.

        Return its place among the others, or the text that the person typed instead: '' for
        nothing. They choose with fzf if it is installed, else by a number."""
        from ._chooser import chosen_with_fzf
        from .tables import HeadedRows

        chosen = chosen_with_fzf([plain_text(line) for line in HeadedRows(rows).lines(columns())])
        if chosen is not None:
            return chosen if chosen >= 0 else ""
        shown = rows[: max(2, _screen_lines() - 2)]
        numbered = [(str(number or ""), *row) for number, row in enumerate(shown)]
        self.table(numbered, [0])
        typed = self._answer(f"{question} ")
        is_number = typed.isdecimal() and 0 < int(typed[:9]) < len(shown)
        return int(typed) - 1 if is_number else typed

    @contextmanager
    def paged(self) -> Iterator[None]:
        """Break long lines between words, and show more than a screen in a pager, if the output is
        a terminal."""
        if self.is_json or not self.is_interactive or self._collected is not None:
            yield
            return
        from ._pager import broken_at_words, show_in_pager

        width = columns()
        self._broken = lambda text: broken_at_words(text, width)
        lines = self._collected = []
        try:
            yield
        finally:
            self._collected, self._broken = None, str
            text = "\n".join([*lines, ""])
            if not show_in_pager(text, width, self.environ):
                self._out.write(text)
                self._out.flush()

    @contextmanager
    def redrawn(self) -> Iterator[Callable[[Result], None]]:
        """Yield a function that shows a result instead of the one before.

        It uses a screen of its own, until the block is left, without the lines that do not fit."""
        self._out.alternate(True)
        try:
            yield self._redraw
        finally:
            self._out.alternate(False)

    def _redraw(self, result: Result) -> None:
        self.width = min(columns(), _WIDEST)
        lines = self._collected = []
        try:
            result.show(self)
        finally:
            self._collected = None
        self._out.screen("\n".join(lines[: _screen_lines() - 1]) + "\n")

    def line(self, text: str = "") -> None:
        if self._collected is not None:
            self._collected.append(self._broken(text))
        elif not self.is_json:
            print(text, file=self._out, flush=True)

    def table(
        self,
        rows: Sequence[Sequence[str]],
        numbers: Collection[int],
        shares: Sequence[float] = (),
    ) -> None:
        """Print rows in columns, the first row as headings; the columns in `numbers` are aligned on
        the right.

        On a terminal, cells that have no room are cut, and the rows below the headings end with
        bars for `shares`, unless that would cut the cells to less than a bar's length."""
        from .tables import HeadedRows

        room = columns() if self.is_interactive else None
        table = HeadedRows(rows, numbers)
        lines = table.lines(room)
        if room is not None and shares:
            narrow = table.lines(room - _BAR, 2 * _BAR)
            barred = self.with_bars(narrow, [0.0, *shares, *[0.0] * len(rows)])
            lines = lines if barred == narrow else barred
        for index, line in enumerate(lines):
            self.line(line if index else self.paint("bold", line))

    def with_bars(self, lines: Sequence[str], shares: Sequence[float]) -> list[str]:
        """Return lines, on a terminal with a bar behind each that has a share of at most 1.

        Without room for bars, they stay as they are."""
        from ._wrapping import width_of

        widths = [width_of(line) for line in lines]
        begin = max(widths, default=0) + 2
        length = min(_BAR * 2, columns() - begin)
        if not self.is_interactive or length < _BAR // 2:
            return list(lines)
        bars = [_BAR_CHARACTER * max(round(share * length), share > 0) for share in shares]
        return [
            f"{line}{' ' * (begin - width)}{self.paint('blue', bar)}" if bar else line
            for line, width, bar in zip(lines, widths, bars)
        ]

    def markdown(self, text: str, label: str = "") -> None:
        """Print Markdown behind a label: rendered on a terminal with colours, else as it is."""
        width, indent = self.width - len(label), " " * len(label)

        def lines(rendering: ModuleType) -> list[str]:
            first, *others = rendering.markdown_lines(text, width) or [""]
            return [label + first, *[f"{indent}{line}".rstrip() for line in others]]

        self._rendered(f"{label}{text}", lines)

    def diff(self, text: str, indent: str) -> None:
        """Print the lines of a diff behind an indent: in colours on a terminal that shows them."""
        self._rendered(
            "\n".join([indent + line for line in text.split("\n")]),
            lambda rendering: [indent + line for line in rendering.code_lines(text, "diff")],
        )

    def _rendered(self, text: str, lines: Callable[[ModuleType], list[str]]) -> None:
        self._left_to_render -= len(text)
        if self.is_json or not self._is_coloured or self._left_to_render < 0:
            self.line(text)
            return
        try:
            from . import _rendering
        except ModuleNotFoundError:  # an incomplete install lacks rich
            self.line(text)
            return
        shown = "\n".join(lines(_rendering))
        if self._collected is not None:
            self._collected.append(shown)  # broken between words already, except for code
        else:
            self.line(shown)

    def heading(self, text: str) -> None:
        self.line()
        self.line(self.paint("bold", text))

    def item(self, label: str, text: str) -> None:
        """Print a label and a wrapped text beside it."""
        self.paragraph(text, indent=" " * 15, first=f"  {label:<13}")

    def paragraph(self, text: str, indent: str = "", first: str | None = None) -> None:
        """Print text wrapped to the width of the terminal; words longer than that (paths) stay
        whole."""
        import textwrap

        start = indent if first is None else first
        self.line(
            textwrap.fill(
                text,
                self.width,
                initial_indent=start,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )

    def quote(self, text: str) -> None:
        """Print text from another program, each line behind a bar."""
        import textwrap

        bar = self.paint("green", "  | ")
        for line in text.splitlines():
            for part in textwrap.wrap(
                line, self.width - 4, subsequent_indent="  ", break_on_hyphens=False
            ) or [""]:
                self.line(bar + part)

    def note(self, text: str) -> None:
        """Print something that the user should know or do, after an exclamation mark."""
        self.paragraph(text, indent="    ", first="  " + self.paint("yellow", "!") + " ")

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Print the current work to stderr; on a terminal, remove the line when the work is
        done."""
        if self.shows_status():
            self.status(f"  {text} ...")
        else:
            self.log(f"  {text} ...")
        try:
            yield
        finally:
            if self.shows_status():
                self.status("")

    def shows_status(self) -> bool:
        """Check if a person sees a line on stderr that changes."""
        return not self.is_json and self.environ.get("TERM") != "dumb" and sys.stderr.isatty()

    def status(self, text: str) -> None:
        """Replace the line that the cursor is in, on stderr; '' removes it."""
        plain_output(sys.stderr).status(text)

    def log(self, text: str) -> None:
        """Print a line to stderr, unless the output is for programs."""
        if not self.is_json:
            print(text, file=plain_output(sys.stderr), flush=True)

    def show(self, result: Result) -> None:
        """Print a result: as one JSON object if JSON was requested, else for people."""
        if self.is_json:
            self.show_json(result)
        else:
            result.show(self)

    def show_paged(self, result: Result) -> None:
        """Print a list or a text: on a terminal with whole words, and in a pager if it is long."""
        with self.paged():
            self.show(result)

    def show_json(self, result: Result) -> None:
        """Print a result as JSON.

        Texts are in the form for models, except under the keys in `result.verbatim`."""
        import json

        shown = {
            key: item if key in result.verbatim else _for_models(item)
            for key, item in result.as_json().items()
        }
        text = json.dumps(shown, indent=result.indent, ensure_ascii=False)
        for character in set(text) - {"\n"}:
            if plain_text(character) != character:  # escaped, nothing is lost
                text = text.replace(character, json.dumps(character)[1:-1])
        try:
            text.encode(self._out.encoding)
        except UnicodeEncodeError:  # then all but ASCII is escaped
            text = json.dumps(shown, indent=result.indent)
        print(text, file=self._out, flush=True)

    def verbatim(self, text: str) -> None:
        """Print text as it is, without a line feed: a script, a page or a transcript.

        A terminal gets it as plain characters. A pipe loses nothing, whatever its encoding."""
        if self._collected is not None:
            self._collected.append(self._broken(text.removesuffix("\n")))
        elif not self.is_json:
            self._out.verbatim(text.encode("utf-8", "backslashreplace"))


def _for_models(value: Any) -> Any:
    """Return a JSON value with all texts and keys in the form of `for_prompt`, since all is data.

    Bytes of a name that are not UTF-8 stay, so a caller can pass the name back."""
    import re

    from ..text.sanitize import for_prompt

    if isinstance(value, str):
        parts = re.split("([\ud800-\udfff]+)", value)
        return "".join(
            [part if number % 2 else for_prompt(part) for number, part in enumerate(parts)]
        )
    if isinstance(value, dict):
        return {_for_models(key): _for_models(item) for key, item in value.items()}
    return [_for_models(item) for item in value] if isinstance(value, (list, tuple)) else value


def byte_size(count: float) -> str:
    """Return `140 bytes`, `14 kB`, `1.2 MB`, `340 MB`."""
    if count < 1000:
        return f"{count:.0f} byte{'' if count == 1 else 's'}"
    if count < 999_500:
        return f"{count / 1000:.0f} kB"
    return f"{count / 1e6:.1f} MB" if count < 1e7 else f"{count / 1e6:,.0f} MB"


def _screen_lines() -> int:
    """Return the height of the terminal in lines; 24 if stdout is not one."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except (OSError, ValueError):
        return 24


def columns() -> int:
    """Return the width of the terminal in columns; 80 if stdout is not one."""
    try:
        return (
            int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns)
            or 80
        )
    except (OSError, ValueError):
        return 80
