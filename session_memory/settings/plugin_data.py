"""The directory that a runtime keeps for a plugin, beyond its updates: where our environment lies in it."""

from __future__ import annotations

import sys

ENV_DATA = "CLAUDE_PLUGIN_DATA"
SHARED_FOLDER = "plugin"  # in the person's place: the same for runtimes that keep no such directory


def add_site_packages(data_dirs: list[str]) -> None:
    """Lets this process import what was set up for its Python in `data_dirs`, as far as it was."""
    import os

    inside = "Lib" if os.name == "nt" else f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    for data_dir in data_dirs:
        packages = f"{data_dir}/env/{inside}/site-packages"
        if os.path.isabs(data_dir) and packages not in sys.path:
            sys.path.append(packages)
