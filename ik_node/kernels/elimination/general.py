# SPDX-License-Identifier: Apache-2.0
"""Arms of general geometry: all solutions from the eigenvalues of one matrix.

The loop equation M1 M2 M3 M4 M5 m(tool) = m(goal) has 15 rows (Raghavan and Roth 1990, see elimination.md).
M4 M5 m(tool) spans nine dimensions, so six covectors N vanish on it, and the six rows of
N M3^-1 M2^-1 M1^-1 m(goal) = 0 contain joints 1, 2, 3 alone. solver/elimination.py writes them once per arm,
each as a polynomial in x1, x2, x3 whose coefficients are linear in m(goal); x is the tangent of half the
angle, or the displacement of a prismatic joint. The kernels then do for each goal:

1. write_equations: the six equations, each times 1 and times x1: twelve, linear in the twelve monomials
   x1^i x2^j (i to 3, j to 2). Their matrix K(x3) is singular at every solution.
2. companion: det K(x3) = 0 as an eigenvalue problem (Manocha and Canny 1994). Theirs has 24 rows, of which 8
   belong to no solution; here four of the equations are of degree 1 in x3, and 16 rows are left.
3. monomials_at: for each real x3, x1 and x2 from the null vector of K(x3); then joints 4 and 5 from the nine
   dimensions.
"""

from __future__ import annotations

from math import atan2, cos, pi, sin, sqrt

import numpy as np

from ..arrays import copy
from ..language import compiled
from ..polynomials import eigenvalues
from .layout import (
    JOINTS,
    ORIGIN,
    SIZE,
    SLIDING,
    TOOL,
    linear_in,
    move,
    value_between,
    write_row,
    write_vector,
)

MONOMIALS = 12
EQUATION_COUNT = 6
MOST = 20  # rows of the eigenvalue problem
ROTATIONS = 4

# Row 0 of form, besides what layout.py says of all: the numbers of equations, and whether the chain is read
# from the tool. Joint 1 is then a roll about the tool axis.
LINEAR, QUADRATIC, REVERSED = 1, 2, 3
ZERO = 9  # column of JOINTS: the value at which the tangent of half the angle is 0
BASE = 7  # row: joint 1 of the arm as in JOINTS, and from TIP on tool point and tool axis
TIP = 7
LAST_TWO, EQUATIONS = 8, 12  # rows: what gives joints 4 and 5; the coefficients of the equations
NEARLY_REAL = 1e-2  # rad: imaginary parts below this may be rounding at a double root
REAL = 1e-5  # rad: imaginary parts below this are
MIN_PIVOT = 1e-5  # share of the largest pivot: below this, parameters are rotated
SINGULAR_PIVOT = 1e-11  # likewise: below this, solutions may be lost
AT_INFINITY = 1e-2  # share: a prismatic joint 3 has solutions at infinity, which stand for none
HOPELESS = 0.3  # residual (scaled) of what is not a solution
WRONG = 1e-3  # residual (scaled) that a candidate at a real eigenvalue should not have


