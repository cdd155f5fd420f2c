"""Starts commands and reports their time and memory.

A child's peak memory includes its parent's at the start, because Linux counts from before `exec`.
So this is a separate program, run by a bare interpreter, with hardly any imports. It reads tuples
(arguments, environment, standard input) from stdin with marshal, and answers each with a tuple
(seconds, seconds of the processor, peak memory in the system's unit, exit status, standard output
up to MOST_BYTES). It ends at end of file.
"""

import marshal
import posix as os  # `import os` would show in the peak memory of a bare interpreter
import sys
import time

MOST_BYTES = 1 << 20


def launch(
    arguments: list[str], environment: dict[str, str], stdin: bytes
) -> tuple[float, float, int, int, bytes]:
    """Runs a command to its end. `stdin` has to fit a pipe's buffer."""
    read_stdin, write_stdin = os.pipe()
    read_stdout, write_stdout = os.pipe()
    os.write(write_stdin, stdin)
    os.close(write_stdin)
    actions = [(os.POSIX_SPAWN_DUP2, read_stdin, 0), (os.POSIX_SPAWN_DUP2, write_stdout, 1)]
    begun = time.perf_counter()
    child = os.posix_spawn(arguments[0], arguments, environment, file_actions=actions)
    os.close(write_stdout)
    output = b""
    while block := os.read(read_stdout, 1 << 16):
        if len(output) < MOST_BYTES:
            output += block
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - begun
    os.close(read_stdin)
    os.close(read_stdout)
    of_processor = usage.ru_utime + usage.ru_stime
    return seconds, of_processor, usage.ru_maxrss, os.waitstatus_to_exitcode(status), output


def main() -> None:
    while True:
        try:
            arguments, environment, stdin = marshal.load(sys.stdin.buffer)
        except EOFError:
            return
        marshal.dump(launch(arguments, environment, stdin), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
