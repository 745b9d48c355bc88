# SPDX-License-Identifier: Apache-2.0
"""The layout of the arrays that kernels share, and copies, distances and rotations of arrays."""

from __future__ import annotations

from math import ceil, cos, floor, isfinite, nan, pi, sqrt

from .language import F0, F1, F2, I0, R1, R2, V1, compiled

# The arrays that kernels share, and names for their columns.
#
# Built by Arm, IkSolver and the recognition of closed forms; float64, C-contiguous.
#
# joints (m, 10)  one row per movable joint of the chain, mimic joints included: axis (3) and offset (3)
#                 from the joint before, both at the zero pose in the base frame, then 1 if prismatic,
#                 index of the variable that drives it, and ratio and shift of
#                 value = ratio * q[index] + shift (1 and 0 but for mimic joints).
# tool (9,)       offset (3) of the tool point from the last joint, tool axis (3) and lateral axis (3),
#                 at the zero pose in the base frame.
# limits (2, n)   lower and upper, infinite where a joint is continuous; then three rows for each ball joint:
#                 its first row of joints, its first variable and its order (see chain.py); its hand and its
#                 largest swing; lower and upper of its twist, infinite where a joint limits it.
# period (n,)     2 pi where a whole turn of the joint changes nothing but the joint, else 0.
# goal (9,)       position, direction, lateral in the base frame; NaN where not asked for.
# frames          (2 m + 3, 3): the m axes, the m joint points, tool point, tool axis, lateral axis,
#                 all in the base frame.
# options (9 + s,)  position tolerance [m], direction tolerance [chord], weight [m/rad], iterations per
#                 descent, stall ratio, temperatures per cycle, cooling factor, weighted error [m] that is
#                 accepted e times less often at temperature 1 (0: never), 1 if a descent ends at the last
#                 configuration rather than the best, and s switches of the local method (1 on, 0 off).
# form (14, 3)    geometry of an arm with a closed form, at its zero pose in the base frame: see its rows
#                 below.

# columns of joints
AXIS_X, AXIS_Y, AXIS_Z, OFFSET_X, OFFSET_Y, OFFSET_Z, PRISMATIC, VARIABLE, RATIO, SHIFT = range(10)
AXIS, OFFSET = slice(0, 3), slice(3, 6)

# where the direction and the lateral of goal begin, and the axes of tool; the position stands before them
DIRECTION, LATERAL = 3, 6

# options
POSITION_TOLERANCE, CHORD_TOLERANCE, WEIGHT, ITERATIONS, STALL = range(5)
CYCLE, COOLING, ACCEPTANCE, END_AT_LAST = range(5, 9)
SWITCHES = 9  # and further: those of the local method, in the order of its row in the registry

# rows of form
W1, C1 = 0, 1  # axis 1 and a point on it
U, C2 = 2, 3  # axis 2 (and 3, 4 up to sign) and a point on axis 2
END = 4  # end of the second planar link: a point on axis 4, or the wrist point
LINK1, LINK2 = 5, 6  # planar links, perpendicular to u
W4, W5, C5 = 7, 8, 9  # axes 4 and 5, and a point on axis 5
P0, D0 = 10, 11  # tool point and tool axis
KIND, SIGNS = 12, 13
FAMILY, FREE_ROLL, SIZE = range(3)  # of row KIND; FREE_ROLL: 1 if joint 5 moves neither point nor direction
DEVIATION, SIGN3, SIGN4 = range(3)  # of row SIGNS: rad or share of SIZE, 0 if exact; axes 3 and 4 against u


@compiled
def squared(x):
    """Return x * x: pow differs from it in the last bit."""
    return x * x


@compiled
def copy(source, target):
    """Write target (k,) from source (at least k).

    A loop: emit/ does not translate the assignment of an array to another one.
    """
    for i in range(target.shape[0]):
        target[i] = source[i]


@compiled
def copy_column(table, k, target):
    """Write target (n,) from the first rows of column k of table (m, K)."""
    for i in range(target.shape[0]):
        target[i] = table[i, k]


