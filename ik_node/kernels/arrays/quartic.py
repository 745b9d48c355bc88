# SPDX-License-Identifier: Apache-2.0
"""Real roots of a quartic between given stops."""

from math import atan2, cos, sin, sqrt

from ..runtime.compiled import compiled
from .rotation import ROOT_SLACK

SQRT3 = sqrt(3.0)


@compiled
def extrema(c, out):
    """Write the real zeros of the derivative of the quartic c, ascending; return how many (1 or 3).

    Vieta's trigonometric and Cardano's real root. Good to some digits, which is all that a bracket needs.
    """
    lead = 0.25 / c[4]
    a, b, d = 3.0 * c[3] * lead, 2.0 * c[2] * lead, c[1] * lead
    q = (a * a - 3.0 * b) / 9.0
    r = (2.0 * a * a * a - 9.0 * a * b + 27.0 * d) / 54.0
    gap = q * q * q - r * r
    if gap > 0.0:
        root = sqrt(q)
        third = atan2(sqrt(gap), r) / 3.0
        c1, s1 = root * cos(third), SQRT3 * root * sin(third)
        out[0], out[1], out[2] = -2.0 * c1 - a / 3.0, c1 - s1 - a / 3.0, c1 + s1 - a / 3.0
        return 3
    e = (abs(r) + sqrt(-gap)) ** (1.0 / 3.0)
    if r > 0.0:
        e = -e
    out[0] = (e + q / e if e != 0.0 else 0.0) - a / 3.0
    return 1


@compiled
def quartic_root(c, low, high, x, low_is_positive):
    """The zero of the quartic c in (low, high), where it is monotone: Newton from x, kept inside.

    Steps square the error, so one below 1e-8 leaves nothing but rounding. Where Newton has not converged
    after 20 steps (near triple roots) bisection finishes.
    """
    if not low < x < high:
        x = 0.5 * (low + high)
    for k in range(80):
        value = (((c[4] * x + c[3]) * x + c[2]) * x + c[1]) * x + c[0]
        rate = ((4.0 * c[4] * x + 3.0 * c[3]) * x + 2.0 * c[2]) * x + c[1]
        if (value > 0.0) == low_is_positive:
            low = x
        else:
            high = x
        new = x - value / rate if rate != 0.0 else low
        if k >= 20 or not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) <= (1e-8 if k < 20 else 1e-14) * (1.0 + abs(x)):
            return new
        x = new
    return x


@compiled
def quartic_roots(c, stops, roots):
    """Write the real roots of the quartic with ascending coefficients c (5,); return how many.

    Between neighbouring extrema the quartic is monotone. An extremum that misses zero by no more
    than ROOT_SLACK counts as a double root. stops (5,) is scratch, roots (5,) output.
    """
    scale = max(abs(c[0]), abs(c[1]), abs(c[2]), abs(c[3]), abs(c[4]))
    bound = scale / abs(c[4]) + 1.0  # Cauchy
    count = extrema(c, stops)
    found = 0
    low, low_value = -bound, c[4]  # far out the leading term decides the sign
    for k in range(count + 1):
        if k < count:
            high = stops[k]
            high_value = (((c[4] * high + c[3]) * high + c[2]) * high + c[1]) * high + c[0]
        else:
            high, high_value = bound, c[4]
        if (low_value > 0.0) != (high_value > 0.0):
            if 0 < k < count:
                start = low + (high - low) * low_value / (low_value - high_value)
            else:  # outside the extrema: where the parabola of the nearest one crosses zero
                stop, value = (high, high_value) if k == 0 else (low, low_value)
                curve = (6.0 * c[4] * stop + 3.0 * c[3]) * stop + c[2]
                step = sqrt(abs(value / curve)) if curve != 0.0 else 1.0
                start = stop - step if k == 0 else stop + step
            roots[found] = quartic_root(c, low, high, start, low_value > 0.0)
            found += 1
        elif k < count and abs(high_value) <= ROOT_SLACK * scale * (1.0 + high * high) * (1.0 + high * high):
            roots[found] = high
            found += 1
        low, low_value = high, high_value
    return found
