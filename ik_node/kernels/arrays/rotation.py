# SPDX-License-Identifier: Apache-2.0
"""Rotations of vectors and angles within limits."""

from math import ceil, cos, floor, nan, pi, sqrt

from ..runtime.compiled import compiled

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
    value += (
        2.0 * pi * (ceil((low - value) / (2.0 * pi)) if value < low else floor((high - value) / (2.0 * pi)))
    )
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
