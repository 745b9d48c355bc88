# SPDX-License-Identifier: Apache-2.0
"""Two equations in two joints, each linear in the monomials of either joint."""

from math import atan2, cos, sin, sqrt

from ..runtime.compiled import compiled
from .forms import form_roots, product, quadratic_roots
from .layout import JOINTS, LEAST_SLACK, OUTER_A, SLACK, SLIDE_LAST, SLIDING, STAGE, TURN_LAST
from .motion import harmonic_root

APART = 1e-7  # share of the second equation below which it does not contain joint b
FREE = 1e-9  # of the size: below this joint b changes nothing
CLEAR = 1e-5  # likewise: above this the two equations give one value of joint b
MET = 1e-2  # share of its terms by which the other equation may be missed: degree 8 is less exact


@compiled
def value_of(form, joint, x, y):
    """Value of a joint at half tangent X / Y, or of a prismatic one, (whether it is finite, value)."""
    if form[JOINTS + joint, SLIDING] == 0.0:
        return True, 2.0 * atan2(x, y)
    return abs(y) > 1e-6, x / y if y != 0.0 else 0.0


@compiled
def at_root(e, x, y, out):
    """Write the values of the nine forms of the equations e (6, 3), here (6,) of them, at (x, y)."""
    a, b, c = y * y, x * y, x * x
    for k in range(6):
        out[k] = e[k, 0] * a + e[k, 1] * b + e[k, 2] * c


@compiled
def solve_turn(form, e, work, companion, pairs):
    """Solve e for joints a and b where b turns next to the base or the tool.

    e (6, 3): quadratic forms in joint a, for each equation the constant and the coefficients of cos b and
    sin b. The latter, as complex numbers H, are proportional: H_2 = (r + i p) H_1. So the second equation
    less r times the first is P + p Im z = 0 with z = conj(H_1) e^(ib), the first is k_1 + Re z = 0, and
    |z| = |H_1| leaves P^2 + p^2 (k_1^2 - |H_1|^2) = 0: a quartic in joint a. Where p is nearly zero P = 0, a
    quadratic. Returns (number of rows of pairs (16, 2), whether the goal is regular).
    """
    first, second = 0.0, 0.0
    for k in range(3):
        first += e[1, k] * e[1, k] + e[2, k] * e[2, k]
        second += e[4, k] * e[4, k] + e[5, k] * e[5, k]
    if second > first:
        for k in range(3):
            for i in range(3):
                e[i, k], e[3 + i, k] = e[3 + i, k], e[i, k]
        first = second
    if first < 1e-20:
        return 0, False
    r, p = 0.0, 0.0
    for k in range(3):
        r += e[1, k] * e[4, k] + e[2, k] * e[5, k]
        p += e[1, k] * e[5, k] - e[2, k] * e[4, k]
    r, p = r / first, p / first
    rest, roots, g = work[4], work[5:14], work[14]
    size = 0.0
    for k in range(3):
        rest[k] = e[3, k] - r * e[0, k]
        size += abs(rest[k])
    if abs(p) < APART:
        if size < 1e-9:
            return 0, False
        found = quadratic_roots(rest, form[0, SLACK], roots)
    else:
        for k in range(5):
            g[k] = 0.0
        product(rest, rest, 1.0, g)
        product(e[0], e[0], p * p, g)
        product(e[1], e[1], -p * p, g)
        product(e[2], e[2], -p * p, g)
        constant = 0.0
        for k in range(3):
            constant += abs(e[0, k])
        scale = size * size + p * p * (first + constant * constant)
        found = form_roots(g, 4, scale, form[0, SLACK], work, companion, roots)
    if found < 0:
        return 0, False
    count, regular = 0, True
    for k in range(found):
        finite, value = value_of(form, int(form[0, OUTER_A]), roots[k, 0], roots[k, 1])
        at_root(e, roots[k, 0], roots[k, 1], g)
        constant, real, imaginary = g[0], g[1], g[2]
        length = sqrt(real * real + imaginary * imaginary)
        if not finite:
            continue
        if length < FREE:  # joint b is free here
            regular = False
            continue
        if abs(p) > CLEAR:
            across = (r * constant - g[3]) / p
            if abs(sqrt(constant * constant + across * across) - length) < 1e-2 * length:
                pairs[count, 0] = value
                pairs[count, 1] = atan2(
                    across * real - constant * imaginary, -constant * real - across * imaginary
                )
                count += 1
                continue
        count = add_turns(constant, real, imaginary, form[0, SLACK], value, pairs, count)
    return count, regular


