"""Starts a process that outlives its parent, for work that a runtime must not wait for and would otherwise kill."""

from __future__ import annotations

from .files import os


def detach() -> bool:
    """Fork. Return True in the child, which has a session of its own and no output that its parent's caller could wait
    for.

    Windows cannot fork: return True in the same process.
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
