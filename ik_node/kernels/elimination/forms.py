# SPDX-License-Identifier: Apache-2.0
"""Real roots of homogeneous polynomials in two variables, X and Y: the half tangent of an angle is X / Y.

A form of degree n has coefficients g (n + 1,) of Y^n, X Y^(n-1), ... X^n. No root is at infinity.
"""

from math import cos, pi, sin, sqrt

from ..arrays.eigenvalues import eigenvalues
from ..arrays.quartic import quartic_roots
from ..runtime.compiled import compiled
from .layout import LEAST_SLACK
from .motion import spread

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
    largest, place = 0.0, 0
    for k in range(DIRECTIONS):
        angle = pi * k / DIRECTIONS
        value = abs(form_value(g, n, sin(angle), cos(angle)))
        if value > largest:
            largest, place = value, k
    if not largest > SINGULAR * scale:
        return -1
    # (1, 0) goes to where the form is largest
    angle = pi * place / DIRECTIONS
    c, s = sin(angle), -cos(angle)
    turned, roots = work[0], work[1]
    turn_form(g, n, c, s, work[2], turned)
    count = 0
    if n == 4 and slack <= LEAST_SLACK:
        count = quartic_roots(turned, work[2], roots)
    else:
        for i in range(n):
            for j in range(n):
                companion[i, j] = 0.0
            companion[0, i] = -turned[n - 1 - i] / turned[n]
            if i > 0:
                companion[i, i - 1] = 1.0
        real, imaginary = work[2], work[3]
        if not eigenvalues(companion, n, real, imaginary):
            return -1
        near = max(REAL, 3.0 * sqrt(slack)) if slack > LEAST_SLACK else REAL
        for k in range(n):
            if abs(imaginary[k]) < near * (1.0 + real[k] * real[k]):
                if slack > LEAST_SLACK:
                    roots[count] = real[k] + imaginary[k]
                    count += 1
                elif imaginary[k] >= 0.0:
                    roots[count] = real[k]
                    count += 1
    for k in range(count):
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
    half = -0.5 * (q + root) if q > 0.0 else -0.5 * (q - root)
    count = 0
    for side in range(2 if root > 0.0 else 1):
        x, y = (half, r) if side == 0 else (p, half)
        length = sqrt(x * x + y * y)
        if length > 0.0:
            out[count, 0], out[count, 1] = x / length, y / length
            count += 1
    return count
