# SPDX-License-Identifier: Apache-2.0
"""Roots of polynomials and eigenvalues of small matrices."""

from __future__ import annotations

from math import atan2, cos, frexp, ldexp, sin, sqrt

from .arrays import ROOT_SLACK
from .language import compiled

MAX_SWEEPS = 80  # per eigenvalue; ten are rare
PATIENCE = 25  # sweeps after which an entry counts as zero beside the whole matrix, not its neighbours
UNUSUAL = (10, 20, 30, 50)  # sweeps after which a shift of another kind breaks a cycle
TINY = 2.3e-16
MIN_COLUMN = 1e-150  # length of a column below which nothing is left to turn


@compiled
def balance(a, n):
    """Scale rows and columns of a (n, n) by powers of two until their sizes agree: a similarity, exact."""
    changed = True
    while changed:
        changed = False
        for i in range(n):
            row, column = 0.0, 0.0
            for j in range(n):
                if j != i:
                    row += abs(a[i, j])
                    column += abs(a[j, i])
            if row == 0.0 or column == 0.0:
                continue
            power = (frexp(row)[1] - frexp(column)[1]) // 2
            if power == 0:
                continue
            up = ldexp(1.0, power)
            if column * up + row / up < 0.95 * (column + row):
                changed = True
                for j in range(n):
                    a[i, j] /= up
                for j in range(n):
                    a[j, i] *= up


@compiled
def to_hessenberg(a, n):
    """Bring a (n, n) to upper Hessenberg form by a similarity: elimination with row exchanges, in place."""
    for m in range(1, n - 1):
        pivot, row = 0.0, m
        for i in range(m, n):
            if abs(a[i, m - 1]) > abs(pivot):
                pivot, row = a[i, m - 1], i
        if pivot == 0.0:
            continue
        if row != m:
            for j in range(m - 1, n):
                a[row, j], a[m, j] = a[m, j], a[row, j]
            for i in range(n):
                a[i, row], a[i, m] = a[i, m], a[i, row]
        for i in range(m + 1, n):
            share = a[i, m - 1] / pivot
            a[i, m - 1] = 0.0
            if share != 0.0:
                for j in range(m, n):
                    a[i, j] -= share * a[m, j]
                for k in range(n):
                    a[k, m] += share * a[k, i]


@compiled
def double_step(a, low, high, trace, product):
    """One implicit double-shift QR sweep on the rows and columns low to high of a Hessenberg matrix.

    The two shifts are the roots of x^2 - trace x + product. Householder reflections chase the bulge
    of three rows down the diagonal (Golub and Van Loan, Matrix Computations, algorithm 7.5.1).
    """
    start = high - 2
    while True:  # begin below two small subdiagonal entries in a row
        x = a[start, start] * (a[start, start] - trace) + product + a[start, start + 1] * a[start + 1, start]
        y = a[start + 1, start] * (a[start, start] + a[start + 1, start + 1] - trace)
        z = a[start + 1, start] * a[start + 2, start + 1]
        if start == low:
            break
        size = abs(x) + abs(y) + abs(z)
        above = abs(a[start - 1, start - 1]) + abs(a[start, start]) + abs(a[start + 1, start + 1])
        if abs(a[start, start - 1]) * (abs(y) + abs(z)) <= TINY * abs(x) * above or size == 0.0:
            break
        start -= 1
    for k in range(start, high):
        three = k < high - 1
        if k > start:
            x, y, z = a[k, k - 1], a[k + 1, k - 1], a[k + 2, k - 1] if three else 0.0
        elif not three:
            z = 0.0
        length = sqrt(x * x + y * y + z * z)
        if not length > MIN_COLUMN:
            continue
        if x < 0.0:
            length = -length
        if k > start:
            a[k, k - 1] = -length
            a[k + 1, k - 1] = 0.0
            if three:
                a[k + 2, k - 1] = 0.0
        elif start > low:
            a[k, k - 1] = -a[k, k - 1]
        x += length
        scale = 1.0 / length
        u, v, w = x * scale, y * scale, z * scale
        scale = 1.0 / x
        y, z = y * scale, z * scale
        if three:
            for j in range(k, high + 1):
                total = a[k, j] + y * a[k + 1, j] + z * a[k + 2, j]
                a[k, j] -= total * u
                a[k + 1, j] -= total * v
                a[k + 2, j] -= total * w
            for i in range(min(high, k + 3), low - 1, -1):  # first what the next reflection waits for
                total = u * a[i, k] + v * a[i, k + 1] + w * a[i, k + 2]
                a[i, k] -= total
                a[i, k + 1] -= total * y
                a[i, k + 2] -= total * z
        else:
            for j in range(k, high + 1):
                total = a[k, j] + y * a[k + 1, j]
                a[k, j] -= total * u
                a[k + 1, j] -= total * v
            for i in range(high, low - 1, -1):
                total = u * a[i, k] + v * a[i, k + 1]
                a[i, k] -= total
                a[i, k + 1] -= total * y


@compiled
def eigenvalues(a, n, real, imaginary):
    """Write the eigenvalues of the leading block a (n, n) into real and imaginary (n,); a is destroyed.

    Complex ones come in conjugate pairs, next to each other. Balanced, brought to Hessenberg form and
    deflated from the lower end by double-shift QR sweeps. Returns whether all have converged.
    """
    balance(a, n)
    to_hessenberg(a, n)
    norm = 0.0
    for i in range(n):
        for j in range(max(i - 1, 0), n):
            norm += abs(a[i, j])
    if not norm < 1e70:  # NaN too; squares of squares must not overflow
        return False
    high, sweeps, shifted = n - 1, 0, 0.0
    while high >= 0:
        low = high
        while low > 0:
            near = abs(a[low - 1, low - 1]) + abs(a[low, low])
            if near == 0.0 or sweeps > PATIENCE:
                near = norm
            if abs(a[low, low - 1]) <= TINY * near:
                a[low, low - 1] = 0.0
                break
            low -= 1
        corner = a[high, high]
        if low == high:
            real[high], imaginary[high] = corner + shifted, 0.0
            high -= 1
            sweeps = 0
            continue
        before, across = a[high - 1, high - 1], a[high, high - 1] * a[high - 1, high]
        if low == high - 1:
            half = 0.5 * (before - corner)
            square = half * half + across
            root = sqrt(abs(square))
            if square >= 0.0:
                far = half + root if half >= 0.0 else half - root
                real[high - 1] = real[high] = corner + far + shifted
                if far != 0.0:
                    real[high] = corner - across / far + shifted
                imaginary[high - 1] = imaginary[high] = 0.0
            else:
                real[high - 1] = real[high] = corner + half + shifted
                imaginary[high - 1], imaginary[high] = root, -root
            high -= 2
            sweeps = 0
            continue
        if sweeps == MAX_SWEEPS:
            return False
        trace, product = before + corner, before * corner - across
        if sweeps in UNUSUAL:  # Wilkinson's exceptional shift
            shifted += corner
            for i in range(high + 1):
                a[i, i] -= corner
            size = abs(a[high, high - 1]) + abs(a[high - 1, high - 2])
            trace, product = 1.5 * size, size * size
        sweeps += 1
        double_step(a, low, high, trace, product)
    return True


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
