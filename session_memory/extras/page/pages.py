"""The table of the page's views: a new view is a line here, a function in `views/`, and a
template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ._page_request import PageRequest
from .views import (
    branches,
    costs,
    files,
    memories,
    patterns,
    proof,
    search,
    session,
    sessions,
    timeline,
    why,
)


class View(NamedTuple):
    """A view: `values` makes the values for the template `<name>.html`. `path` is below the root;
    `{name}` in it matches anything. A view with a `label` is in the navigation; `g` and its `key`
    open it."""

    name: str
    path: str
    values: Callable[[PageRequest], dict[str, Any]]
    label: str = ""
    key: str = ""


class Action(NamedTuple):
    """A form's action: `work` gets its fields and returns the path, below the root, to show
    next."""

    path: str
    work: Callable[[PageRequest, Mapping[str, str]], str]


def frame(request: PageRequest) -> dict[str, Any]:
    """Return no values: all of the view takes too long for a page, and is loaded into it."""
    return {}


VIEWS = (
    View("now", "/", sessions.now, "Now", "n"),
    View("timeline", "/timeline", timeline.values, "Timeline", "t"),
    View("files", "/files", files.values, "Files", "f"),
    View("search", "/search", search.values, "Search", "s"),
    View("around", "/search/around", search.around),
    View("memories", "/memories", memories.values, "Memories", "m"),
    View("patterns", "/patterns", patterns.values, "Patterns", "p"),
    View("patterns_counted", "/patterns/counted", patterns.counted),
    View("branches", "/branches", frame, "Branches", "b"),
    View("branches_judged", "/branches/judged", branches.judged),
    View("costs", "/costs", costs.values, "Costs", "c"),
    View("costs_counted", "/costs/counted", costs.counted),
    View("proof", "/proof", frame, "Proof", "o"),
    View("proof_counted", "/proof/counted", proof.counted),
    View("session", "/session/{session}", session.values),
    View("session_facts", "/session/{session}/facts", session.facts),
    View("session_cost", "/session/{session}/cost", session.cost),
    View("session_items", "/session/{session}/items", session.items),
    View("session_outline", "/session/{session}/outline", session.outline),
    View("session_why", "/session/{session}/why", why.of_file),
    View("session_call", "/session/{session}/call", session.call),
    View("list", "/list", sessions.listed),
    View("palette", "/palette", search.palette),
    View("palette_filters", "/palette/filters", search.palette_filters),
)
ACTIONS = (
    Action("/memories/forget", memories.forget),
    Action("/memories/take-back", memories.unforget),
)
