"""A process that goes on after the one that made it, for what a runtime must not wait for, and would kill."""

from __future__ import annotations

from .files import os


def detach() -> bool:
    """Forks: True in the child, which is in a session of its own and has no output that somebody could wait for.

    On Windows, which cannot fork, True here and now.
    """
    if not hasattr(os, "fork"):
        return True
    if os.fork():
        return False
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    return True