@compiled
def scaled_goal(form, goal, v, g):
    """Write the scaled goal (6,) into v, and into g what the chain of form has to bring its tool to.

    The same, unless the chain is read from the tool, where axis 1 of the arm is what has to be met.
    """
    for k in range(3):
        v[k] = (goal[k] - form[0, ORIGIN + k]) / form[0, SIZE]
        v[3 + k] = goal[3 + k]
    if form[0, REVERSED] == 0.0:
        copy(v, g)
        return
    # Place the arm's tool, as at the zero pose, on the goal; where axis 1 then is, seen from the tool, is the
    # goal of the chain. The roll of that placement is free: a half turn about h, midway between the tool axis
    # of the zero pose and the goal's, takes one to the other. R x = 2 (h . x) h - x.
    base = form[BASE]
    h0, h1, h2 = base[TIP + 3] + v[3], base[TIP + 4] + v[4], base[TIP + 5] + v[5]
    length = sqrt(h0 * h0 + h1 * h1 + h2 * h2)
    if length < 1e-6:  # opposite: any h perpendicular to both
        h0, h1, h2 = 0.0, -base[TIP + 5], base[TIP + 4]
        if abs(base[TIP + 3]) > 0.8:
            h0, h1, h2 = -base[TIP + 4], base[TIP + 3], 0.0
        length = sqrt(h0 * h0 + h1 * h1 + h2 * h2)
    h0, h1, h2 = h0 / length, h1 / length, h2 / length
    # the point on axis 1: turned back about the goal, then moved to where the tool point is at the zero pose
    x, y, z = base[3] - v[0], base[4] - v[1], base[5] - v[2]
    along = 2.0 * (h0 * x + h1 * y + h2 * z)
    g[0], g[1], g[2] = along * h0 - x, along * h1 - y, along * h2 - z
    for k in range(3):
        g[k] += base[TIP + k]
    # its direction: turned back alone
    along = 2.0 * (h0 * base[0] + h1 * base[1] + h2 * base[2])
    g[3], g[4], g[5] = along * h0 - base[0], along * h1 - base[1], along * h2 - base[2]


@compiled
def write_equations(form, m, squares, lines, constants):
    """Write the polynomial matrix of a goal with invariants m (15,): three coefficients, each (12, 12).

    The first 2 LINEAR rows are of degree 1 in x3, coefficients lines and constants; the others of
    degree 2. Each row is scaled to a largest entry of 1.
    """
    linear, quadratic = int(form[0, LINEAR]), int(form[0, QUADRATIC])
    row = EQUATIONS
    for k in range(linear + quadratic):
        degree = 1 if k < linear else 2
        # equation k, which has the nine monomials with i to 2, fills this row, and times x1 the next one
        first = 2 * k if k < linear else 2 * linear + 2 * (k - linear)
        for target in range(first, first + 2):
            for j in range(MONOMIALS):
                squares[target, j] = lines[target, j] = constants[target, j] = 0.0
        largest = 0.0
        for power in range(degree, -1, -1):
            table = squares if power == 2 else lines if power == 1 else constants
            for j in range(9):  # its coefficient of x3^power and of monomial j at this goal
                value = linear_in(form, row, m)
                row += 1
                table[first, j] = value
                largest = max(largest, abs(value))
        scale = 1.0 / largest if largest > 0.0 else 1.0
        for j in range(9):
            squares[first, j] *= scale
            lines[first, j] *= scale
            constants[first, j] *= scale
            squares[first + 1, j + 3] = squares[first, j]  # times x1: i + 1 is three columns on
            lines[first + 1, j + 3] = lines[first, j]
            constants[first + 1, j + 3] = constants[first, j]


@compiled
def rotate_parameter(c, s, linear, squares, lines, constants):
    """Replace x3 by (c x3 + s) / (c - s x3) in the polynomial matrix, in place.

    Each row is multiplied by c - s x3, or by its square, and sorted by powers again: no root is lost.
    """
    for row in range(MONOMIALS):
        for j in range(MONOMIALS):
            a, b, d = squares[row, j], lines[row, j], constants[row, j]
            if row < linear:
                lines[row, j], constants[row, j] = c * b - s * d, s * b + c * d
            else:
                squares[row, j] = c * c * a - c * s * b + s * s * d
                lines[row, j] = 2.0 * c * s * (a - d) + (c * c - s * s) * b
                constants[row, j] = s * s * a + c * s * b + c * c * d


