# SPDX-License-Identifier: Apache-2.0
"""Arms with random errors, calibrated by touches of a sheet: how far goals are missed before and after."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from oracles.arms import Task

from benchmarks.tables import Table, heading
from ik_node.calibration.estimator import FRAMES, Touches, TouchModel
from ik_node.calibration.poses import HIGH, NEAR, REACH, Poses
from ik_node.calibration.sheet import Sheet
from ik_node.checks import Array
from ik_node.model.inertia import Weight

ARMS = 100
TOUCHES = 15
NAMES = 'so101', 'so100#1', 'koch_v1_1', 'px150', 'omx_f', 'moveo'
DEGREE = math.radians(1.0)
TICK = 2.0 * math.pi / 4096.0
SEEN, REST = 0.05 * DEGREE, 0.15 * DEGREE  # noise of an encoder; how far joints rest from where they were sent
FLEX = 0.25 * DEGREE  # [rad/Nm] of a joint beyond its encoder, for an arm whose largest torque is at most 1.2 Nm
TOUCH = 0.5e-3  # [m] from a cross


@dataclass
class TrueArm:
    """What an arm is like: parameters (p,) as those of TouchModel, and flex (n,) [rad/Nm] under weight (n,)."""

    model: TouchModel
    parameters: Array
    flex: Array
    weight: Weight

    def bent(self, q: Array, share: Array | float = 1.0) -> Array:
        """Return where the joints really are at measured positions q (k, n), under a share (k, 1) of the weight."""
        names = self.model.arm.joint_names
        torques = [self.weight(dict(zip(names, row, strict=True))) for row in q.tolist()]
        loads = np.array([[torque.get(name, 0.0) for name in names] for torque in torques])
        return q + share * self.flex * loads

    def points(self, q: Array, share: Array | float = 1.0) -> Array:
        """Return the tool points (k, 3) [m] in the sheet's frame at measured positions q (k, n)."""
        return self.model.points(self.bent(q, share), self.parameters)[0]


def true_arm(model: TouchModel, weight: Weight, strongest: float, rng: np.random.Generator) -> TrueArm:
    """Return an arm with errors: zeros 3 degrees, frames 1 mm and 0.5 degrees, tool 3 mm, and the sheet's place."""
    n, parameters = model.arm.n, np.zeros(model.pose.stop)
    joints = parameters[: model.tool.start].reshape(-1, 7)
    joints[:, :3] = rng.normal(0.0, 1e-3, (n, 3))
    joints[:, 3:6] = rng.normal(0.0, 0.5 * DEGREE, (n, 3))
    joints[:, 6] = np.clip(rng.normal(0.0, 3.0 * DEGREE, n), -7.0 * DEGREE, 7.0 * DEGREE)
    parameters[model.tool] = rng.normal(0.0, 3e-3, 3)
    parameters[model.pose] = rng.normal(0.0, [1e-3, 1e-3, 1.5e-3, 0.5 * DEGREE, 0.5 * DEGREE, 0.3 * DEGREE])
    flex = FLEX * min(1.0, 1.2 / strongest) * rng.uniform(0.4, 1.6, n) * (1.0 + rng.normal(0.0, 0.15, n))
    return TrueArm(model, parameters, flex, weight)


def moved(model: TouchModel, parameters: Array, q: Array, places: Array, bend=lambda q: q) -> tuple[Array, Array]:  # type: ignore[no-untyped-def]
    """Return joints (k, n) near q at which the tool point is at places (k, 3) of the sheet, and the misses (k,) [m]."""
    for _ in range(10):
        points, slopes = model.points(bend(q), parameters)
        columns = slopes[:, :, model.zeros]
        squares = columns @ columns.transpose(0, 2, 1) + 1e-8 * np.eye(3)
        steps = np.linalg.solve(squares, (places - points)[:, :, None])
        q = q + np.clip((columns.transpose(0, 2, 1) @ steps)[:, :, 0], -0.4, 0.4)
    return q, np.linalg.norm(places - model.points(bend(q), parameters)[0], axis=1)


def touched(
    arm: TrueArm, q: Array, crosses: NDArray[np.int64], rng: np.random.Generator, wrong: int | None = None
) -> Touches:
    """Return what is measured when a person puts the tool on crosses (k,), holding the arm about as in q (k, n).

    A part of the weight is carried by hand. wrong: the touch that is at another cross.
    """
    places = arm.model.places[crosses].copy()
    if wrong is not None:
        others = [cross for cross in range(len(arm.model.places)) if cross != crosses[wrong]]
        places[wrong] = arm.model.places[rng.choice(others)]
    places += rng.normal(0.0, TOUCH, places.shape)
    share = rng.uniform(0.0, 1.0, (len(q), 1))
    measured, _ = moved(arm.model, arm.parameters, q, places, lambda q: arm.bent(q, share))
    return Touches(TICK * np.round((measured + rng.normal(0.0, SEEN, q.shape)) / TICK), crosses)


