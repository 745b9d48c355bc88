# SPDX-License-Identifier: Apache-2.0
"""Equations in two and three unknown joints, as polynomials and as eigenvalues."""

from __future__ import annotations

from math import atan2, cos, pi, sin, sqrt

import numpy as np

from ..language import compiled
from ..polynomials import eigenvalues, quartic_roots
from .layout import (
    COEFFICIENTS,
    COMMON,
    JOINTS,
    MATRIX,
    MIN_SLACK,
    OUTER_A,
    OUTER_B,
    OUTER_C,
    POWERS,
    SLACK,
    SLIDE_LAST,
    SLIDING,
    STAGE,
    TURN_LAST,
    TURNED,
    harmonic_root,
    linear_in,
    spread,
)

# Real roots of homogeneous polynomials in two variables, X and Y: the half tangent of an angle is X / Y.
#
# A form of degree n has coefficients g (n + 1,) of Y^n, X Y^(n-1), ... X^n. No root is at infinity.

DIRECTIONS = 9  # at which a form is sampled: more than any has roots
SINGULAR = 1e-13  # share of a form's terms below which it is zero
REAL = 1e-3  # imaginary part of a root, as a share of 1 + t^2, below which it may be a double real one


@compiled
def product(a, b, factor, out):
    """Add factor times the product of the quadratic forms a and b (3,) to the quartic form out (5,)."""
    for i in range(3):
        for j in range(3):
            out[i + j] += factor * a[i] * b[j]


@compiled
def form_value(g, n, x, y):
    """Value of the form g of degree n at (x, y)."""
    value, power = g[n], 1.0
    for k in range(n - 1, -1, -1):
        power *= y
        value = value * x + g[k] * power
    return value


@compiled
def turn_form(g, n, c, s, work, out):
    """Write into out the form g of degree n in X', Y' with X = c X' + s Y', Y = c Y' - s X'.

    Horner's scheme with polynomials; work (n + 1,) holds the powers of Y.
    """
    for k in range(n + 1):
        out[k] = work[k] = 0.0
    out[0], work[0] = g[n], 1.0
    for k in range(n - 1, -1, -1):
        degree = n - k
        for i in range(degree, 0, -1):
            before, power = out[i - 1], work[i - 1]
            out[i] = s * out[i] + c * before
            work[i] = c * work[i] - s * power
        out[0], work[0] = s * out[0], c * work[0]
        for i in range(degree + 1):
            out[i] += g[k] * work[i]


@compiled
def form_roots(g, n, scale, slack, work, companion, out):
    """Write the real roots of the form g of degree n, 4 or 8, into out (n, 2) as unit (X, Y).

    scale: size of the terms that g is the sum of. slack: see spread; of nearly special arms a complex pair
    next to the real line counts as two roots, as far apart as its imaginary parts. Returns how many, -1 if
    the form is zero all over. work (4, 9) and companion (8, 8) are scratch.
    """
    # a form of degree n has n roots, so at one of more directions it is not small: unless it is zero
    largest, best = 0.0, 0
    for k in range(DIRECTIONS):
        angle = pi * k / DIRECTIONS
        value = abs(form_value(g, n, sin(angle), cos(angle)))
        if value > largest:
            largest, best = value, k
    if not largest > SINGULAR * scale:
        return -1
    # (1, 0) goes to where the form is largest: the coefficient of X^n becomes largest, no root is at infinity
    angle = pi * best / DIRECTIONS
    c, s = sin(angle), -cos(angle)
    turned, roots = work[0], work[1]
    turn_form(g, n, c, s, work[2], turned)
    count = 0
    if n == 4 and slack <= MIN_SLACK:
        count = quartic_roots(turned, work[2], roots)
    else:  # the eigenvalues of the companion matrix of the polynomial in t = X / Y
        for i in range(n):
            for j in range(n):
                companion[i, j] = 0.0
            companion[0, i] = -turned[n - 1 - i] / turned[n]
            if i > 0:
                companion[i, i - 1] = 1.0
        real, imaginary = work[2], work[3]
        if not eigenvalues(companion, n, real, imaginary):
            return -1
        near = max(REAL, 3.0 * sqrt(slack)) if slack > MIN_SLACK else REAL
        for k in range(n):
            if abs(imaginary[k]) < near * (1.0 + real[k] * real[k]):
                if slack > MIN_SLACK:
                    roots[count] = real[k] + imaginary[k]
                    count += 1
                elif imaginary[k] >= 0.0:
                    roots[count] = real[k]
                    count += 1
    for k in range(count):  # turned back
        t = roots[k]
        x, y = c * t + s, c - s * t
        length = sqrt(x * x + y * y)
        out[k, 0], out[k, 1] = x / length, y / length
    return count


