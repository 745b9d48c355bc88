# SPDX-License-Identifier: Apache-2.0
"""Hands that ask for what is mostly out of reach: how close the tool stays, and how calm the joints are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray

from ik_node.control.controller.controller import ArmController
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.robot.motion_limits import limits_of_motion
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.teleop.teleop_controller import TeleopController
from oracles.arms import Task
from oracles.chain import Array
from oracles.hand_goals import HandGoals, nearest_places
from oracles.hand_paths import ENABLE, SECONDS, HandPath, Pose
from oracles.reference import Reference, in_threads

# Metres of the tool per metre of the hand, so that 85 % of the positions are out of reach.
SCALES = {'seed_arm': 12.0, 'so101_like': 6.5, 'xarm5_like': 15.0}
PERIOD = 0.01  # [s]
INSTANTS, RESTARTS = 60, 150  # judged instants of a path, and descents from random starts for each
OUT = 1e-3  # [m]
NEAR = 2e-3  # [m]
SLOW = 0.05  # [rad/s, and times the reach m/s] below which a change of sign does not count
SETTLE = 1.0  # [s] after a disturbance that do not count as undisturbed
NUDGE = 2e-3  # [m] by which one pose is changed to see when the arm answers


class Ours:
    """ik_node without ROS."""

    TITLE = 'ik_node'

    def __init__(self, _: Task, model: ArmModel, settings: ArmSettings) -> None:
        self._settings = settings
        self._controller = ArmController(lambda _: None)
        self._controller.activate()
        self._controller.configure(model, settings)
        self._controller.tick(0.0)
        self._teleop = TeleopController(self._controller)
        self._stepped, self._received = 0.0, -math.inf

    @property
    def q(self) -> Array:
        """Commanded joint positions (n,)."""
        snapshot = self._controller.snapshot()
        assert snapshot is not None
        return snapshot.position

    @property
    def aim(self) -> Array:
        """Joint positions (n,) that the arm is on its way to."""
        snapshot = self._controller.snapshot()
        assert snapshot is not None
        return snapshot.target

    def enable(self, closed: bool, time: float) -> None:
        """Take a message of the clutch."""
        self._teleop.enable(closed, time, self._settings)

    def take(self, pose: Pose, _: HandGoals) -> None:
        """Take a pose when it arrives."""
        arm = self._teleop.ready()
        self._received = self._stepped = pose.arrival
        self._teleop.take(arm, pose.T, pose.arrival, pose.taken, self._settings)
        self._teleop.follow(arm, pose.arrival, self._settings)

    def sample(self, time: float) -> Array:
        """Return the joint positions (n,) of the sample at a time; before it, step as the node does."""
        if time - self._stepped >= PERIOD:
            self._stepped = time
            if time - self._received <= self._settings.incoming_command_timeout:
                self._teleop.follow(self._teleop.ready(), time, self._settings)
            else:
                self._teleop.end()
        self._controller.tick(time)
        return self.q


@dataclass(frozen=True, eq=False)
class Judged:
    """One path: what happened at judged instants (k,), and the rest as in the table."""

    least: Array
    excess: Array
    aimed: Array
    beside: Array
    calm: NDArray[np.bool_]
    speed: float
    acceleration: float
    turns: tuple[float, float]
    time: float


class Campaign:
    """Hand paths for one arm."""

    def __init__(self, task: Task, scale: float | None = None) -> None:
        self.task, arm = task, task.arm
        self.scale = SCALES[task.name] if scale is None else scale
        start = np.clip(arm.middle + 0.3 * np.where(arm.prismatic, 0.1, 1.0), arm.lower, arm.upper)
        self.settings = ArmSettings(
            base_link=task.base,
            tip_link=task.tip,
            tool_axis=task.axis,
            tool_point=task.point,
            position_scale=self.scale,
            home=tuple(start.tolist()),
            self_collision='false',
        )
        self.model = ArmModel.build(task.xml, self.settings)
        self.limits = limits_of_motion(self.model, self.model.index, self.settings)
        self.reference = Reference(task)

    def drive(
        self, follower: type[Ours], path: HandPath, nudged: tuple[int, Array] | None = None
    ) -> tuple[Array, Array, Array, HandGoals]:
        """Return times (k,), joints and aims (k, n), and the goals of a path.

        nudged: the pose that is moved, and by what [m].
        """
        arm, goals = follower(self.task, self.model, self.settings), HandGoals(path, self.scale)
        k, enabled, before = 0, -math.inf, False
        times = PERIOD * np.arange(1, round(path.seconds / PERIOD))
        joints, aims = [], []
        for time in times.tolist():
            closed = path.closed(time)
            if closed != before or (closed and time - enabled >= ENABLE):
                arm.enable(closed, time)
                enabled, before = time, closed
            while k < len(path.poses) and path.poses[k].arrival <= time:
                pose = path.poses[k]
                if nudged is not None and nudged[0] == k:
                    pose = pose.moved(nudged[1])
                point, axis = self.task.chain.fk(arm.q)
                goals.take(pose, closed, point[0], axis[0])
                arm.take(pose, goals)
                k += 1
            joints.append(arm.sample(time))
            aims.append(arm.aim.copy())
        return times, np.array(joints), np.array(aims), goals

    def judge(self, follower: type[Ours], path: HandPath) -> Judged:
        """Drive the arm along a path, and compare it with the best at random instants."""
        begin = process_time()
        times, joints, aims, goals = self.drive(follower, path)
        spent = process_time() - begin
        count = max(1, round(INSTANTS * path.seconds / SECONDS))
        some = np.random.default_rng(path.number).choice(np.arange(2, len(times)), count, replace=False)
        some = some[[path.closed(time) and path.closed(time - 2.0 * PERIOD) for time in times[some].tolist()]]
        asked = [goals.at(time) for time in times[some].tolist()]
        tool, _ = self.task.chain.fk(joints[some])
        aim, _ = self.task.chain.fk(aims[some])
        least, beside = np.empty(len(some)), np.empty(len(some))
        found = in_threads(self._best, asked, joints[some])
        for i, (distance, points) in enumerate(found):
            least[i], beside[i] = distance, np.linalg.norm(points - tool[i], axis=1).min()
        velocity = np.diff(joints, axis=0) / PERIOD
        rates = [np.diff(joints, order, axis=0) / PERIOD**order for order in (1, 2)]
        speed, acceleration = (
            float((np.abs(rate) / limit).max())
            for rate, limit in zip(rates, (self.limits.velocity, self.limits.acceleration), strict=True)
        )
        moves, rolls = path.speeds(times)
        hand = np.hstack([self.scale * moves / self.task.arm.reach, rolls])
        per_minute = 60.0 / path.seconds
        return Judged(
            least,
            np.linalg.norm(np.array(asked) - tool, axis=1) - least,
            np.linalg.norm(np.array(asked) - aim, axis=1) - least,
            beside,
            ~path.disturbed(times[some], SETTLE),
            speed,
            acceleration,
            (per_minute * turns(velocity), per_minute * turns(hand)),
            spent,
        )

    def _best(self, goal: Array, q: Array) -> tuple[float, Array]:
        return nearest_places(self.reference, goal, q, RESTARTS)

    def latency(self, follower: type[Ours], path: HandPath) -> float:
        """Return the time from a pose to the first sample that it can change, in periods.

        The pose is moved both ways along three axes: a joint at a limit may not answer to some of these.
        """
        k = len(path.poses) // 2
        times, plain, _, _ = self.drive(follower, path)
        first = len(times) - 1
        for way in NUDGE * np.vstack([np.eye(3), -np.eye(3)]):
            _, other, _, _ = self.drive(follower, path, (k, way))
            differs = (plain != other).any(axis=1)
            first = min(first, int(differs.argmax())) if differs.any() else first
        return float(times[first] - path.poses[k].arrival) / PERIOD


def turns(rates: Array) -> float:
    """Return the mean number of changes of sign of rates (k, m) beyond SLOW, per column."""
    total = 0
    for column in rates.T:
        signs = np.sign(column[np.abs(column) > SLOW])
        total += np.count_nonzero(np.diff(signs))
    return total / rates.shape[1]