@compiled
def read_finite(values: V1, out: F1):
    """Write values (n,) into out; whether there are as many, and all are finite: then their sum is."""
    if values.shape[0] != out.shape[0]:
        return False
    total = 0.0
    for i in range(out.shape[0]):
        out[i] = values[i]
        total += values[i]
    return isfinite(total)


@compiled
def pack_position(position: V1, largest: F0, goal: F1):
    """Write position (3,) into goal (9,); whether it is three numbers up to largest [m]."""
    if position.shape[0] != 3:
        return False
    for i in range(3):
        if not abs(position[i]) <= largest:
            return False
        goal[i] = position[i]
    return True


@compiled
def pack_direction(direction: V1, first: I0, tolerance: F0, goal: F1):
    """Write direction (3,), made unit, into goal (9,) from entry first; whether its length is within tolerance of 1."""
    if direction.shape[0] != 3:
        return False
    x, y, z = direction[0], direction[1], direction[2]
    length = sqrt(x * x + y * y + z * z)
    if not abs(length - 1.0) <= tolerance:
        return False
    goal[first], goal[first + 1], goal[first + 2] = x / length, y / length, z / length
    return True


@compiled
def pack_rows(positions: R2, directions: R2, largest: F0, tolerance: F0, goals: F2):
    """Write positions (N, 3) and directions (N, 3), none if (0, 3), into goals (N, 9), NaN where absent.

    Whether pack_position and pack_direction take all of them.
    """
    for k in range(goals.shape[0]):
        for i in range(3, 9):
            goals[k, i] = nan
        if not pack_position(positions[k], largest, goals[k]):
            return False
        if directions.shape[0] > 0 and not pack_direction(directions[k], DIRECTION, tolerance, goals[k]):
            return False
    return True


DISTINCT = 1e-3  # rad or m: solutions that differ by less in every joint are one


@compiled
def add_distinct(period, found, count, q):
    """Append q (n,) to found (k, n) unless it is there already, whole periods apart or not.

    Returns the new count; a full table keeps what it has.
    """
    for k in range(count):
        if largest_move(period, found[k], q) <= DISTINCT:
            return count
    return append(found, count, q)


@compiled
def append(found, count, q):
    """Append q (n,) to the first count rows of found (k, n) unless it is full; return the new count."""
    if count < found.shape[0]:
        copy(q, found[count])
        count += 1
    return count


@compiled
def largest_move(period: R1, a: F1, b: F1):
    """Largest single joint move between configurations a and b (n,), whole periods left out."""
    largest = 0.0
    for i in range(a.shape[0]):
        gap = b[i] - a[i]
        if period[i] > 0.0:
            gap -= period[i] * floor(gap / period[i] + 0.5)
        largest = max(largest, abs(gap))
    return largest


@compiled
def largest_difference(a, b):
    """Largest difference between two configurations (n,)."""
    gap = 0.0
    for i in range(a.shape[0]):
        gap = max(gap, abs(a[i] - b[i]))
    return gap


ROOT_SLACK = 1e-6  # a root missed by this much still becomes a candidate; FK decides in the end
FULL_TURN = 2.0 * pi
FAR_TURNED = 1e9  # rad: beyond this, a double no longer resolves the angle within a turn


@compiled
def align_about_axis(ax, ay, az, x, y, z, u, v, w):
    """Return (sine, cosine) of the turn about the axis (ax, ay, az) that brings x, y, z nearest to u, v, w.

    Both are projected onto the plane normal to the axis; sine and cosine are times the product of the two
    lengths there, so that several pairs can be weighed and added (Wang and Chen 1991).
    """
    sine = ax * (y * w - z * v) + ay * (z * u - x * w) + az * (x * v - y * u)
    along = (ax * x + ay * y + az * z) * (ax * u + ay * v + az * w)
    return sine, x * u + y * v + z * w - along


