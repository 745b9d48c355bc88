# SPDX-License-Identifier: Apache-2.0
"""Least distance where axes 2, 3, 4 are parallel: a search over joints 1 and 5, the others by formula."""

from math import ceil, inf, pi, sqrt

import numpy as np

from ..arrays.copies import copy
from ..arrays.layout import (
    C1,
    C2,
    C5,
    DEVIATION,
    END,
    FREE_ROLL,
    KIND,
    LINK1,
    LINK2,
    P0,
    SIGNS,
    SIZE,
    W1,
    W5,
    U,
)
from ..arrays.rotation import stops_within_a_turn
from ..runtime.compiled import compiled
from .arcs import MOST_ARCS, angles_on_arc, bounding_arcs, goal_in_plane, nearest_arc, tool_in_plane
from .plane import solve_triangle_nearest

STEP = 0.05  # rad of joint 1 where the bound does not allow for more
STEPS = (0.2, 1.6)  # rad of joint 5, least and most
SLACK = 0.02  # share of the size by which half a step of joint 5 may move the tool point
BESIDE = (0.5, 1.0)  # rad of joints 1 and 5: places on the same arc that differ by less are one
INSIDE = MOST_ARCS  # in place of the number of an arc: joints 2, 3, 4 reach the target


@compiled
def off_axis(w, x, y, z):
    """Distance of the point (x, y, z) from the line through the origin along the unit axis w (3,)."""
    along = w[0] * x + w[1] * y + w[2] * z
    return sqrt(max(x * x + y * y + z * z - along * along, 0.0))


@compiled
def speeds(form, goal):
    """How fast joints 1 and 5 can change the distance between tool point and goal [m/rad], and 1 the goal.

    Joint 1 turns the arm or, seen from the arm, the goal: the lesser of the two bounds holds.
    """
    w1, r1, u, r2, r4, r5, p0 = form[W1], form[C1], form[U], form[C2], form[END], form[C5], form[P0]
    reach, height = 0.0, 0.0
    for i in range(3):
        height += u[i] * (r4[i] - r2[i])
    for a, b in ((r2, r1), (r5, r4), (p0, r5)):
        reach += sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)
    for link in (form[LINK1], form[LINK2]):
        reach += sqrt(link[0] ** 2 + link[1] ** 2 + link[2] ** 2)
    turning = off_axis(w1, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    slow = off_axis(form[W5], p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    return min(reach + abs(height), turning), slow, turning


@compiled
def add_place(places, count, value, arc, q):
    """Put q (5,) with its distance and number of its arc into places (k, 7), nearest first; the new count.

    Of places beside each other on the same arc the nearer one is kept.
    """
    for k in range(count):
        if (
            places[k, 1] == arc
            and abs(places[k, 2] - q[0]) < BESIDE[0]
            and abs(places[k, 6] - q[4]) < BESIDE[1]
        ):
            if places[k, 0] <= value:
                return count
            for i in range(k, count - 1):
                copy(places[i + 1], places[i])
            count -= 1
            break
    if count == places.shape[0]:
        if places[count - 1, 0] <= value:
            return count
        count -= 1
    k = count
    while k > 0 and places[k - 1, 0] > value:
        copy(places[k - 1], places[k])
        k -= 1
    places[k, 0], places[k, 1] = value, arc
    for i in range(5):
        places[k, 2 + i] = q[i]
    return count + 1


@compiled
def scan_places(form, limits, goal, plane, l1, l2, seed, best, places):
    """Fill places (k, 7) with distance [m], arc and q (5) of what may be nearest to the goal.

    For given joints 1 and 5 the distance is exact (bounding_arcs). It changes with joint 1 no faster than
    speeds says: where it exceeds the least seen, that bound excludes a stretch of joint 1, which is passed
    over; elsewhere the steps are STEP, so that what is left out is within STEP and a step of joint 5 of a
    place found on the same arc. best [m]: a distance that is reached. Returns (number of places, by how much
    the distance may fall beside one [m]).
    """
    arcs, q, trial = np.empty((MOST_ARCS, 8)), np.empty(5), np.empty(5)
    fast, slow, turning = speeds(form, goal)
    low1, high1, low5, high5 = limits[0, 0], limits[1, 0], limits[0, 4], limits[1, 4]
    if not stops_within_a_turn(limits, 0):
        low1, high1 = -pi, pi
    if not stops_within_a_turn(limits, 4):
        low5, high5 = -pi, pi
    size = form[KIND, SIZE]
    rows, spacing = 1, 0.0
    if form[KIND, FREE_ROLL] != 0.0:
        low5 = min(max(seed[4], limits[0, 4]), limits[1, 4])
    else:
        spacing = min(max(2.0 * SLACK * size / max(slow, 1e-9), STEPS[0]), STEPS[1])
        rows = ceil((high5 - low5) / spacing) + 1
        spacing = (high5 - low5) / max(rows - 1, 1)
    slack = 0.5 * spacing * slow + 1e-9
    if form[SIGNS, DEVIATION] > 0.0:
        slack += 1e-3 * size
    margin = slack + 0.5 * STEP * fast
    count, arc = 0, 0
    for row in range(rows):
        q[4] = low5 + spacing * row
        end, tool_height = tool_in_plane(form, plane, q[4])
        number = bounding_arcs(form, limits, l1, l2, end, arcs)
        reach = abs(l1) + abs(l2) + abs(end)
        q[0], safe, inside = low1, 0.0, False
        while True:
            target, height = goal_in_plane(form, goal, plane, q[0])
            off = abs(height - tool_height)
            beyond = max(abs(target) - reach, 0.0)
            value = sqrt(off * off + beyond * beyond)
            if value - margin < best:
                edge, arc = nearest_arc(form, limits, arcs, number, target)
                if safe <= 0.0:  # across an arc it may be inside or not
                    inside = abs(target) <= reach and (
                        solve_triangle_nearest(form, limits, l1, l2, end, target, 0.0, seed, trial, q) < inf
                    )
                value = off if inside else sqrt(off * off + edge * edge)
                safe = edge
            else:
                safe, arc = 0.0, 0
            if value - margin < best:
                if inside:
                    solve_triangle_nearest(form, limits, l1, l2, end, target, 0.0, seed, trial, q)
                    arc = INSIDE
                else:
                    angles_on_arc(form, limits, arcs[arc], target, seed, q)
                count = add_place(places, count, value, arc, q)
                best = min(best, value)
            if q[0] >= high1:
                break
            step = min(max((value - slack - best) / max(fast, 1e-12), STEP), high1 - q[0])
            if not step > 0.0:
                break
            q[0] += step
            safe -= turning * step
    return count, margin
