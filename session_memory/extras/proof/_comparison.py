"""Comparison of two shares: a difference, its interval, and a permutation test. Pure.

A session's actions at several moments are alike, so sessions are shuffled, not moments. The
interval is as wide as their agreement demands: Wilson's for each share, with the number of moments
divided by the design effect, combined by Newcombe's method."""

from collections.abc import Hashable, Iterable
from functools import lru_cache
from math import sqrt
from random import Random
from typing import NamedTuple

FEW = 30  # cases on a side: with fewer, it is too early to say
SHUFFLES = 2000
SEED = 36
_Z = 1.959964  # of 95 %


class Tally(NamedTuple):
    """Counts by cluster (a session): (looked first, moments)."""

    clusters: tuple[tuple[int, int], ...]

    @property
    def heeded(self) -> int:
        return sum(heeded for heeded, _ in self.clusters)

    @property
    def cases(self) -> int:
        return sum(cases for _, cases in self.clusters)

    @property
    def share(self) -> float:
        return self.heeded / self.cases if self.cases else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The share's interval of 95 %."""
        return _wilson(self.share, self.cases / _design_effect(self)) if self.cases else (0.0, 1.0)


class Difference(NamedTuple):
    """The difference of two shares, and its interval of 95 %.

    It also has how often shuffled labels differ as much."""

    value: float
    low: float
    high: float
    p: float


def tally_of(cases: Iterable[tuple[Hashable, bool]]) -> Tally:
    """Return a side from its cases, each with its cluster."""
    clusters: dict[Hashable, tuple[int, int]] = {}
    for cluster, has_looked in cases:
        heeded, number = clusters.get(cluster, (0, 0))
        clusters[cluster] = heeded + has_looked, number + 1
    return Tally(tuple(clusters.values()))


@lru_cache(maxsize=64)
def difference(tally: Tally, other: Tally) -> Difference | None:
    """Return by how much the share of `tally` is larger; None with fewer than FEW cases on a side.

    The result is cached: one proof shows it in four places, and the shuffles take a tenth of its
    time."""
    if min(tally.cases, other.cases) < FEW:
        return None
    return Difference(tally.share - other.share, *interval(tally, other), permuted(tally, other))


def interval(tally: Tally, other: Tally) -> tuple[float, float]:
    """Return the interval of 95 % of the difference."""
    (low, high), (other_low, other_high) = tally.interval, other.interval
    value = tally.share - other.share
    down = sqrt((tally.share - low) ** 2 + (other_high - other.share) ** 2)
    up = sqrt((high - tally.share) ** 2 + (other.share - other_low) ** 2)
    return value - down, value + up


def permuted(tally: Tally, other: Tally, shuffles: int = SHUFFLES, seed: int = SEED) -> float:
    """Return the share of shuffles with a difference at least as large, two-sided.

    The labels of the clusters are shuffled."""
    clusters = [*tally.clusters, *other.clusters]
    size, random = len(tally.clusters), Random(seed)
    heeded, cases = tally.heeded + other.heeded, tally.cases + other.cases
    observed = abs(tally.share - other.share) - 1e-12
    as_large = 0
    for _ in range(shuffles):
        drawn = random.sample(clusters, size)
        a, n = sum(first for first, _ in drawn), sum(second for _, second in drawn)
        as_large += abs(a / n - (heeded - a) / (cases - n)) >= observed
    return (1 + as_large) / (1 + shuffles)


def _design_effect(side: Tally) -> float:
    """Return the ratio of a share's variance to that with independent cases, at least 1."""
    number, share = len(side.clusters), side.share
    plain = share * (1 - share) / side.cases
    if number < 2 or not plain:
        return 1.0
    spread = sum((heeded - share * cases) ** 2 for heeded, cases in side.clusters)
    return max(1.0, number / (number - 1) * spread / side.cases**2 / plain)


def _wilson(share: float, number: float) -> tuple[float, float]:
    middle = (share + _Z**2 / (2 * number)) / (1 + _Z**2 / number)
    half = _Z / (1 + _Z**2 / number) * sqrt(share * (1 - share) / number + _Z**2 / (4 * number**2))
    return max(0.0, middle - half), min(1.0, middle + half)