@compiled
def quadratic_roots(g, slack, out):
    """Write the real roots of the quadratic form g (3,) into out (2, 2) as unit (X, Y).

    Roots whose half difference is imaginary, but below the root of slack, count as double. Returns how many,
    -1 if the form is zero.
    """
    p, q, r = g[0], g[1], g[2]
    scale = abs(p) + abs(q) + abs(r)
    if scale == 0.0:
        return -1
    square = q * q - 4.0 * p * r
    if square < -slack * scale * scale:
        return 0
    root = sqrt(spread(square, scale * scale, slack))
    # X / Y = half / r and p / half, the sum in half without cancellation
    half = -0.5 * (q + root) if q > 0.0 else -0.5 * (q - root)
    count = 0
    for side in range(2 if root > 0.0 else 1):
        x, y = (half, r) if side == 0 else (p, half)
        length = sqrt(x * x + y * y)
        if length > 0.0:
            out[count, 0], out[count, 1] = x / length, y / length
            count += 1
    return count


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
def exchange(e):
    """Exchange the two equations e (6, 3)."""
    for k in range(3):
        for i in range(3):
            e[i, k], e[3 + i, k] = e[3 + i, k], e[i, k]


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
    if second > first:  # H_1 is what is divided by
        exchange(e)
        first = second
    if first < 1e-20:  # neither equation contains joint b
        return 0, False
    # r + i p = conj(H_1) H_2 / |H_1|^2, summed over the coefficients in joint a
    r, p = 0.0, 0.0
    for k in range(3):
        r += e[1, k] * e[4, k] + e[2, k] * e[5, k]
        p += e[1, k] * e[5, k] - e[2, k] * e[4, k]
    r, p = r / first, p / first
    rest, roots, g = work[4], work[5:14], work[14]
    size = 0.0
    for k in range(3):  # P = k_2 - r k_1
        rest[k] = e[3, k] - r * e[0, k]
        size += abs(rest[k])
    if abs(p) < APART:  # the second equation is P = 0, without joint b
        if size < 1e-9:  # and without joint a: one equation for both
            return 0, False
        found = quadratic_roots(rest, form[0, SLACK], roots)
    else:  # P^2 + p^2 (k_1^2 - |H_1|^2)
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
        # Re z = -k_1 and Im z = -P / p give e^(ib) = H_1 z / |H_1|^2; where p is small, Im z is lost in
        # rounding, and k_1 + Re z = 0 leaves two angles
        if abs(p) > CLEAR:
            across = (r * constant - g[3]) / p
            if abs(sqrt(constant * constant + across * across) - length) < 1e-2 * length:
                pairs[count, 0] = value
                pairs[count, 1] = atan2(across * real - constant * imaginary, -constant * real - across * imaginary)
                count += 1
                continue
        count = add_turns(constant, real, imaginary, form[0, SLACK], value, pairs, count)
    return count, regular