@compiled
def solve_columns(matrix, right, columns):
    """Solve matrix (12, 12) z = right for the first columns of right (12, k), in place.

    Elimination with row exchanges; matrix is destroyed. Returns the smallest share of a pivot in the
    largest, 0 if there is none.
    """
    smallest, largest = 1e300, 0.0
    for k in range(MONOMIALS):
        pivot = k
        for i in range(k + 1, MONOMIALS):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        size = abs(matrix[pivot, k])
        smallest, largest = min(smallest, size), max(largest, size)
        if not size > 0.0:
            return 0.0
        if pivot != k:
            for j in range(k, MONOMIALS):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            for j in range(columns):
                right[k, j], right[pivot, j] = right[pivot, j], right[k, j]
        for i in range(k + 1, MONOMIALS):
            share = matrix[i, k] / matrix[k, k]
            if share != 0.0:
                for j in range(k + 1, MONOMIALS):
                    matrix[i, j] -= share * matrix[k, j]
                for j in range(columns):
                    right[i, j] -= share * right[k, j]
    for k in range(MONOMIALS - 1, -1, -1):
        inverse = 1.0 / matrix[k, k]
        for j in range(columns):
            value = right[k, j]
            for i in range(k + 1, MONOMIALS):
                value -= matrix[k, i] * right[i, j]
            right[k, j] = value * inverse
    return smallest / largest


@compiled
def companion(linear, squares, lines, constants, work, right, out):
    """Write the matrix whose eigenvalues are the zeros of the determinant.

    Returns (its size, the smallest share of a pivot). Size 0 where the matrix in front of x3 is singular.

    K(x3) v = 0, in rows of degree 1 and 2 (S, L, C: rows of squares, lines, constants):
        L1 v x3 + C1 v = 0,   S2 v x3^2 + L2 v x3 + C2 v = 0.
    With w = S2 v x3 + L2 v for the second kind, x3 v and x3 w are linear in v and w (Tisseur and Meerbergen,
    The quadratic eigenvalue problem, SIAM Review 43, 2001):
        [L1; S2] v x3 = [-C1 v; -L2 v + w],   w x3 = -C2 v.
    """
    quadratic = MONOMIALS - linear
    size = MONOMIALS + quadratic
    # work = [L1; S2] and right = [-C1, 0; -L2, 1]; solving gives the rows of x3 v
    for i in range(MONOMIALS):
        for j in range(MONOMIALS):
            leading = lines if i < linear else squares
            following = constants if i < linear else lines
            work[i, j] = leading[i, j]
            right[i, j] = -following[i, j]
        for j in range(quadratic):
            right[i, MONOMIALS + j] = 1.0 if i == linear + j else 0.0
    share = solve_columns(work, right, size)
    if share == 0.0:
        return 0, 0.0
    for j in range(size):
        for i in range(MONOMIALS):
            out[i, j] = right[i, j]
        for i in range(quadratic):  # the rows of x3 w
            out[MONOMIALS + i, j] = -constants[linear + i, j] if j < MONOMIALS else 0.0
    return size, share


@compiled
def eliminate(matrix, pivots, order):
    """Bring matrix (m, n) to triangular form in its first columns, as many as pivots, with complete pivoting.

    order (n,) then says of which unknown each column is. In place.
    """
    m, n = matrix.shape[0], matrix.shape[1]
    for j in range(n):
        order[j] = j
    for k in range(pivots):
        row, column, size = k, k, 0.0
        for i in range(k, m):
            for j in range(k, n):
                if abs(matrix[i, j]) > size:
                    row, column, size = i, j, abs(matrix[i, j])
        if size == 0.0:
            break
        for j in range(k, n):
            matrix[k, j], matrix[row, j] = matrix[row, j], matrix[k, j]
        for i in range(m):
            matrix[i, k], matrix[i, column] = matrix[i, column], matrix[i, k]
        order[k], order[column] = order[column], order[k]
        inverse = 1.0 / matrix[k, k]
        for i in range(k + 1, m):
            share = matrix[i, k] * inverse
            if share != 0.0:
                for j in range(k + 1, n):
                    matrix[i, j] -= share * matrix[k, j]


@compiled
def write_null_vector(matrix, pivots, free, order, out):
    """Write into out (n,) what an eliminated matrix takes to zero: the unknown of column free is 1, of others 0."""
    for j in range(pivots, out.shape[0]):
        out[order[j]] = 1.0 if j == free else 0.0
    for k in range(pivots - 1, -1, -1):
        value = matrix[k, free]
        for j in range(k + 1, pivots):
            value += matrix[k, j] * out[order[j]]
        out[order[k]] = -value / matrix[k, k] if matrix[k, k] != 0.0 else 0.0


