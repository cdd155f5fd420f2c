"""Makes permissions effective for a process of a test, even if root runs the tests."""

from __future__ import annotations

import ctypes
import os

_PR_CAPBSET_DROP = 24  # prctl(2)
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def bind_permissions() -> None:
    """For `preexec_fn`: takes from root what lets it read and write whatever the permissions say."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "root's capabilities cannot be dropped")