def guided(poses: Poses, arm: TrueArm, rng: np.random.Generator, count: int) -> Touches:
    """Return touches each of which the product has chosen after those before."""
    touches = Touches(np.empty((0, arm.model.arm.n)), np.empty(0, dtype=np.int64))
    for _ in range(count):
        row = poses.next(touches)
        one = touched(arm, poses.q[[row]], poses.crosses[[row]], rng)
        touches = Touches(np.vstack([touches.q, one.q]), np.concatenate([touches.crosses, one.crosses]))
    return touches


def goals_of(model: TouchModel, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return joints (k, n) with the tool above the table, and which (k,) are near the sheet."""
    arm, zeros = model.arm, np.zeros(model.pose.stop)
    q = arm.sample(rng, 4000)
    points = model.points(q, zeros)[0]
    heights = np.array([arm.skeleton(row)[1:, 2].min() for row in q]) - model.sheet[2, 3]
    scale = max(1.0, arm.reach / REACH)
    q, points = q[heights > 0.01], points[heights > 0.01]
    near = (np.linalg.norm(points, axis=1) < NEAR * scale) & (points[:, 2] < HIGH * scale)
    return q, near


def end_to_end(arm: TrueArm, parameters: Array, q: Array, rng: np.random.Generator) -> Array:
    """Return how far (k,) [m] goals in the sheet's frame are missed: IK on the estimate, joints that rest beside."""
    model = arm.model
    places = model.points(q, np.zeros(model.pose.stop))[0]
    sent, off = moved(model, parameters, q, places)
    rests = sent + rng.uniform(-REST, REST, q.shape)
    misses = np.linalg.norm(arm.points(rests) - places, axis=1)
    return misses[off < 1e-5]


def of_arm(task: Task, count: int) -> dict[str, list[Array]]:
    """Return figures of random true arms: misses [m] before and after, near the sheet and everywhere."""
    sheet = Sheet.of(task.arm)
    model = TouchModel(task.arm, sheet.places, sheet.pose)  # as if on its outline
    poses, weight = Poses(model), Weight(task.arm.robot, Path(task.path).read_text())
    names = task.arm.joint_names
    sample = task.arm.sample(np.random.default_rng(3), 200).tolist()
    torques = [weight(dict(zip(names, row, strict=True))) for row in sample]
    strongest = max(abs(torque.get(name, 0.0)) for torque in torques for name in names)
    q, near = goals_of(model, np.random.default_rng(4))
    inside, outside = q[near][:60], q[:60]
    found: dict[str, list[Array]] = defaultdict(list)
    for k in range(count):
        rng = np.random.default_rng(1000 + k)
        arm = true_arm(model, weight, strongest, rng)
        touches = guided(poses, arm, rng, TOUCHES)
        result = model.calibrate(touches)
        for name, parameters in (('before', np.zeros(model.pose.stop)), ('after', result.fit.parameters)):
            found[f'near {name}'].append(end_to_end(arm, parameters, inside, rng))
            found[f'all {name}'].append(end_to_end(arm, parameters, outside, rng))
        found['shown/true'].append(np.array(result.left_out / np.median(found['near after'][-1])))
        found['frames'].append(np.array(result.model == FRAMES))
        found['blamed'].append(np.array(len(result.wrong)))
        wrong = int(rng.integers(TOUCHES))
        spoiled = touched(arm, touches.q, touches.crosses, rng, wrong)
        found['named'].append(np.array(wrong in model.wrong_touches(spoiled, FRAMES)))
    return found


def run(tasks: list[Task], scale: float) -> None:
    """Print misses before and after 15 touches, and what the calibration says of itself."""
    count = max(3, round(ARMS * scale))
    heading(
        'Calibration by touches of a sheet',
        f"""{count} random true arms each: zeros off by 3 degrees (standard deviation), frames by 1 mm and 0.5 degrees,
        the tool point by 3 mm, joints that bend by 0.25 degrees/Nm; {TOUCHES} touches of the crosses, as the product
        chooses them, 0.5 mm beside, a part of the weight carried by hand. Then goals in the sheet's frame, joints that
        rest within 0.15 degrees: miss of the tool point [mm], median / 95th percentile. good: arms with a median
        below 3 mm. shown / true: the miss of left-out crosses that the user reads over the true median. wrong:
        touches at another cross that were named, and good touches that were.""",
    )
    columns = 'near before', 'near after', 'good', 'all before', 'all after', 'shown/true', 'frames', 'named', 'blamed'
    table = Table('arm'.ljust(10), *(column.rjust(11) for column in columns))
    for task in tasks:
        if task.name not in NAMES:
            continue
        found = of_arm(task, count)
        medians = [np.median(misses) for misses in found['near after']]
        table.row(
            task.name,
            *(_pair(found[name]) for name in columns[:2]),
            f'{100.0 * np.mean(np.less(medians, 3e-3)):.0f} %',
            *(_pair(found[name]) for name in columns[3:5]),
            f'{np.median(found["shown/true"]):.2f}',
            *(f'{np.sum(found[name]):.0f}' for name in columns[6:]),
        )


def _pair(misses: list[Array]) -> str:
    """Return median and 95th percentile [mm] over all arms and goals."""
    median, high = np.percentile(np.concatenate(misses), [50.0, 95.0])
    return f'{1e3 * median:.1f}/{1e3 * high:.1f}'
