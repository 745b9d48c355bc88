# SPDX-License-Identifier: Apache-2.0
"""Ball joints: the cone of their swing and the limits of their twist.

The rows of limits after the first two describe them, BALL_ROWS for each: see layout.py and model/ball.py.
"""

from math import asin, cos, inf, log, sin, sqrt, tan

from ..runtime.compiled import compiled

BALL_ROWS = 3
FIRST_JOINT, FIRST_VARIABLE, ORDER = range(3)  # of the first row
HAND, SWING = range(2)  # of the second: sign of the third angle, largest swing [rad]
TWIST_LAST, TWIST_FIRST, PROPER = 0.0, 1.0, 2.0  # ORDER
INSIDE = 1.0 - 1e-10  # share of the largest swing at which what is outside the cone is put
EDGE = 1e-8  # rad from the edge of a cone or twist from which it is in the way
STIFF = 1e6  # times the curvature: how much a step out of the cone costs
NEAR_POLE = 0.1  # sine of the angle to where the joints lock, below which the ball turns as one


@compiled
def swing_angle(a, b):
    """Angle s [rad] with cos s = cos a cos b, exact near zero."""
    half = sin(0.5 * a) * sin(0.5 * a) + cos(a) * sin(0.5 * b) * sin(0.5 * b)
    return 2.0 * asin(sqrt(min(max(half, 0.0), 1.0)))


@compiled
def swing_columns(limits, row):
    """Return the two variables that swing the ball of this row, which is not of order PROPER."""
    first = int(limits[row, FIRST_VARIABLE])
    return (first, first + 1) if limits[row, ORDER] == TWIST_LAST else (first + 1, first + 2)


@compiled
def excess_of_balls(q, limits):
    """Return by how much [rad] q (n,) is outside the cone and the twist of any ball, 0 where it is inside."""
    most = 0.0
    for row in range(2, limits.shape[0], BALL_ROWS):
        if limits[row, ORDER] == PROPER:
            first = int(limits[row, FIRST_VARIABLE])
            twist = q[first] + limits[row + 1, HAND] * q[first + 2]
            most = max(most, max(twist - limits[row + 2, 1], limits[row + 2, 0] - twist))
        else:
            p, r = swing_columns(limits, row)
            most = max(most, swing_angle(q[p], q[r]) - limits[row + 1, SWING])
    return most


@compiled
def keep_in_balls(q, limits):
    """Bring q (n,), within the limits of its joints, inside the cones and twists of all balls, in place.

    Out of a cone straight towards its rest axis in joint space, or towards the place nearest to it that the
    joints have: what is on the way is inside, as the allowed positions are convex.
    """
    for row in range(2, limits.shape[0], BALL_ROWS):
        if limits[row, ORDER] == PROPER:
            keep_twist(q, limits, row)
            continue
        p, r = swing_columns(limits, row)
        most = limits[row + 1, SWING]
        if not swing_angle(q[p], q[r]) > most:
            continue
        a = min(max(0.0, limits[0, p]), limits[1, p])
        b = min(max(0.0, limits[0, r]), limits[1, r])
        way_a, way_b = q[p] - a, q[r] - b
        aim = log(cos(INSIDE * most))
        # Newton's steps from outside on a concave function come down to its zero from above.
        share = 1.0
        for _ in range(30):
            x, y = a + share * way_a, b + share * way_b
            slope = tan(x) * way_a + tan(y) * way_b
            if not slope > 0.0:
                break
            step = (aim - log(cos(x)) - log(cos(y))) / slope
            share -= step
            if not step > 1e-13:
                break
        share, less = min(max(share, 0.0), 1.0), 1e-12
        while swing_angle(a + share * way_a, b + share * way_b) > most and less < 1.0:
            share, less = share * (1.0 - less), 10.0 * less
        q[p], q[r] = a + share * way_a, b + share * way_b


@compiled
def keep_twist(q, limits, row):
    """Bring the twist q1 + hand q3 of a ball of order PROPER inside its limits, by as little as possible."""
    first, hand = int(limits[row, FIRST_VARIABLE]), limits[row + 1, HAND]
    last = first + 2
    twist = q[first] + hand * q[last]
    wanted = min(max(twist, limits[row + 2, 0]), limits[row + 2, 1])
    if wanted == twist:
        return
    wanted += 1e-12 if wanted > twist else -1e-12  # rounding stays inside
    for half in (0.5, 1.0, 1.0):  # what one joint cannot do for its limits is left to the other
        less = q[first] + hand * q[last] - wanted
        q[first] = min(max(q[first] - half * less, limits[0, first]), limits[1, first])
        less = q[first] + hand * q[last] - wanted
        q[last] = min(max(q[last] - hand * less, limits[0, last]), limits[1, last])


