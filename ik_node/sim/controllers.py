# SPDX-License-Identifier: Apache-2.0
"""Controllers: the controllers of ros2_control and a simple driver, as far as commands for arms go.

Measured at joint_trajectory_controller and forward_command_controller of ROS 2 Jazzy: both act in the periods
of a controller manager, whose clock is not that of their commands. In each period the first commands where a
trajectory will be one period later. It begins a new one at its stamp, else now, and until the first point it
moves there from its last command, which it takes for the state of that period, although it was meant for one
later: so a first point ahead makes a step of two periods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import LARGEST, InputError, join_names

REST = float(np.finfo(np.float32).eps)  # [rad/s, m/s]: the last velocity must not exceed this
PERIOD = 0.01  # [s] of the controller manager
MOST_PERIODS = 1000  # at once: after a stall, or a jump of the clock, the periods restart


class _Trajectory(NamedTuple):
    """A motion of some joints (m,): times (k,) [s], positions, velocities and perhaps accelerations (k, m).

    stamp: when time 0 is [s], None: when it is begun.
    """

    joints: NDArray[np.int64]
    stamp: float | None
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array | None

    def begun(self, now: float, since: float, *states: Array) -> _Trajectory:
        """Return it with times of the clock, begun now [s] from the states (n,) of a time since [s]."""
        times = self.times + (now if self.stamp is None else self.stamp)
        p, v, a = self.positions, self.velocities, self.accelerations
        if since < times[0]:
            times = np.append(since, times)
            first = [state[self.joints] for state in states]
            p, v = np.vstack([first[0], p]), np.vstack([first[1], v])
            a = None if a is None else np.vstack([first[2], a])
        return _Trajectory(self.joints, self.stamp, times, p, v, a)


class Controllers:
    """Turns commands into the targets (n,) of joints; for each joint the newest command counts.

    names: joints, n. controlled: those that a list of positions has, in its order. velocity,
    acceleration: of the targets (n,), 0 unless a trajectory is followed.
    """

    def __init__(
        self, names: Sequence[str], controlled: Sequence[str], start: Array, period: float = PERIOD
    ) -> None:
        """period: of the controller manager [s]."""
        self._names = {name: i for i, name in enumerate(names)}
        unknown = [name for name in controlled if name not in self._names]
        if unknown:
            raise InputError(
                f'controller_joints {join_names(unknown)} do not exist; joints: {join_names(names)}'
            )
        self._controlled = np.array([self._names[name] for name in controlled])
        self._position, self.velocity = start.copy(), np.zeros(start.size)
        self.acceleration = np.zeros(start.size)
        self._taken: list[_Trajectory] = []  # to be begun in the next period
        self._trajectories: list[_Trajectory] = []
        self._list: Array | None = None  # the newest positions, until the next period
        self._period = period
        self._next: float | None = None  # when the next period begins [s]

    def follow(
        self,
        now: float,
        names: Sequence[str],
        times: Sequence[float],
        positions: Sequence[Sequence[float]],
        velocities: Sequence[Sequence[float]],
        accelerations: Sequence[Sequence[float]] = (),
        stamp: float | None = None,
    ) -> None:
        """Take a trajectory at time now [s]; it begins at its stamp [s], without one in the next period.

        It goes along quintics, without accelerations along cubics. It replaces those that move some of its
        joints; others, of other controllers, continue.

        Raises InputError for one that a joint_trajectory_controller rejects.
        """
        index = self._indices(names)
        if not len(times) or not len(times) == len(positions) == len(velocities):
            raise InputError(f'a trajectory needs points, got {len(times)}')
        if not (np.diff(times) > 0.0).all() or times[0] < 0.0:
            raise InputError(f'times must increase and must not be negative, got {list(times)}')
        if len(accelerations) not in (0, len(times)):
            raise InputError(f'accelerations are needed for no point or for all, got {len(accelerations)}')
        rows = (positions, velocities, *((accelerations,) if len(accelerations) else ()))
        places, speeds, *rates = (_rows(row, index.size) for row in rows)
        if np.abs(speeds[-1]).max(initial=0.0) > REST:
            raise InputError(f'the last velocity must be 0, got {speeds[-1].tolist()}')
        if stamp is not None and stamp + times[-1] < now:
            raise InputError(f'a trajectory must not end in the past, it ends at {stamp + times[-1]:.3f} s')
        self._taken = [each for each in self._taken if not np.isin(each.joints, index).any()]
        self._taken.append(
            _Trajectory(index, stamp, np.array(times), places, speeds, rates[0] if rates else None)
        )

    def forward(self, positions: Sequence[float]) -> None:
        """Take a list of positions. Raises InputError unless there is a finite one for each joint."""
        (self._list,) = _rows([positions], self._controlled.size)

    def drive(self, names: Sequence[str], positions: Sequence[float]) -> None:
        """Take positions by name, of the joints that there are. Raises InputError for a bad message."""
        known = dict(zip(names, positions, strict=False))
        if len(known) != len(names) or len(names) != len(positions):
            raise InputError(
                f'one position per name is needed, got {join_names(names)} and {list(positions)}'
            )
        mine = [name for name in names if name in self._names]
        index = self._indices(mine)
        self._jump(index, _rows([[known[name] for name in mine]], index.size)[0])

    def targets(self, now: float) -> Array:
        """Return the targets (n,) at time now [s]: those of the last period."""
        if self._next is None or not 0 <= now - self._next + self._period <= MOST_PERIODS * self._period:
            self._next = now
        while self._next <= now:
            self._command(self._next)
            self._next += self._period
        return self._position

    def _command(self, now: float) -> None:
        """Act in the period that begins now [s]."""
        self._position, self.velocity = self._position.copy(), self.velocity.copy()
        self.acceleration = self.acceleration.copy()
        taken, self._taken = self._taken, []
        for each in taken:
            begun = each.begun(now, now - self._period, self._position, self.velocity, self.acceleration)
            self._end(each.joints)
            self._trajectories.append(begun)
        for each in self._trajectories:
            i = each.joints
            self._position[i], self.velocity[i], self.acceleration[i] = _interpolated(
                *each[2:], now + self._period
            )
        self._trajectories = [each for each in self._trajectories if now < each.times[-1]]
        if self._list is not None:
            self._jump(self._controlled, self._list)
            self._list = None

    def _end(self, index: NDArray[np.int64]) -> None:
        """End the trajectories that move any of these joints: all of theirs rest where they are."""
        for each in self._trajectories:
            if np.isin(each.joints, index).any():
                self.velocity[each.joints] = self.acceleration[each.joints] = 0.0
        self._trajectories = [x for x in self._trajectories if not np.isin(x.joints, index).any()]

    def _jump(self, index: NDArray[np.int64], places: Array) -> None:
        self._position, self.velocity = self._position.copy(), self.velocity.copy()
        self.acceleration = self.acceleration.copy()
        self._end(index)
        self._position[index] = places

    def _indices(self, names: Sequence[str]) -> NDArray[np.int64]:
        unknown = [name for name in names if name not in self._names]
        if unknown or len(set(names)) < len(names) or not names:
            raise InputError(
                f'joints must be different ones of {join_names(self._names)}, got {join_names(names)}'
            )
        return np.array([self._names[name] for name in names])


def _rows(rows: Sequence[Sequence[float]], size: int) -> Array:
    if any(len(row) != size for row in rows):
        raise InputError(f'{size} numbers are needed, got {[len(row) for row in rows]}')
    values = np.array([list(row) for row in rows], dtype=np.float64)
    if not (np.abs(values) <= LARGEST).all():
        raise InputError(f'numbers must be finite, up to {LARGEST:g}')
    return values


def _interpolated(
    times: Array, positions: Array, velocities: Array, accelerations: Array | None, now: float
) -> tuple[Array, Array, Array]:
    """Return position, velocity and acceleration (n,) at time now, at rest after the last row.

    Between the rows: quintics, or cubics without accelerations.
    """
    if now >= times[-1]:
        rest = np.zeros_like(positions[-1])
        return positions[-1], rest, rest
    i = max(int(np.searchsorted(times, now, side='right')) - 1, 0)
    h = times[i + 1] - times[i]
    t = max(now - times[i], 0.0)
    if accelerations is None:
        mean = (positions[i + 1] - positions[i]) / h
        b = (3.0 * mean - 2.0 * velocities[i] - velocities[i + 1]) / h
        a = (velocities[i] + velocities[i + 1] - 2.0 * mean) / h**2
        powers = np.array([positions[i], velocities[i], b, a])
    else:
        powers = np.array(
            [positions[i], velocities[i], accelerations[i] / 2.0, *np.zeros((3, positions.shape[1]))]
        )
        # What is missing at the end of the piece with the first three powers alone.
        place = positions[i + 1] - powers[0] - h * (powers[1] + h * powers[2])
        speed = (velocities[i + 1] - powers[1] - 2.0 * h * powers[2]) * h
        rate = (accelerations[i + 1] - 2.0 * powers[2]) * h**2
        powers[3] = (10.0 * place - 4.0 * speed + rate / 2.0) / h**3
        powers[4] = (-15.0 * place + 7.0 * speed - rate) / h**4
        powers[5] = (6.0 * place - 3.0 * speed + rate / 2.0) / h**5
    states = []
    for _ in range(3):
        value = np.zeros_like(positions[i])
        for power in powers[::-1]:
            value = value * t + power
        states.append(value)
        powers = powers[1:] * np.arange(1.0, len(powers))[:, None]
    return states[0], states[1], states[2]
