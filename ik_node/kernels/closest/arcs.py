# SPDX-License-Identifier: Apache-2.0
"""What joints 2, 3, 4 can reach in their plane: the arcs that bound it, and the nearest point on them."""

from math import atan2, isnan, sqrt

from ..arrays.layout import C1, C2, C5, END, P0, W1, W5, U
from ..arrays.rotation import rotate_axis_angle, stops_within_a_turn, wrap_into_limits
from ..runtime.compiled import compiled
from .plane import in_plane, phase, phasor, planar_sign

# Where the distance to a target has a minimum, each of the three joints is at a limit or free, and the rigid
# pieces between free joints point along the line through the target. The first free joint turns about a fixed
# tip, and all that follow stay at fixed angles: the tool point is on an arc about that tip.
MOST_ARCS = 64
# Columns of arcs; FIRST 3: no joint is free. From A2 on: the angles of the three joints.
TIP_X, TIP_Y, RADIUS, FIRST, TURN, A2 = range(6)
CASES = 27  # each joint free, at its lower or at its upper limit


@compiled
def tool_in_plane(form, plane, q5):
    """Joint 5 given: (tool point from axis 4 in the plane, complex, and its height along u [m])."""
    u, w5, r5, p0, r4 = form[U], form[W5], form[C5], form[P0], form[END]
    s = phasor(q5)
    x, y, z = rotate_axis_angle(w5, s.real, s.imag, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    x, y, z = x + r5[0], y + r5[1], z + r5[2]
    return in_plane(plane, x - r4[0], y - r4[1], z - r4[2]), u[0] * x + u[1] * y + u[2] * z


@compiled
def goal_in_plane(form, goal, plane, q1):
    """Joint 1 given: (goal from axis 2 in the plane, complex, and its height along u [m])."""
    u, w1, r1, r2 = form[U], form[W1], form[C1], form[C2]
    s = phasor(-q1)
    x, y, z = rotate_axis_angle(w1, s.real, s.imag, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    x, y, z = x + r1[0], y + r1[1], z + r1[2]
    return in_plane(plane, x - r2[0], y - r2[1], z - r2[2]), u[0] * x + u[1] * y + u[2] * z


@compiled
def bounding_arcs(form, limits, l1, l2, end, arcs):
    """Write arcs (MOST_ARCS, 8), every one of CASES with the senses of its pieces; returns how many.

    Angles of free joints but the first must be within their limits, and the radius positive: a tool point on
    the far side of the tip is nearest nowhere.
    """
    count = 0
    for case in range(CASES):
        free, usable = 0, True
        for j in range(3):
            at = case // 3**j % 3  # 0 free, 1 lower limit, 2 upper limit
            free += at == 0
            usable = usable and (at == 0 or stops_within_a_turn(limits, j + 1))
        if not usable:
            continue
        for senses in range(1 << free):
            row = arcs[count]
            tip, heading, turned, radius = 0.0j, 0.0, 0.0, 0.0
            piece, first, left, usable = 0.0j, -1, senses, True
            row[FIRST], row[TURN] = 3.0, 0.0
            for j in range(4):
                at = case // 3**j % 3 if j < 3 else 0
                if at == 0:
                    if first >= 0:  # the piece that began at the free joint first ends here
                        sense = 1.0 if left & 1 else -1.0
                        left >>= 1
                        radius += sense * abs(piece)
                        angle = phase(complex(sense, 0.0)) - phase(piece) - heading
                        row[A2 + first] = angle
                        heading += angle + turned
                        if first == int(row[FIRST]):
                            row[TURN] = angle
                        else:
                            q = planar_sign(form, first + 1) * angle
                            q = wrap_into_limits(q, 0.0, limits[0, first + 1], limits[1, first + 1])
                            usable = usable and not isnan(q)
                    elif j < 3:
                        row[FIRST] = j
                    first, piece, turned = j, 0.0j, 0.0
                if j == 3:
                    break
                angle = planar_sign(form, j + 1) * limits[at - 1, j + 1] if at > 0 else 0.0
                link = l1 if j == 0 else l2 if j == 1 else end
                if at > 0:
                    row[A2 + j] = angle
                if first < 0:
                    heading += angle
                    tip += phasor(heading) * link
                else:
                    turned += angle
                    piece += phasor(turned) * link
            if usable and radius >= 0.0:
                row[TIP_X], row[TIP_Y], row[RADIUS] = tip.real, tip.imag, radius
                count += 1
    return count


@compiled
def nearest_arc(form, limits, arcs, count, target):
    """(distance [m], row) of the arc nearest to target within the limits; arcs (k, 8): see bounding_arcs."""
    least, nearest = 1e300, 0
    for k in range(count):
        x, y = target.real - arcs[k, TIP_X], target.imag - arcs[k, TIP_Y]
        distance = abs(sqrt(x * x + y * y) - arcs[k, RADIUS])
        if distance >= least:
            continue
        j = int(arcs[k, FIRST]) + 1
        if j < 4:
            q = planar_sign(form, j) * (atan2(y, x) + arcs[k, TURN])
            if isnan(wrap_into_limits(q, 0.0, limits[0, j], limits[1, j])):
                continue
        least, nearest = distance, k
    return least, nearest


@compiled
def angles_on_arc(form, limits, arc, target, seed, q):
    """Write q[1:4] of the point on arc (8,) nearest to target, turned as near to seed as limits allow."""
    toward = atan2(target.imag - arc[TIP_Y], target.real - arc[TIP_X])
    for j in range(3):
        angle = arc[A2 + j] + (toward if j == int(arc[FIRST]) else 0.0)
        low, high = limits[0, j + 1], limits[1, j + 1]
        value = wrap_into_limits(planar_sign(form, j + 1) * angle, seed[j + 1], low, high)
        q[j + 1] = min(max(seed[j + 1], low), high) if isnan(value) else value