@compiled
def fold_into_balls(q, limits):
    """Bring random q (n,), within the limits of its joints, inside the balls, in place.

    What is beyond a cone is folded back at its edge, as perturb folds it back at limits, so that its
    places are not all on the edge.
    """
    for row in range(2, limits.shape[0], BALL_ROWS):
        if limits[row, ORDER] != PROPER:
            p, r = swing_columns(limits, row)
            swing = swing_angle(q[p], q[r])
            if swing > limits[row + 1, SWING]:
                share = max(2.0 * limits[row + 1, SWING] / swing - 1.0, 0.0)
                q[p] = min(max(share * q[p], limits[0, p]), limits[1, p])
                q[r] = min(max(share * q[r], limits[0, r]), limits[1, r])
    keep_in_balls(q, limits)


@compiled
def nearest_edge(q, limits, row):
    """Return (variables p and r, unit normal (x, y) out of the ball's limits in their plane, distance there).

    The distance [rad] is to first order; without a limit, or at rest in a cone, it is infinite.
    """
    if limits[row, ORDER] == PROPER:
        p, hand = int(limits[row, FIRST_VARIABLE]), limits[row + 1, HAND]
        twist = q[p] + hand * q[p + 2]
        below, above = twist - limits[row + 2, 0], limits[row + 2, 1] - twist
        x = sqrt(0.5) if above < below else -sqrt(0.5)
        return p, p + 2, x, hand * x, sqrt(0.5) * min(above, below)
    p, r = swing_columns(limits, row)
    x, y = sin(q[p]) * cos(q[r]), cos(q[p]) * sin(q[r])
    size = sqrt(x * x + y * y)
    if not size > 1e-9:
        return p, r, 1.0, 0.0, inf
    swing = swing_angle(q[p], q[r])
    return p, r, x / size, y / size, (limits[row + 1, SWING] - swing) * sin(swing) / size


@compiled
def hold_in_balls(q, limits, gradient, hessian, opened):
    """Let the next step slide along the edge of cones and twists that gradient (n,) would leave at q (n,).

    For balls what frozen joints are for limits: takes what leads out from gradient and stiffens hessian
    (n, n), its lower half, that way. opened: leave out balls that open_balls has opened.
    """
    for row in range(2, limits.shape[0], BALL_ROWS):
        if opened and near_pole(q, limits, row):
            continue
        p, r, x, y, distance = nearest_edge(q, limits, row)
        outward = x * gradient[p] + y * gradient[r]
        if distance <= EDGE and outward > 0.0:
            gradient[p] -= outward * x
            gradient[r] -= outward * y
            stiffen(hessian, p, r, x, y)
            if limits[row, ORDER] != PROPER:  # the edge is curved: Hessian of the multiplier's term
                a, b = cos(q[p]), cos(q[r])
                outward /= sqrt((1.0 / (a * a) - 1.0) + (1.0 / (b * b) - 1.0))
                hessian[p, p] += outward / (a * a)
                hessian[r, r] += outward / (b * b)


@compiled
def stop_at_edges(q, limits, step, gradient, hessian):
    """Change the equations of step (n,) so that it ends at the edges of cones and twists that it crosses.

    gradient (n,), hessian (n, n), its lower half: of the equations at q (n,). Returns whether it crosses any.
    """
    crosses = False
    for row in range(2, limits.shape[0], BALL_ROWS):
        p, r, x, y, distance = nearest_edge(q, limits, row)
        if x * step[p] + y * step[r] > distance:
            stiff = stiffen(hessian, p, r, x, y)
            gradient[p] += stiff * distance * x
            gradient[r] += stiff * distance * y
            crosses = True
    return crosses


@compiled
def stiffen(hessian, p, r, x, y):
    """Make hessian (n, n), its lower half, stiff for variables p and r along (x, y); return how much."""
    stiff = STIFF * max(hessian[p, p], hessian[r, r])
    hessian[p, p] += stiff * x * x
    hessian[r, r] += stiff * y * y
    hessian[r, p] += stiff * x * y
    return stiff


@compiled
def near_pole(q, limits, row):
    """Whether the joints of a ball nearly lock at q (n,)."""
    middle = q[int(limits[row, FIRST_VARIABLE]) + 1]
    return abs(sin(middle) if limits[row, ORDER] == PROPER else cos(middle)) < NEAR_POLE
