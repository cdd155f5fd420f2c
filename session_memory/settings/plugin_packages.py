"""The packages that plugins have set up for themselves, or an install has, for commands, tools and upkeep."""

from __future__ import annotations

from .. import NAME
from ..runtimes import all_runtimes
from .homes import person_home
from .plugin_data import ENV_DATA, SHARED_FOLDER, add_site_packages
from .program import program_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def shared_data_dir(environ: Mapping[str, str]) -> str:
    """The directory for the environment of plugins in runtimes that keep none for a plugin's data."""
    return f"{person_home(environ).memory_dir}/{SHARED_FOLDER}"


def add_all_packages(environ: Mapping[str, str]) -> None:
    """Lets this process import what any plugin of ours has set up for itself, or an install has."""
    data_dirs = [path for each in all_runtimes() for path in each.install.plugin_data_dirs(environ, NAME)]
    data_dirs += [environ.get(ENV_DATA, ""), shared_data_dir(environ), str(program_paths(environ).program_dir)]
    add_site_packages(data_dirs)
