"""The directory that a runtime keeps for a plugin, beyond its updates: where our environment lies in it."""

from __future__ import annotations

import sys

ENV_DATA = "CLAUDE_PLUGIN_DATA"


def add_site_packages(data_dirs: list[str] | None = None) -> None:
    """Lets this process import what was set up for its Python in `data_dirs`, by default the one that the runtime names
    to a plugin's hooks and servers; nothing outside a plugin."""
    import os

    inside = "Lib" if os.name == "nt" else f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    for data_dir in [os.environ.get(ENV_DATA, "")] if data_dirs is None else data_dirs:
        packages = f"{data_dir}/env/{inside}/site-packages"
        if os.path.isabs(data_dir) and packages not in sys.path:
            sys.path.append(packages)
