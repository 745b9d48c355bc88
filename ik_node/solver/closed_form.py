# SPDX-License-Identifier: Apache-2.0
"""Arm families with a closed-form solution, recognised from the geometry."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import AXIS, OFFSET, PRISMATIC
from ik_node.model.arm import Arm

AXIS_TOLERANCE = 1e-4  # rad: axes count as parallel up to here; solutions are polished on the true model
POINT_TOLERANCE = 5e-3  # of the typical length: lines count as meeting up to here, likewise
ROLL_TOLERANCE = 1e-6  # rad and share of the length: below this the tool lies on axis 5
EXACT_TOLERANCE = 1e-9  # rad and share of the length: geometry off by less is exact
RESIDUAL_MARGIN = 1e-5  # m and rad: rounding may hide solutions with errors below this

NO_FORM = np.zeros((14, 3))  # for the kernels: an arm without a formula, infinitely far off one
NO_FORM[13, 0] = np.inf
NO_FORM.flags.writeable = False


class Family(enum.Enum):
    """The geometry that gives an arm a closed form."""

    PARALLEL = 'axes 2, 3 and 4 are parallel'
    PARALLEL_ROLL = 'axes 2, 3 and 4 are parallel and the tool axis is axis 5'
    WRIST = 'axes 2 and 3 are parallel, axes 4, 5 and the tool axis meet in one point'


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """A family, its constants (14, 3) for the kernels, and how far the geometry is off the formula's.

    deviation: rad or share of the length. If it is not zero, the formula still finds solutions (polished on
    the true model), but no solution is not a proof.
    """

    family: Family
    constants: Array
    deviation: float

    @property
    def exact(self) -> bool:
        """Whether the geometry is that of the formula, up to rounding."""
        return self.deviation < EXACT_TOLERANCE


def recognise(arm: Arm) -> ClosedForm | None:
    """Return the closed form of arm, None if it has none.

    Needs five revolute joints without mimics, axes 2 and 3 parallel to each other and not to axis 1.
    """
    return _recognised(arm.joints, arm.tool) if arm.n == 5 and _is_simple(arm) else None


def formula_model(arm: Arm, form: ClosedForm, options: Array) -> Array:
    """Return arm, its form and the options of the search as kernels.nearest_by_formula takes them, in a row."""
    parts = arm.joints, arm.tool, arm.limits, form.constants, options
    return np.concatenate([part.ravel() for part in parts])


def recognise_without_roll(arm: Arm) -> ClosedForm | None:
    """Return the form of an arm of four joints, axes 2, 3, 4 parallel, with a roll about its tool added."""
    if arm.n != 4 or not _is_simple(arm):
        return None
    form = _recognised(*with_roll(arm.joints, arm.tool))
    return form if form is not None and form.family is Family.PARALLEL_ROLL else None


def with_roll(joints: Array, tool: Array) -> tuple[Array, Array]:
    """Return joints (5, 10) and tool (9,) of an arm of joints (4, 10), with a joint 5 that turns the tool.

    Its axis is the tool axis, through the tool point: it moves neither.
    """
    roll = np.array([*tool[3:6], *tool[:3], 0.0, 4.0, 1.0, 0.0])
    return np.vstack([joints, roll]), np.array([0.0, 0.0, 0.0, *tool[3:]])


def _is_simple(arm: Arm) -> bool:
    """Whether arm has revolute joints alone, and no mimics or cones, which no closed form supports."""
    plain = arm.is_plain and not arm.has_cones and arm.joints.shape[0] == arm.n
    return plain and not arm.joints[:, PRISMATIC].any()


def _recognised(joints: Array, tool: Array) -> ClosedForm | None:
    """As recognise, of joints (5, 10) and tool (9,)."""
    axes, points = joints[:, AXIS], np.cumsum(joints[:, OFFSET], axis=0)
    tool_point, tool_axis = points[4] + tool[:3], tool[3:6]
    size = float(np.linalg.norm(joints[1:, OFFSET], axis=1).sum() + np.linalg.norm(tool[:3]))
    u = axes[1]
    if slant(u, axes[2]) > AXIS_TOLERANCE or slant(u, axes[0]) < AXIS_TOLERANCE:
        return None
    roll = False
    if slant(u, axes[3]) < AXIS_TOLERANCE < slant(u, axes[4]):
        off_axis = float(np.linalg.norm(np.cross(axes[4], tool_point - points[4]))) / size
        off_roll = max(slant(axes[4], tool_axis), off_axis)
        roll = off_roll < ROLL_TOLERANCE
        family = Family.PARALLEL_ROLL if roll else Family.PARALLEL
        kind, end, fourth = kernels.PARALLEL, points[3], axes[3]
        deviation = max(slant(u, axes[2]), slant(u, axes[3]), off_roll if roll else 0.0)
    elif min(slant(axes[3], axes[4]), slant(axes[4], tool_axis)) > AXIS_TOLERANCE:
        family = Family.WRIST
        end, gap = meeting_point(np.vstack([axes[3:], tool_axis]), np.vstack([points[3:], tool_point]))
        if gap > POINT_TOLERANCE * size:
            return None
        kind, fourth = kernels.WRIST, u
        deviation = max(slant(u, axes[2]), gap / size)
    else:
        return None
    links = [link - u * (u @ link) for link in (points[2] - points[1], end - points[2])]
    if min(float(np.linalg.norm(link)) for link in links) < POINT_TOLERANCE * size:
        return None
    constants = np.array(
        [
            axes[0],
            points[0],
            u,
            points[1],
            end,
            *links,
            axes[3],
            axes[4],
            points[4],
            tool_point,
            tool_axis,
            [kind, float(roll), size],
            [0.0 if deviation < EXACT_TOLERANCE else deviation, np.sign(axes[2] @ u), np.sign(fourth @ u)],
        ]
    )
    constants.flags.writeable = False
    return ClosedForm(family, constants, deviation)


def slant(a: Array, b: Array) -> float:
    """Sine of the angle between two lines along a and b."""
    return float(np.linalg.norm(np.cross(a, b)))


def meeting_point(directions: Array, points: Array) -> tuple[Array, float]:
    """Return the point (3,) nearest to the lines (k, 3) by least squares, and its largest distance [m]."""
    across = np.eye(3) - directions[:, :, None] * directions[:, None, :]
    offsets = np.einsum('kij,kj->ki', across, points)
    meeting = np.linalg.lstsq(across.reshape(-1, 3), offsets.ravel(), rcond=None)[0]
    return meeting, float(np.linalg.norm(across @ meeting - offsets, axis=1).max())