@compiled
def monomials_at(matrix, basis, pair, order, weights, out):
    """Write the monomials (12,) that matrix (6, 9), the equations at an eigenvalue, takes most nearly to zero.

    Both their first nine and, as the equations times x1 say, their last nine are in its null space: basis
    (3, 9). What they share is six equations in the weights of basis for either: pair (6, 6) is singular, and
    its last pivot is taken for zero. matrix is destroyed; pair, order (9,) and weights (6,) are scratch.
    """
    eliminate(matrix, EQUATION_COUNT, order)
    for k in range(3):
        write_null_vector(matrix, EQUATION_COUNT, EQUATION_COUNT + k, order, basis[k])
        for i in range(6):
            pair[i, k], pair[i, 3 + k] = basis[k, 3 + i], -basis[k, i]
    eliminate(pair, 5, order[:6])
    write_null_vector(pair, 5, 5, order[:6], weights)
    for j in range(MONOMIALS):
        first, column = (0, j) if j < 9 else (3, j - 3)
        out[j] = (
            weights[first] * basis[0, column]
            + weights[first + 1] * basis[1, column]
            + weights[first + 2] * basis[2, column]
        )


@compiled
def monomial_ratio(vector, step, joint):
    """The value of the joint of this row whose powers stand in vector (12,), step entries apart.

    vector holds x1^i x2^j at 3 i + j: two neighbours have the ratio x. The largest entry is one of them, as
    its error is the smallest share.
    """
    best = 0
    for k in range(MONOMIALS):
        if abs(vector[k]) > abs(vector[best]):
            best = k
    power = best // 3 if step == 3 else best % 3
    if power == 0:  # it has no lower neighbour: the higher one
        best += step
    if joint[SLIDING] != 0.0:
        return vector[best] / vector[best - step] + joint[ZERO]
    return 2.0 * atan2(vector[best], vector[best - step]) + joint[ZERO]


@compiled
def complete_candidate(form, goal, at, tip, m, q):
    """Given joints 1, 2, 3 in q (5,), add joints 4 and 5 and return by how much the chain misses goal (6,).

    The products of the cosines and sines of joints 4 and 5 follow from the goal as seen from behind joint 3.
    at, tip (6,) and m (15,) are scratch.
    """
    copy(goal, at)
    copy(form[TOOL, :6], tip)
    for k in range(3):  # M3^-1 M2^-1 M1^-1 of the goal
        move(form[JOINTS + k], -q[k], at)
    # m(at) = P (1, c4, s4) x (1, c5, s5): the rows LAST_TWO of the pseudo-inverse of P give c4, s4, c5, s5
    write_vector(at, m)
    for k in range(2):
        c, s = linear_in(form, LAST_TWO + 2 * k, m), linear_in(form, LAST_TWO + 2 * k + 1, m)
        q[3 + k] = c if form[JOINTS + 3 + k, SLIDING] != 0.0 else atan2(s, c)
    # M4 M5 of the tool has to be there: where x1, x2, x3 are no solution, the products above are no angles
    for k in range(4, 2, -1):
        move(form[JOINTS + k], q[k], tip)
    miss = 0.0
    for k in range(6):
        miss = max(miss, abs(tip[k] - at[k]))
    return miss


@compiled
def replace_roll(form, goal, v, q):
    """Replace the roll q[0] of the chain read from the tool by joint 1 of the arm; v (6,) is scratch."""
    # Both chains turn about the same axes: joints 5 to 2 move the arm's tool, and what is left is joint 1,
    # which takes it from there to the goal. The axes of this chain are reversed, hence the sign.
    copy(form[BASE, TIP : TIP + 6], v)
    for k in range(1, 5):
        move(form[JOINTS + k], -q[k], v)
    q[0] = value_between(form[BASE], v, goal)