@compiled
def best_turn(sine, cosine, least):
    """Return (w, s): the unit quaternion (w, s axis) of the turn with this sine and cosine, w >= 0.

    sine and cosine may be times any length above least; below it there is no turn. Half-angle
    formulas that are exact for opposite vectors too, where the cross product vanishes.
    """
    length = sqrt(sine * sine + cosine * cosine)
    if not length > least:
        return 1.0, 0.0
    if cosine >= 0.0:
        w = sqrt(0.5 + 0.5 * cosine / length)
        return w, 0.5 * sine / (length * w)
    s = sqrt(0.5 - 0.5 * cosine / length)
    return 0.5 * abs(sine) / (length * s), s if sine >= 0.0 else -s


@compiled
def rotate_quaternion(w, s, ax, ay, az, x, y, z):
    """Return the vector (x, y, z) turned by the unit quaternion (w, s (ax, ay, az))."""
    tx, ty, tz = s * (ay * z - az * y), s * (az * x - ax * z), s * (ax * y - ay * x)
    return (
        x + 2.0 * (w * tx + s * (ay * tz - az * ty)),
        y + 2.0 * (w * ty + s * (az * tx - ax * tz)),
        z + 2.0 * (w * tz + s * (ax * ty - ay * tx)),
    )


@compiled
def shortest_turn(x, y, z, u, v, w):
    """Return the unit quaternion (scalar first) that turns x, y, z onto u, v, w; none between opposites."""
    lengths = sqrt((x * x + y * y + z * z) * (u * u + v * v + w * w))
    scalar = lengths + x * u + y * v + z * w
    i, j, k = y * w - z * v, z * u - x * w, x * v - y * u
    size = sqrt(scalar * scalar + i * i + j * j + k * k)
    if not scalar > 1e-12 * lengths:
        return 1.0, 0.0, 0.0, 0.0
    return scalar / size, i / size, j / size, k / size


@compiled
def clamp_turn(value, low, high):
    """Return the angle nearest to value, whole turns being nothing, that is within the limits."""
    if low <= value <= high:
        return value
    value += 2.0 * pi * (ceil((low - value) / (2.0 * pi)) if value < low else floor((high - value) / (2.0 * pi)))
    if low <= value <= high:
        return value
    return low if cos(value - low) > cos(value - high) else high


@compiled
def rotate_axis_angle(w, c, s, x, y, z):
    """Vector (x, y, z) turned about the unit axis w (3,) by the angle with cosine c and sine s."""
    k = (1.0 - c) * (w[0] * x + w[1] * y + w[2] * z)
    return (
        c * x + s * (w[1] * z - w[2] * y) + k * w[0],
        c * y + s * (w[2] * x - w[0] * z) + k * w[1],
        c * z + s * (w[0] * y - w[1] * x) + k * w[2],
    )


@compiled
def harmonics(w, x, y, z, ux, uy, uz):
    """(a, b, c) with u . Rot(w, q) (x, y, z) = a + b cos q + c sin q for every q."""
    a = (w[0] * x + w[1] * y + w[2] * z) * (w[0] * ux + w[1] * uy + w[2] * uz)
    b = ux * x + uy * y + uz * z - a
    c = ux * (w[1] * z - w[2] * y) + uy * (w[2] * x - w[0] * z) + uz * (w[0] * y - w[1] * x)
    return a, b, c


@compiled
def wrap_into_limits(value, near, low, high):
    """value plus the multiple of 2 pi that brings it nearest to near within the limits, else NaN.

    Limits may be missed by ROOT_SLACK and are then taken: FK decides in the end.
    """
    turn = 2.0 * pi
    near = min(max(near, low), high)
    if not abs(near) < FAR_TURNED:
        near = 0.0
    best = value + turn * floor((near - value) / turn + 0.5)
    if best < low - ROOT_SLACK:
        best += turn * ceil((low - ROOT_SLACK - best) / turn)
    elif best > high + ROOT_SLACK:
        best -= turn * ceil((best - high - ROOT_SLACK) / turn)
    if best < low - ROOT_SLACK or best > high + ROOT_SLACK:
        return nan
    return min(max(best, low), high)


@compiled
def stops_within_a_turn(limits, i):
    """Whether joint i has less than a whole turn, so that its limits can stop it."""
    return limits[1, i] - limits[0, i] < FULL_TURN