@compiled
def solve_slide(form, e, work, companion, pairs):
    """Solve e for joints a and b where b slides next to the base or the tool.

    e (6, 3): as in solve_turn with 1, t, t^2 of joint b. Of t^2 the coefficient c is constant; the second
    equation is freed of it, then its coefficient l of t is constant too: P + l t = 0. With k + h t + c t^2 of
    the first, t = -P / l leaves c P^2 - l h P + l^2 k = 0, a quartic in joint a. Where l is nearly zero
    P = 0, a quadratic. Returns (number of rows of pairs (16, 2), whether the goal is regular).
    """
    for power in (2, 1):  # t^2, or t where neither equation has t^2
        first, second, both = 0.0, 0.0, 0.0
        for k in range(3):
            first += e[power, k] * e[power, k]
            second += e[3 + power, k] * e[3 + power, k]
            both += e[power, k] * e[3 + power, k]
        if second > first:
            exchange(e)
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
        weight = work[4]  # 1 as a form in joint a: X^2 + Y^2, or Y^2 of a slide
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

    Both rows of coefficients vanish on (1, cos b, sin b), which is thus along their cross product, the minors
    (m_0, -m_1, m_2); cos^2 + sin^2 = 1 leaves m_1^2 + m_2^2 - m_0^2 = 0. Of (1, t, t^2) the square of the
    middle one is the product of the others: m_1^2 - m_2 m_0 = 0.
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
                g[i + j] += minors[1, i] * minors[1, j] + minors[2, i] * minors[2, j] - minors[0, i] * minors[0, j]
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
        # joint b from the equation that depends more on it
        m = 3 if abs(g[4]) + abs(g[5]) > abs(g[1]) + abs(g[2]) else 0
        before = count
        regular = regular and max(abs(g[1]) + abs(g[2]), abs(g[4]) + abs(g[5])) > FREE  # else joint b is free
        if slides:
            count = add_slides(g[m], g[m + 1], g[m + 2], MIN_SLACK, value, work, pairs, count)
        else:
            count = add_turns(g[m], g[m + 1], g[m + 2], MIN_SLACK, value, pairs, count)
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


REAL_EIGENVALUE = 1e-4  # the same as REAL, of the roots of solve_three
SINGULAR_PIVOT = 1e-10  # share of the largest pivot: below this the goal is singular
SAME = 1e-7  # rad, or share of the size: roots that differ by less are one


@compiled
def reduce_matrix(form, m, table):
    """Write K_2, K_0 and K_1 for the goal's vector m (15,) into table (16, 48), then divide by K_2.

    By Gauss elimination with row exchanges. Returns whether K_2 is regular.
    """
    n = POWERS
    for i in range(n):
        for j in range(n):
            row = MATRIX + 3 * (n * i + j)
            table[i, n + j] = linear_in(form, row, m)
            table[i, 2 * n + j] = linear_in(form, row + 1, m)
            table[i, j] = linear_in(form, row + 2, m)
    smallest, largest = 1e300, 0.0  # pivots
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(table[i, k]) > abs(table[pivot, k]):
                pivot = i
        size = abs(table[pivot, k])
        smallest, largest = min(smallest, size), max(largest, size)
        if not size > 0.0:
            return False
        if pivot != k:
            for j in range(k, 3 * n):
                table[k, j], table[pivot, j] = table[pivot, j], table[k, j]
        for i in range(k + 1, n):
            share = table[i, k] / table[k, k]
            for j in range(k + 1, 3 * n):
                table[i, j] -= share * table[k, j]
    for k in range(n - 1, -1, -1):
        share = 1.0 / table[k, k]
        for j in range(n, 3 * n):
            table[k, j] *= share
        for i in range(k):
            share = table[i, k]
            for j in range(n, 3 * n):
                table[i, j] -= share * table[k, j]
    return smallest > SINGULAR_PIVOT * largest


