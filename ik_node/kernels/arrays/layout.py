# SPDX-License-Identifier: Apache-2.0
"""The arrays that kernels share, and names for their columns.

Built by Arm, IkSolver and the recognition of closed forms; float64, C-contiguous.

joints (m, 10)  one row per movable joint of the chain, mimic joints included: axis (3) and offset (3)
                from the joint before, both at the zero pose in the base frame, then 1 if prismatic,
                index of the variable that drives it, and ratio and shift of
                value = ratio * q[index] + shift (1 and 0 but for mimic joints).
tool (9,)       offset (3) of the tool point from the last joint, tool axis (3) and lateral axis (3),
                at the zero pose in the base frame.
limits (2, n)   lower and upper, infinite where a joint is continuous; then three rows for each ball joint:
                its first row of joints, its first variable and its order (see balls.py); its hand and its
                largest swing; lower and upper of its twist, infinite where a joint limits it.
period (n,)     2 pi where a whole turn of the joint changes nothing but the joint, else 0.
goal (9,)       position, direction, lateral in the base frame; NaN where not asked for.
frames          (2 m + 3, 3): the m axes, the m joint points, tool point, tool axis, lateral axis,
                all in the base frame.
options (9 + s,)  position tolerance [m], direction tolerance [chord], weight [m/rad], iterations per
                descent, stall ratio, temperatures per cycle, cooling factor, weighted error [m] that is
                accepted e times less often at temperature 1 (0: never), 1 if a descent ends at the last
                configuration rather than the best, and s switches of the local method (1 on, 0 off).
form (14, 3)    geometry of an arm with a closed form, at its zero pose in the base frame: see the rows below.
"""

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
