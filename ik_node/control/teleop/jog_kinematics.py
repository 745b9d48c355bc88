# SPDX-License-Identifier: Apache-2.0
"""JogKinematics: teleoperation velocities and poses to joint positions, a step at a time.

A tool velocity moves a goal, which the solver follows. The Jacobian is not inverted, so no singularity stops
an arm with fewer than six joints. Out of reach the goal stays at the closest reachable point, so it does not
wind up there. Limits of tool speed and turn rate are not known here: a faster goal runs ahead of the arm.
"""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.model.rotations import rotations
from ik_node.solver.goal import Goal, Solution
from ik_node.solver.solver import IkSolver

SHARES = (1.0, 0.5, 0.2, 0.05)  # of a step, tried in this order
OFF = 0.1  # share of a step by which the tool may miss its end
ROUNDING = 1e-6  # [m]
LEASH = 0.1  # [rad] by which the goal direction may be ahead of the tool direction during a turn
ALIGNED = 0.99  # cosine between tool axis and joint axis above which the joint rolls the tool
BETTER = 1e-3  # [m] by which another configuration must be closer before the arm changes to it
PATIENCE = 0.15  # [s] for which that must hold
INTERVAL = 0.04  # [s] minimum time between two searches for one
RIVALS = 32  # random starts of the search for an equally close configuration that is reached sooner
SOONER = 0.3  # [s] by which another one must be reached sooner while the arm is moving
AT_BOUND = 1e-3  # [m] position error above which a goal is out of reach