@compiled
def meets(form, third, a, b):
    """Whether joints a and b meet the equation third (9,), by forms in joint a and monomials of joint b.

    Two equations also hold at values that miss the third one: of up to sixteen pairs few are solutions.
    """
    x, y, c, s = a, 1.0, b, b * b
    if form[JOINTS + int(form[0, OUTER_A]), SLIDING] == 0.0:
        x, y = sin(0.5 * a), cos(0.5 * a)
    if form[JOINTS + int(form[0, OUTER_B]), SLIDING] == 0.0:
        c, s = cos(b), sin(b)
    total, size = 0.0, 0.0
    for i in range(3):
        weight = y * y if i == 0 else (x * y if i == 1 else x * x)
        for j in range(3):
            term = third[3 * i + j] * weight * (1.0 if j == 0 else (c if j == 1 else s))
            total += term
            size += abs(term)
    return abs(total) <= MET * size


@compiled
def solve_three(form, m, work, triples):
    """Write the values of joints a, b and c into triples (k, 3) for the goal with vector m (15,).

    The equations, times powers of the half tangents of a and b, are rows of K(t) = K_0 + K_1 t + K_2 t^2 with
    t the half tangent of c, turned so that K_2 is regular. At a solution K(t) x = 0 with x the powers, and
    [x; t x] is an eigenvector of [0, 1; -K_2^-1 K_0, -K_2^-1 K_1] (Tisseur and Meerbergen 2001).
    Each real root gives joint c; two of the equations then give a and b, and a third leaves out most of what
    is not a solution. Returns (number of rows, whether the goal is regular).
    """
    n = 2 * POWERS
    companion, table = np.empty((n, n)), np.empty((POWERS, 3 * POWERS))
    if not reduce_matrix(form, m, table):
        return 0, False
    real, imaginary = np.empty(n), np.empty(n)
    solved = False
    for turn in range(2):  # the transpose has the same eigenvalues, and hardly ever fails too
        for i in range(POWERS):
            for j in range(n):
                one, entry = (1.0 if j == POWERS + i else 0.0), -table[i, POWERS + j]
                if turn == 0:
                    companion[i, j], companion[POWERS + i, j] = one, entry
                else:
                    companion[j, i], companion[j, POWERS + i] = one, entry
        solved = eigenvalues(companion, n, real, imaginary)
        if solved:
            break
    if not solved:
        return 0, False
    equations = np.empty((9, 9))
    for k in range(3):
        for i in range(27):
            equations[3 * k + i // 9, i % 9] = linear_in(form, COEFFICIENTS + 27 * k + i, m)
    joint = int(form[0, OUTER_C])
    e, pairs, third = work[20:26], np.empty((16, 2)), np.empty(9)
    c, s = form[COMMON, TURNED], form[COMMON, TURNED + 1]
    slides = form[JOINTS + int(form[0, OUTER_B]), SLIDING] != 0.0
    count, regular = 0, True
    for r in range(n):
        t = real[r]
        if not 0.0 <= imaginary[r] < REAL_EIGENVALUE * (1.0 + t * t):
            continue
        x, y = c * t + s, c - s * t  # turned back
        length = sqrt(x * x + y * y)
        x, y = x / length, y / length
        finite, value = value_of(form, joint, x, y)
        if not finite:
            continue
        # joint c inserted: three equations in a and b, the first two of which are solved
        for k in range(3):
            for i in range(9):
                total = equations[3 * k, i] * y * y + equations[3 * k + 1, i] * x * y + equations[3 * k + 2, i] * x * x
                if k < 2:
                    e[3 * k + i % 3, i // 3] = total
                else:
                    third[i] = total
        found, fine = solve_any(form, e, slides, work, work[26:34], pairs)
        for p in range(found):
            if not meets(form, third, pairs[p, 0], pairs[p, 1]):
                continue
            regular = regular and fine  # not at roots of the matrix that belong to no solution
            if count == triples.shape[0]:
                return count, False
            row = triples[count]
            row[0], row[1], row[2] = pairs[p, 0], pairs[p, 1], value
            count += 1
            for k in range(count - 1):  # double roots give the same solutions again
                other = triples[k]
                if max(abs(row[0] - other[0]), abs(row[1] - other[1]), abs(row[2] - other[2])) < SAME:
                    count -= 1
                    break
    return count, regular
