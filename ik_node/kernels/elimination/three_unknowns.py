# SPDX-License-Identifier: Apache-2.0
"""Equations in three joints, for arms whose matrix in two powers of the others is singular.

Six or more equations in the half tangents x and y of two joints, each of degree 2, times 1, x, y and x y are
linear in the 16 products of powers up to 3. Of them 16 mixtures, as polynomials in the half tangent t of the
third joint, are a matrix K_0 + K_1 t + K_2 t^2 that is singular at every solution, whatever the geometry.
"""

from math import cos, sin, sqrt

import numpy as np

from ..arrays.eigenvalues import eigenvalues
from ..runtime.compiled import compiled
from .layout import COEFFICIENTS, COMMON, JOINTS, MATRIX, OUTER_A, OUTER_B, OUTER_C, POWERS, SLIDING, TURNED
from .motion import linear_in
from .two_unknowns import solve_any, value_of

REAL = 1e-4  # imaginary part of a root, as a share of 1 + t^2, below which it may be a double real one
SINGULAR = 1e-10  # share of the largest pivot: below this the goal is singular
MET = 1e-2  # share of its terms by which a third equation may be missed
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
    least, most = 1e300, 0.0
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(table[i, k]) > abs(table[pivot, k]):
                pivot = i
        size = abs(table[pivot, k])
        least, most = min(least, size), max(most, size)
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
    return least > SINGULAR * most


@compiled
def meets(form, third, a, b):
    """Whether joints a and b meet the equation third (9,), by forms in joint a and monomials of joint b."""
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
        if not 0.0 <= imaginary[r] < REAL * (1.0 + t * t):
            continue
        x, y = c * t + s, c - s * t
        length = sqrt(x * x + y * y)
        x, y = x / length, y / length
        finite, value = value_of(form, joint, x, y)
        if not finite:
            continue
        for k in range(3):
            for i in range(9):
                total = (
                    equations[3 * k, i] * y * y
                    + equations[3 * k + 1, i] * x * y
                    + equations[3 * k + 2, i] * x * x
                )
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
            for k in range(count - 1):
                other = triples[k]
                if max(abs(row[0] - other[0]), abs(row[1] - other[1]), abs(row[2] - other[2])) < SAME:
                    count -= 1
                    break
    return count, regular
