# SPDX-License-Identifier: Apache-2.0
"""Layout of the constants (K, 15) of eliminations; general.py has rows and columns of its own.

Only the joints that move tool point or axis are listed, from the base on. Three of them in a row, or one, or
two, are eliminated: the inner joints. The angles of the outer ones, two at most, are found first.
Lengths are shares of SIZE, points are relative to the point ORIGIN.
"""

PAIR, GENERAL = 1.0, 2.0  # FAMILY

# row 0
FAMILY, STAGE, INNER, FIRST_INNER, ACTIVE = range(5)  # ACTIVE: number of joints that count
OUTER_A, OUTER_B, WRIST, ALONG, SIZE = range(5, 10)  # ALONG: distance of the tool point from the wrist point
ORIGIN, EQUATIONS, SLACK = 10, 13, 14  # ORIGIN: three numbers; EQUATIONS: in one unknown
LEAST_SLACK = 1e-5  # goals of few joints are met to the tolerances only
OUTER_C = EQUATIONS  # of three unknowns

# STAGE: what is solved for the outer joints
NO_UNKNOWN, ONE_UNKNOWN, TURN_LAST, SLIDE_LAST, ANY_TWO, ANY_THREE = range(6)

# INNER: which joints are eliminated
ONE_JOINT, TWO_JOINTS, PLANAR, SPHERICAL, SLIDES = range(5)

JOINTS = 1  # five rows, as follows
AXIS, POINT, SLIDING, VARIABLE, SENSE = 0, 3, 6, 7, 8  # SENSE: axis against that of the plane

TOOL = 6  # tool point, or wrist point, and tool axis
COMMON = 7  # normal of the plane, and the point in which axes meet
TURNED = 6  # of row COMMON: cosine and sine by which the half tangent of joint C is turned
NORMALS = 8  # six rows: covectors that joint 1 of two inner joints leaves alone
AFFINE = 14  # their values (6, 3) in 1, cos, sin of joint 2, two rows
COEFFICIENTS = 16  # rows F with E = F m(goal): nine for each equation in two joints, three in one
ROWS = 34

# of three unknowns: three equations of 27 coefficients each, then a matrix of polynomials of degree 2
POWERS = 16
MATRIX = COEFFICIENTS + 81
ROWS_OF_THREE = MATRIX + 3 * POWERS * POWERS
