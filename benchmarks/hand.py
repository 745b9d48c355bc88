# SPDX-License-Identifier: Apache-2.0
"""Hands that ask for what is mostly out of reach: how close the tool stays, and how calm the joints are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.arms import Task
from benchmarks.chain import Array
from benchmarks.hand_goals import HandGoals, nearest_places
from benchmarks.hand_paths import ENABLE, SECONDS, HandPath, Pose
from benchmarks.pseudo_inverse import PseudoInverse
from benchmarks.reference import Reference, in_threads
from benchmarks.tables import Table, heading
from ik_node.control.controller.controller import ArmController
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.robot.motion_limits import limits_of_motion
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.teleop.teleop_controller import TeleopController

# Metres of the tool per metre of the hand, so that 85 % of the positions are out of reach.
SCALES = {'seed_arm': 12.0, 'so101_like': 6.5, 'xarm5_like': 15.0}
PATHS, PROBES = 200, 5
PERIOD = 0.01  # [s]
INSTANTS, RESTARTS = 60, 150  # judged instants of a path, and descents from random starts for each
OUT = 1e-3  # [m]
NEAR = 2e-3  # [m]
SLOW = 0.05  # [rad/s, and times the reach m/s] below which a change of sign does not count
SETTLE = 1.0  # [s] after a disturbance that do not count as undisturbed
NUDGE = 2e-3  # [m] by which one pose is changed to see when the arm answers


def run(tasks: list[Task], scale: float) -> None:
    """Print closeness, oscillation, limits and latency, for ik_node and for a damped pseudo-inverse."""
    count = max(1, round(PATHS * scale))
    period, near = f'{1e3 * PERIOD:g} ms', f'{1e3 * NEAR:g} mm'
    heading(
        'Hand paths',
        f"""{count} hand paths of {SECONDS:g} s per arm, poses at 50 Hz with noise, drop-outs, leaps and a
        clutch that opens, scaled until about 85 % of the positions are out of reach; samples every {period}
        of a simulated clock, ArmController and TeleopController without DDS, default limits. DLS: a damped
        pseudo-inverse with the same limits of velocity and acceleration, without one of jerk. Out: share of
        positions out of reach. v, a: the largest share of a limit that is used. Turns: changes of sign of a
        joint velocity beyond {SLOW:g} rad/s, per joint and minute; hand: the same of the hand, per
        coordinate. Near: share of the time with the distance of the tool from the hand within {near} of the
        least possible one, by an independent solver at {INSTANTS} instants of each path, without any
        allowance for delay; at place: with the tool itself within {near} of a best place. Calm: near, but not
        counting {SETTLE:g} s after drop-outs, leaps and closings of the clutch. Out, calm: of these, while
        the hand is out of reach. Aimed: near, of where the arm is on its way to: the rest is lost to its
        limits of motion. Latency: from a pose to the first sample that it can change, in periods, the worst
        of {PROBES}. Time: processor time per path [s].""",
    )
    columns = (
        'out',
        'v',
        'a',
        'turns',
        'hand',
        'near',
        'at place',
        'calm',
        'out, calm',
        'aimed',
        'latency',
        'time',
    )
    table = Table('arm'.ljust(12), 'by'.ljust(8) + '  ', *columns)
    for task in tasks:
        if task.name in SCALES:
            campaign = Campaign(task)
            for follower in (Ours, Dls):
                table.row(task.name, follower.TITLE, *campaign.cells(follower, range(count)))


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


class Dls:
    """The damped pseudo-inverse, towards the newest pose."""

    TITLE = 'DLS'

    def __init__(self, task: Task, model: ArmModel, settings: ArmSettings) -> None:
        limits = limits_of_motion(model, model.index, settings)
        self._arm = PseudoInverse(task.chain, limits, np.array(settings.home))
        self._timeout = settings.incoming_command_timeout
        self._goal: tuple[Array, Array] | None = None
        self._received, self._closed = -math.inf, False

    @property
    def q(self) -> Array:
        """Joint positions (n,)."""
        return self._arm.q

    @property
    def aim(self) -> Array:
        """Joint positions (n,) that the arm is on its way to: only ever the next ones."""
        return self.q

    def enable(self, closed: bool, _: float) -> None:
        """Take a message of the clutch."""
        self._closed = closed

    def take(self, pose: Pose, goals: HandGoals) -> None:
        """Take a pose when it arrives."""
        self._received = pose.arrival
        self._goal = goals.now(pose) if self._closed else None

    def sample(self, time: float) -> Array:
        """Return the joint positions (n,) of the sample at a time."""
        wanted = self._closed and time - self._received <= self._timeout
        self._arm.step(self._goal if wanted else None, PERIOD)
        return self.q.copy()


Follower = type[Ours] | type[Dls]


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

    def cells(self, follower: Follower, numbers: range) -> list[str]:
        """Return what a row shows."""
        paths = [self.judge(follower, HandPath(number, self.scale)) for number in numbers]
        least, excess, aimed, beside, calm = (
            np.concatenate([getattr(path, name) for path in paths])
            for name in ('least', 'excess', 'aimed', 'beside', 'calm')
        )
        out = least > OUT
        turns, hand = np.mean([path.turns for path in paths], axis=0)
        shares = (
            excess <= NEAR,
            beside <= NEAR,
            excess[calm] <= NEAR,
            excess[calm & out] <= NEAR,
            aimed <= NEAR,
        )
        latency = max(
            self.latency(follower, HandPath(number, self.scale, 1.4)) for number in numbers[:PROBES]
        )
        return [
            _percent(out),
            f'{max(path.speed for path in paths):.3f}',
            f'{max(path.acceleration for path in paths):.3f}',
            f'{turns:.1f}',
            f'{hand:.1f}',
            *map(_percent, shares),
            f'{latency:.2f}',
            f'{np.mean([path.time for path in paths]):.1f}',
        ]

    def drive(
        self, follower: Follower, path: HandPath, nudged: tuple[int, Array] | None = None
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

    def judge(self, follower: Follower, path: HandPath) -> Judged:
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

    def latency(self, follower: Follower, path: HandPath) -> float:
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


def _percent(flags: NDArray[np.bool_]) -> str:
    return f'{100.0 * np.mean(flags):.1f} %'