@compiled
def solve_slide(form, e, work, companion, pairs):
    """Solve e for joints a and b where b slides next to the base or the tool.

    e (6, 3): as in solve_turn with 1, t, t^2 of joint b. Of t^2 the coefficient is constant; the second
    equation is freed of it, then its coefficient of t is constant too. Returns (number of rows of
    pairs (16, 2), whether the goal is regular).
    """
    for place in (2, 1):
        first, second, both = 0.0, 0.0, 0.0
        for k in range(3):
            first += e[place, k] * e[place, k]
            second += e[3 + place, k] * e[3 + place, k]
            both += e[place, k] * e[3 + place, k]
        if second > first:
            for k in range(3):
                for i in range(3):
                    e[i, k], e[3 + i, k] = e[3 + i, k], e[i, k]
            first = second
        if first > 1e-18:
            for k in range(3):
                for i in range(3):
                    e[3 + i, k] -= both / first * e[i, k]
            break
    curve, linear = e[2, 0], e[4, 0]
    rest, roots, g = e[3], work[5:14], work[14]
    size, constant, slope = 0.0, 0.0, 0.0
    for k in range(3):
        size += abs(rest[k])
        constant += abs(e[0, k])
        slope += abs(e[1, k])
    if abs(linear) < APART:
        if size < 1e-9:
            return 0, False
        found = quadratic_roots(rest, form[0, SLACK], roots)
    else:
        for k in range(5):
            g[k] = 0.0
        weight = work[4]
        weight[0], weight[1] = 1.0, 0.0
        weight[2] = 0.0 if form[JOINTS + int(form[0, OUTER_A]), SLIDING] != 0.0 else 1.0
        product(rest, rest, curve, g)
        product(e[1], rest, -linear, g)
        product(weight, e[0], linear * linear, g)
        scale = abs(curve) * size * size + abs(linear) * (slope * size + abs(linear) * constant)
        found = form_roots(g, 4, scale, form[0, SLACK], work, companion, roots)
    if found < 0:
        return 0, False
    count, regular = 0, True
    for k in range(found):
        finite, value = value_of(form, int(form[0, OUTER_A]), roots[k, 0], roots[k, 1])
        at_root(e, roots[k, 0], roots[k, 1], g)
        if not finite:
            continue
        if abs(linear) > CLEAR:
            pairs[count, 0], pairs[count, 1] = value, -g[3] / g[4]
            count += 1
            continue
        regular = regular and abs(g[1]) + abs(g[2]) > FREE  # else joint b is free here
        count = add_slides(g[0], g[1], g[2], form[0, SLACK], value, work, pairs, count)
    return count, regular


@compiled
def add_slides(a, b, c, slack, value, work, pairs, count):
    """Append to pairs (16, 2) value and each root t of a + b t + c t^2; return the new count."""
    g, roots = work[4], work[15:17]
    g[0], g[1], g[2] = a, b, c
    for k in range(quadratic_roots(g, slack, roots)):
        if abs(roots[k, 1]) > 1e-6:
            pairs[count, 0], pairs[count, 1] = value, roots[k, 0] / roots[k, 1]
            count += 1
    return count


@compiled
def add_turns(a, b, c, slack, value, pairs, count):
    """Append to pairs (16, 2) value and each root q of a + b cos q + c sin q; return the new count."""
    for side in range(2):
        exists, other = harmonic_root(a, b, c, side, slack)
        if exists:
            pairs[count, 0], pairs[count, 1] = value, other
            count += 1
    return count


@compiled
def solve_any(form, e, slides, work, companion, pairs):
    """Solve any two equations e (6, 3) for joints a and b: the resultant is a form of degree 8 in joint a.

    slides: whether b is prismatic. Returns (number of rows of pairs (16, 2), whether the goal is regular).
    """
    minors, g, roots = work[17:20], work[14], work[5:14]
    scale = 0.0
    for m in range(3):
        i, j = (1, 2) if m == 0 else ((0, 2) if m == 1 else (0, 1))
        for k in range(5):
            minors[m, k] = 0.0
        product(e[i], e[3 + j], 1.0, minors[m])
        product(e[j], e[3 + i], -1.0, minors[m])
    for k in range(9):
        g[k] = 0.0
    for i in range(5):
        for j in range(5):
            if slides:
                g[i + j] += minors[1, i] * minors[1, j] - minors[2, i] * minors[0, j]
            else:
                g[i + j] += (
                    minors[1, i] * minors[1, j] + minors[2, i] * minors[2, j] - minors[0, i] * minors[0, j]
                )
            scale += minors[0, i] * minors[0, i] + minors[1, i] * minors[1, i] + minors[2, i] * minors[2, i]
    found = form_roots(g, 8, scale, form[0, SLACK], work, companion, roots)
    if found < 0:
        return 0, False
    count, regular = 0, True
    for k in range(found):
        finite, value = value_of(form, int(form[0, OUTER_A]), roots[k, 0], roots[k, 1])
        at_root(e, roots[k, 0], roots[k, 1], g)
        if not finite:
            continue
        m = 3 if abs(g[4]) + abs(g[5]) > abs(g[1]) + abs(g[2]) else 0
        before = count
        regular = regular and max(abs(g[1]) + abs(g[2]), abs(g[4]) + abs(g[5])) > FREE  # else joint b is free
        if slides:
            count = add_slides(g[m], g[m + 1], g[m + 2], LEAST_SLACK, value, work, pairs, count)
        else:
            count = add_turns(g[m], g[m + 1], g[m + 2], LEAST_SLACK, value, pairs, count)
        m, kept = 3 - m, before
        for i in range(before, count):  # those that meet the other equation too
            other = pairs[i, 1]
            b, c = (other, other * other) if slides else (cos(other), sin(other))
            size = abs(g[m]) + abs(g[m + 1] * b) + abs(g[m + 2] * c)
            if abs(g[m] + g[m + 1] * b + g[m + 2] * c) <= MET * size:
                pairs[kept, 0], pairs[kept, 1] = value, other
                kept += 1
        count = kept
    return count, regular


@compiled
def solve_two(form, e, slides, work, companion, pairs):
    """Solve e for joints a and b by the way that form tells; slides: whether b is prismatic."""
    if form[0, STAGE] == TURN_LAST:
        return solve_turn(form, e, work, companion, pairs)
    if form[0, STAGE] == SLIDE_LAST:
        return solve_slide(form, e, work, companion, pairs)
    return solve_any(form, e, slides, work, companion, pairs)
