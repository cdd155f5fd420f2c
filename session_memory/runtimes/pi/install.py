"""Where Pi looks for skills, and what its user types. Our hooks come as an extension, not as settings."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TITLE = "Pi"
HOME_FOLDER = ".pi"
SETTINGS_FILE = ""
SKILLS_FOLDER = "skills"
MANAGED_SETTINGS: Mapping[str, str] = {}

RENAME, CLEAR, RESUME = "/name {name}", "/new", "pi --session {id}"
