"""All sections of config.yaml with their keys, as the rows of `extension_points` name them."""

from __future__ import annotations

from ...common.extensions import load_present
from ...extension_points import SETTINGS
from .compiled import Key, Section

SECTIONS: dict[str, type[Section]] = {
    section.SECTION: section for section in load_present(SETTINGS.values())
}
KEYS: tuple[Key, ...] = tuple([key for section in SECTIONS.values() for key in section.table()])
