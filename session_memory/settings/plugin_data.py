"""The directory that a runtime keeps for a plugin, beyond its updates: where our environment lies in it."""

from __future__ import annotations

import sys

ENV_DATA = "CLAUDE_PLUGIN_DATA"


def add_site_packages() -> None:
    """Lets this process import what was set up in the data directory for its Python; nothing outside a plugin."""
    import os

    data_dir = os.environ.get(ENV_DATA, "")
    if os.path.isabs(data_dir):
        inside = "Lib" if os.name == "nt" else f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
        sys.path.append(f"{data_dir}/env/{inside}/site-packages")
