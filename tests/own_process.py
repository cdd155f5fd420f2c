"""Runs a command of ours in this process, as if it had one of its own.

It has its own environment, directory, streams and arguments. A process takes 0.3 s and more to
start and import; a command takes a tenth of that. Tests of exits by a signal, of locks between
processes and of unclosed files still need a process.
"""

from __future__ import annotations

import functools
import gc
import io
import os
import posix
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from session_memory.cli import main
from session_memory.sessions.runtimes.table import read_outside_again
from session_memory.sessions.settings import program

# To look for modules that are all loaded takes as long as a command.
program.load_all_modules = functools.cache(program.load_all_modules)
# It keeps a directory open until the process ends.
program.stay_with_version = lambda: None
ROOT = Path(__file__).resolve().parents[1]


def plain_environment(home: Path) -> dict[str, str]:
    """Return the environment of a person whose HOME is `home`, with nothing else set."""
    return {
        "HOME": str(home),
        "PATH": os.defpath,
        "PYTHONPATH": str(ROOT),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


def run_here(
    words: list[str],
    environ: Mapping[str, str],
    cwd: Path,
    main: Callable[[list[str]], int] = main,
    name: str = "session-memory",
) -> subprocess.CompletedProcess[str]:
    """Return what `session-memory WORDS`, or another `main`, prints and its exit code. Not for
    threads: the process is theirs too."""
    assert threading.current_thread() is threading.main_thread()
    with ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        with as_a_process([name, *words], environ, cwd), _streams(out.fileno(), err.fileno()):
            gc.freeze()  # so that the collector, at its end, looks only at what it left
            code = _exit_code_of(words, main)
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(words, code, out.read().decode(), err.read().decode())


def _exit_code_of(words: list[str], main: Callable[[list[str]], int]) -> int:
    try:
        return main(words)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        gc.collect()  # closes what the end of a process would


@contextmanager
def as_a_process(arguments: list[str], environ: Mapping[str, str], cwd: Path) -> Iterator[None]:
    before, directory, argv = dict(os.environ), os.getcwd(), sys.argv
    try:
        set_environment(environ)
        os.chdir(cwd)
        sys.argv = arguments
        yield
    finally:
        set_environment(before)
        os.chdir(directory)
        sys.argv = argv


def set_environment(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    posix.environ.clear()  # the hot path reads this one
    posix.environ.update({os.fsencode(key): os.fsencode(value) for key, value in environ.items()})
    time.tzset()
    read_outside_again()  # the runtimes of other packages are a person's


@contextmanager
def _streams(out: int, err: int) -> Iterator[None]:
    """Have this process and those that it starts read from nowhere and write to two descriptors."""
    sys.stdout.flush()
    sys.stderr.flush()
    before, kept = (sys.stdin, sys.stdout, sys.stderr), [os.dup(number) for number in range(3)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        for number, target in enumerate((nothing, out, err)):
            os.dup2(target, number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
        sys.stderr = io.TextIOWrapper(
            io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", write_through=True
        )
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for number, copy in enumerate(kept):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nothing)
