"""The directory that a runtime keeps for a plugin, beyond its updates: where our environment lies in it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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


def add_all_packages(environ: Mapping[str, str]) -> None:
    """The same with what any plugin of ours has set up for itself, or an install has."""
    from .. import NAME
    from ..runtimes import all_runtimes
    from .program import program_paths

    data_dirs = [path for each in all_runtimes() for path in each.INSTALL.plugin_data_dirs(environ, NAME)]
    add_site_packages([environ.get(ENV_DATA, ""), *data_dirs, str(program_paths(environ).program_dir)])
