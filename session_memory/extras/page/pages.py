"""The page's views, which are rows of `extension_points`.

A new view needs a row there, a function with its `View` in a module, and a template.
"""

from __future__ import annotations

from ... import extension_points
from ...common.extensions import load_present
from ._view import View
from .views import memories, organise, sessions

VIEWS = tuple(
    [View(*fields) for views in load_present(extension_points.VIEWS.values()) for fields in views]
)
ACTIONS = (*sessions.ACTIONS, *organise.ACTIONS, *memories.ACTIONS)
DOWNLOADS = organise.DOWNLOADS