class JogKinematics:
    """The goal of a teleoperated arm; q (n,): its joint positions after the last step.

    held_back: the last step ended short of its command, at a limit or at the edge of the workspace.
    """

    def __init__(self, solver: IkSolver, q: Array) -> None:
        self._solver, self._arm = solver, solver.arm
        self.q = q.copy()
        self.held_back = False
        self._position, self._direction = self._arm.fk(q)  # of the goal
        self._roll = roll_joint(self._arm, q)
        self._better_for = 0.0  # [s] for which another configuration has been closer
        self._since = 0.0  # [s] since one was looked for

    def twist(self, linear: Array, angular: Array, dt: float, fastest: Array) -> Array:
        """Move the tool at linear [m/s] and angular [rad/s] velocity, (3,) in the base link, for dt [s].

        The tool slows down where a joint would exceed the velocity fastest (n,), and slides along the edge of
        its workspace. The component of angular about the tool axis turns a joint that only rolls the tool.
        Returns the joint positions (n,).
        """
        axis = self._arm.fk(self.q)[1]
        length, most = float(np.linalg.norm(linear)) * dt, fastest * dt
        if self._roll is not None:  # the other joints solve the goal
            most[self._roll] = 0.0
        for share in SHARES:
            position = self._position + share * dt * linear
            direction = _unit(rotation_about(share * dt * angular) @ self._direction)
            solution = self._solver.solve_nearby(Goal(position, direction), self.q, most)
            if solution.position_error <= OFF * share * length + ROUNDING:
                break
        else:
            position = self._arm.fk(solution.q)[0]  # the goal stays at the tool
        self.held_back = share < 1.0
        q = solution.q
        if self._roll is not None:
            q = self._rolled(q, float(angular @ axis) * dt, fastest[self._roll] * dt)
        if np.any(angular):
            direction = limited_to_cone(direction, self._arm.fk(q)[1])
        self._position, self._direction = position, direction
        self.q = q
        return q.copy()

    def jog(self, velocities: Array, dt: float) -> Array:
        """Move the joints at velocities (n,) for dt [s], up to their limits. Returns their positions (n,)."""
        wanted = self.q + velocities * dt
        lower, upper = np.minimum(self._arm.lower, self.q), np.maximum(self._arm.upper, self.q)
        self.q = np.clip(wanted, lower, upper)
        self.held_back = bool((self.q != wanted).any())
        self._position, self._direction = self._arm.fk(self.q)
        return self.q.copy()

    def reach(self, goal: Goal, dt: float, fastest: Array, now: Array) -> Array:
        """Move the tool to goal, or as close as possible without a jump. Returns the joint positions (n,).

        No joint exceeds the velocity fastest (n,), and position has priority. If another configuration has
        been closer by BETTER for PATIENCE, the arm changes to the closest one, of several the one that it
        reaches first from its present position now (n,). dt [s]: since the last step.
        """
        solution = self._solver.solve_nearby(goal, self.q, self._most(goal, fastest * dt))
        q = solution.q
        self._since += dt
        if solution.position_error < BETTER:
            self._better_for = 0.0
        elif self._since > INTERVAL:
            nearby = self._solver.solve_nearby(goal, q).position_error
            other = self._solver.solve(goal, self.q)
            closer = other.position_error < nearby - BETTER
            self._better_for = self._better_for + self._since if closer else 0.0
            self._since = 0.0
            if self._better_for > PATIENCE:
                q, self._better_for = self._soonest(goal, other, now, fastest), 0.0
            elif self._time(q - now, fastest) > SOONER:
                q = self._soonest(goal, self._solver.solve_nearby(goal, q), now, fastest, SOONER)
        self.held_back = solution.position_error > AT_BOUND
        self.q = self._served(q, goal, fastest * dt)
        self._position, self._direction = self._arm.fk(self.q)
        return self.q.copy()

    def _soonest(self, goal: Goal, found: Solution, now: Array, fastest: Array, by: float = 0.0) -> Array:
        """Return found, or an equally close configuration reached sooner from now (n,), at least by [s]."""
        best, least = found.q, self._time(found.q - now, fastest) - by
        for start in self._arm.sample(np.random.default_rng(0), RIVALS):
            other = self._solver.solve_nearby(goal, start)
            time = self._time(other.q - now, fastest)
            if other.position_error < found.position_error + BETTER and time < least:
                best, least = other.q, time
        return best

    def _time(self, move: Array, fastest: Array) -> float:
        """Return the least time [s] in which the joints that position the tool make the move (n,)."""
        times = np.abs(move) / fastest
        if self._roll is not None:
            times[self._roll] = 0.0  # it does not move the tool point
        return float(times.max())

    def ahead(self, goal: Goal, q: Array, dt: float, fastest: Array) -> Array:
        """Return the joint positions (n,) for goal, dt [s] after q (n,)."""
        after = self._solver.solve_nearby(goal, q, self._most(goal, fastest * dt)).q
        return self._served(after, goal, fastest * dt)

    def _most(self, goal: Goal, most: Array) -> Array:
        if self._roll is not None and goal.lateral is not None:
            most[self._roll] = 0.0  # it turns the lateral axis
        return most

    def _served(self, q: Array, goal: Goal, most: Array) -> Array:
        if self._roll is None or goal.lateral is None:
            return q
        axis, lateral = self._arm.frames(q)[-2:]
        return self._rolled(q, _angle_about(axis, lateral, goal.lateral), most[self._roll])

    def _rolled(self, q: Array, angle: float, most: float) -> Array:
        i, arm = self._roll, self._arm
        assert i is not None
        sense = math.copysign(1.0, float(arm.frames(q)[i] @ arm.fk(q)[1]))
        out = q.copy()
        out[i] = np.clip(q[i] + sense * np.clip(angle, -most, most), arm.lower[i], arm.upper[i])
        return out


def roll_joint(arm: Arm, q: Array) -> int | None:
    """Return the last joint if it only rolls the tool, None if all joints are needed."""
    last = arm.n - 1
    axis = arm.frames(q)[len(arm.joints) - 1]
    aligned = abs(float(axis @ arm.fk(q)[1])) > ALIGNED and not arm.prismatic[last]
    return last if aligned and arm.practical_dof < arm.n else None


def limited_to_cone(wanted: Array, axis: Array) -> Array:
    """Return the unit direction wanted (3,), at most LEASH away from axis (3,)."""
    cross = np.cross(axis, wanted)
    angle = math.atan2(float(np.linalg.norm(cross)), float(axis @ wanted))
    if angle <= LEASH:
        return wanted
    return _unit(rotation_about(cross * (LEASH / np.linalg.norm(cross))) @ axis)


def _angle_about(axis: Array, start: Array, end: Array) -> float:
    """Return the angle [rad] about the unit axis (3,) from start (3,) to the projection of end (3,)."""
    return math.atan2(float(axis @ np.cross(start, end)), float(start @ end))


def rotation_about(turn: Array) -> Array:
    """Return the rotation matrix (3, 3) about turn (3,), its length the angle [rad]."""
    angle = float(np.linalg.norm(turn))
    if angle == 0.0:
        return np.eye(3)
    return np.asarray(rotations(turn / angle, np.array([angle]))[0])


def _unit(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector))