@compiled
def write_matrix(x, linear, squares, lines, constants, out):
    """Write the six equations at x into out (6, 9), each row scaled to a largest entry of 1."""
    for k in range(EQUATION_COUNT):
        i, largest = 2 * k, 0.0  # the row behind is the same equation times x1
        for j in range(9):
            value = lines[i, j] * x + constants[i, j]
            if i >= linear:
                value += squares[i, j] * x * x
            out[k, j] = value
            largest = max(largest, abs(value))
        if largest > 0.0:
            scale = 1.0 / largest
            for j in range(9):
                out[k, j] *= scale


@compiled
def general_candidates(form, goal, out):
    """Write all configurations that meet goal, whatever the limits, into out (k, n), good to some digits.

    Returns (count, how many solutions there are at least, -1 where some may be missing).
    """
    tables = np.empty((4, MONOMIALS, MONOMIALS))
    squares, lines, constants, matrix = tables[0], tables[1], tables[2], tables[3]
    right, pencil = np.empty((MONOMIALS, MOST)), np.empty((MOST, MOST))
    real, imaginary = np.empty(MOST), np.empty(MOST)
    target, g, at, tip = np.empty(6), np.empty(6), np.empty(6), np.empty(6)
    m, q, vector, weights = np.empty(15), np.empty(5), np.empty(MONOMIALS), np.empty(6)
    left, basis, pair, order = np.empty((6, 9)), np.empty((3, 9)), np.empty((6, 6)), np.empty(9, np.int64)
    linear = 2 * int(form[0, LINEAR])
    slides = form[JOINTS + 2, SLIDING] != 0.0
    scaled_goal(form, goal, target, g)
    write_vector(g, m)
    write_equations(form, m, squares, lines, constants)
    # A solution near x3 = infinity makes the matrix in front of x3 nearly singular: then x3 is turned,
    # and the solutions with it.
    turned, size, share = 0.0, 0, 0.0
    for attempt in range(ROTATIONS):
        size, share = companion(linear, squares, lines, constants, matrix, right, pencil)
        if share > MIN_PIVOT or attempt == ROTATIONS - 1:
            break
        turned += 0.25 * pi - 0.2
        rotate_parameter(cos(0.25 * pi - 0.2), sin(0.25 * pi - 0.2), linear, squares, lines, constants)
    if size == 0 or not eigenvalues(pencil, size, real, imaginary):
        return 0, -1
    certain, expected = share > SINGULAR_PIVOT, 0
    c, s = cos(turned), sin(turned)
    count = 0
    for k in range(size):
        x = real[k]
        blur = abs(imaginary[k]) / (1.0 + x * x)  # imaginary part of half the angle
        if imaginary[k] < 0.0 or blur > NEARLY_REAL:  # of a conjugate pair one is enough
            continue
        if slides and abs(c - s * x) < AT_INFINITY * sqrt(1.0 + x * x):
            continue
        if count == out.shape[0]:
            return count, -1
        write_matrix(x, linear, squares, lines, constants, left)
        monomials_at(left, basis, pair, order, weights, vector)
        q[0] = monomial_ratio(vector, 3, form[JOINTS])
        q[1] = monomial_ratio(vector, 1, form[JOINTS + 1])
        # joint 3: the turn of the parameter taken back
        q[2] = (c * x + s) / (c - s * x) if slides else 2.0 * atan2(c * x + s, c - s * x)
        q[2] += form[JOINTS + 2, ZERO]
        miss = complete_candidate(form, g, at, tip, m, q)
        if blur < REAL:  # each real eigenvalue must be a solution, else the list may lack another one
            certain = certain and miss < WRONG
            expected += imaginary[k] == 0.0
        if miss < HOPELESS:
            if form[0, REVERSED] != 0.0:
                replace_roll(form, target, at, q)
            count = write_row(form, q, out, count)
    return count, expected if certain else -1
