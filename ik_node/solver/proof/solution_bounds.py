# SPDX-License-Identifier: Apache-2.0
"""How many solutions a goal with a direction can have, complex ones included.

Five joints and the free roll are a chain of six hinges, whose loop has at most 16 isolated solutions
(Primrose, On the input-output equation of the general 7R-mechanism, Mechanism and Machine Theory 21, 1986).
Where three neighbouring joints move in a plane or meet in a point, or axes 4 and 5 meet the tool axis, four
pairs of angles remain, and two ways for the others to each: 8 (docs/explanation/proofs.md).

Those are the bounds of general arms of each kind. They hold for all others and for slides: regular solutions
persist when the geometry is disturbed, and a slide is the limit of a hinge far away.
"""

from __future__ import annotations

from ik_node.solver.proof.exact_geometry import ExactGeometry, Line, Vector, cross, dot, subtracted

GENERAL, SPECIAL = 16, 8


def most_solutions(geometry: ExactGeometry) -> int:
    """Return how many regular complex solutions a goal can have at most; five joints."""
    lines, slides = geometry.axes, geometry.slides
    axes = [axis for _, axis in lines]
    special = not any(slides[3:]) and _meet(lines[3], lines[4], geometry.tool)
    if special and sum(slides[:3]) == 1:
        first, second = (axis for axis, slide in zip(axes[:3], slides[:3], strict=True) if not slide)
        if not any(cross(first, second)):
            return SPECIAL // 2  # the height of the wrist point gives the slide, and a triangle follows
    for k in range(3):
        part = slice(k, k + 3)
        if _planar(axes[part], slides[part]):
            if any(slides[:k] + slides[k + 3 :]):
                return SPECIAL // 2  # the direction gives the other joint, twice, and the slide follows
            special = True
        elif not any(slides[part]):
            special = special or _meet(*lines[part])
    return SPECIAL if special else GENERAL


def _planar(axes: list[Vector], slides: tuple[bool, ...]) -> bool:
    """Whether three joints move in parallel planes: axes parallel, slides perpendicular to them."""
    hinges = [axis for axis, slide in zip(axes, slides, strict=True) if not slide]
    if not hinges:
        return False
    return all(
        dot(hinges[0], axis) == 0 if slide else not any(cross(hinges[0], axis))
        for axis, slide in zip(axes, slides, strict=True)
    )


def _meet(first: Line, second: Line, third: Line) -> bool:
    """Whether three lines meet in one point, the first two of them not parallel."""
    normal = cross(first[1], second[1])
    square = dot(normal, normal)
    if square == 0:
        return False
    share = dot(cross(subtracted(second[0], first[0]), second[1]), normal) / square
    x, y, z = (p + share * w for p, w in zip(*first, strict=True))
    return not any(any(cross(subtracted((x, y, z), line[0]), line[1])) for line in (second, third))
