"""The noise of the coupled rule over three tokens, in closed form, so that it can be enumerated.

Three exponential noises divided by their sum are a uniform point of a triangle.  A race over a row asks in which of
three parts the point lies: the part of token x is where e(x) / row(x) is least, and its share of the triangle is
row(x).  All that a position knows after several races is the polygon that its point lies in, so a race is a choice
among the pieces of it, weighted by their areas: exact, without a sample of noise.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from engine.sampling import Distribution
from tests.engine.rounds import Path
from tests.engine.rows import dense

Point = tuple[float, float, float]
Polygon = tuple[Point, ...]

TRIANGLE: Polygon = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
SLIVER = 1e-15
"""A piece smaller than this is made by rounding."""


class TriangleNoise:
    """Stands in for engine.noise.Noise: each race is a choice of the path, in agreement with those before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._where: dict[int, Polygon] = {}

    def race(self, distribution: Distribution, position: int) -> int:
        """The winner at this position."""
        row = tuple(dense(distribution, 3).tolist())
        token, self._where[position] = self._path.branch(pieces(self._where.get(position, TRIANGLE), row))
        return token

    def settle(self, position: int) -> None:
        """Nothing is held that could be let go."""


@lru_cache(maxsize=100_000)
def pieces(polygon: Polygon, row: Point) -> list[tuple[tuple[int, Polygon], float]]:
    """Each token that can win, with its part of the polygon, and the share that this is."""
    parts = [(token, part(polygon, row, token)) for token in range(3)]
    return [((token, piece), area(piece) / area(polygon)) for token, piece in parts if area(piece) > SLIVER]


def part(polygon: Polygon, row: Sequence[float], winner: int) -> Polygon:
    """Where the winner's noise, divided by its probability, is the least."""
    for other in range(3):
        if other != winner:
            polygon = _clipped(polygon, [point[winner] * row[other] - point[other] * row[winner] for point in polygon])
    return polygon


def area(polygon: Polygon) -> float:
    """As a share of the triangle."""
    edges = pairwise((*polygon, *polygon[:1]))
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in edges))


def _clipped(polygon: Polygon, height: Sequence[float]) -> Polygon:
    """The part of a convex polygon where a linear function, given at its corners, is 0 or less."""
    kept: list[Point] = []
    corners = list(zip(polygon, height, strict=True))
    for (a, at_a), (b, at_b) in pairwise([*corners, *corners[:1]]):
        if at_a <= 0:
            kept.append(a)
        if at_a * at_b < 0:
            share = at_a / (at_a - at_b)
            kept.append(tuple(x + share * (y - x) for x, y in zip(a, b, strict=True)))  # type: ignore[arg-type]
    return tuple(kept)
