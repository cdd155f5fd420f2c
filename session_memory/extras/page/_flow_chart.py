"""The diagram of successive steps: the position of each step and curve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ...common.text.format import shorten
from ...history.patterns.flows import StepFlow

Step = TypeVar("Step", bound=Hashable)

NAME_CHARACTERS = 19  # what a phone has room for
_LEAST_HEIGHT = 18  # of a step, enough for its name
_GAP = 6
_CURVES_HEIGHT = 240  # of all curves of a side together, at most
_MOST_PER_TIME = 6.0  # thickness of a flow for each time it happened, at most


class DrawnStep(NamedTuple):
    """A step on one side: its name as drawn, whether it failed, its position, and its count."""

    step: str
    name: str
    has_failed: bool
    top: float
    height: float
    times: int


class DrawnCurve(NamedTuple):
    """A flow as a curve of some thickness, from the middle `begin` to the middle `end`."""

    flow: StepFlow
    begin: float
    end: float
    thickness: float


class FlowChart(NamedTuple):
    """The steps on both sides, the curves between them, and the height."""

    steps: list[DrawnStep]
    following: list[DrawnStep]
    curves: list[DrawnCurve]
    height: float


def flow_chart(flows: Sequence[StepFlow]) -> FlowChart:
    """Return the diagram of flows; both sides begin with the most frequent step."""
    times = max(1, sum(flow.times for flow in flows))
    scale = min(_MOST_PER_TIME, _CURVES_HEIGHT / times)
    steps = _side([((flow.step, flow.has_failed), flow.times) for flow in flows], scale)
    following = _side([((flow.following, False), flow.times) for flow in flows], scale)
    tops = {(step.step, step.has_failed): step.top for step in steps}
    ends = {step.step: step.top for step in following}
    begins = _middles(flows, tops, scale, lambda flow: ends[flow.following], _source)
    middles = _middles(flows, ends, scale, lambda flow: tops[_source(flow)], _target)
    curves = [
        DrawnCurve(flow, begin, end, flow.times * scale)
        for flow, begin, end in zip(flows, begins, middles)
    ]
    bottoms = [step.top + step.height for step in (*steps, *following)]
    return FlowChart(steps, following, curves, max(bottoms, default=0.0))


def _side(numbers: Sequence[tuple[tuple[str, bool], int]], scale: float) -> list[DrawnStep]:
    """Return the steps of a side from top to bottom, the most frequent first."""
    totals: Counter[tuple[str, bool]] = Counter()
    for step, times in numbers:
        totals[step] += times
    drawn, top = [], 0.0
    for (name, has_failed), times in totals.most_common():
        height = max(_LEAST_HEIGHT, times * scale)
        drawn.append(
            DrawnStep(name, shorten(name, NAME_CHARACTERS), has_failed, top, height, times)
        )
        top += height + _GAP
    return drawn


def _source(flow: StepFlow) -> tuple[str, bool]:
    return flow.step, flow.has_failed


def _target(flow: StepFlow) -> str:
    return flow.following


def _middles(
    flows: Sequence[StepFlow],
    tops: Mapping[Step, float],
    scale: float,
    opposite: Callable[[StepFlow], float],
    step_of: Callable[[StepFlow], Step],
) -> list[float]:
    """Return where each flow meets its step on a side.

    The flows of a step are in the order of their `opposite` ends, so they do not cross."""
    used = dict(tops)
    middles = {}
    for flow in sorted(flows, key=opposite):
        thickness = flow.times * scale
        middles[flow] = used[step_of(flow)] + thickness / 2
        used[step_of(flow)] += thickness
    return [middles[flow] for flow in flows]
