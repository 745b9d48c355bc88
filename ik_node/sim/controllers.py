"""Controllers: the controllers of ros2_control and a simple driver, as far as commands for arms go.

Written after the documentation of joint_trajectory_controller and forward_command_controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError, listed

REST = 1e-6  # [rad/s, m/s]: the last velocity of a trajectory must not exceed this


class _Trajectory(NamedTuple):
    """A motion of some joints (m,): times (k,), positions, velocities and perhaps accelerations (k, m)."""

    joints: NDArray[np.int64]
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array | None


class Controllers:
    """Turns commands into the targets (n,) of joints; for each joint the newest command counts.

    names: joints, n. controlled: those that a list of positions has, in its order. velocity,
    acceleration: of the targets (n,), 0 unless a trajectory is followed.
    """

    def __init__(self, names: Sequence[str], controlled: Sequence[str], start: Array) -> None:
        self._names = {name: i for i, name in enumerate(names)}
        unknown = [name for name in controlled if name not in self._names]
        if unknown:
            raise InputError(f'controller_joints {listed(unknown)} do not exist; joints: {listed(names)}')
        self._controlled = [self._names[name] for name in controlled]
        self._position, self.velocity = start.copy(), np.zeros(start.size)
        self.acceleration = np.zeros(start.size)
        self._trajectories: list[_Trajectory] = []

    def follow(
        self,
        now: float,
        names: Sequence[str],
        times: Sequence[float],
        positions: Sequence[Sequence[float]],
        velocities: Sequence[Sequence[float]],
        accelerations: Sequence[Sequence[float]] = (),
    ) -> None:
        """Begin a trajectory at time now [s], from the present target; times count from there.

        It goes along quintics, without accelerations along cubics. It replaces those that move some of its
        joints; others, of other controllers, go on.

        Raises InputError for one that a joint_trajectory_controller refuses.
        """
        index = self._indices(names)
        if not len(times) or not len(times) == len(positions) == len(velocities):
            raise InputError(f'a trajectory needs points, got {len(times)}')
        if not (np.diff([0.0, *times]) > 0.0).all():
            raise InputError(f'times must increase and be greater than 0, got {list(times)}')
        if len(accelerations) not in (0, len(times)):
            raise InputError(f'accelerations are needed for no point or for all, got {len(accelerations)}')
        rows = (positions, velocities, *((accelerations,) if len(accelerations) else ()))
        places, speeds, *rates = (_rows(row, index.size) for row in rows)
        if np.abs(speeds[-1]).max(initial=0.0) > REST:
            raise InputError(f'the last velocity must be 0, got {speeds[-1].tolist()}')
        self.targets(now)
        p, v = np.vstack([self._position[index], places]), np.vstack([self.velocity[index], speeds])
        a = np.vstack([self.acceleration[index], rates[0]]) if rates else None
        self._end(index)
        self._trajectories.append(_Trajectory(index, now + np.array([0.0, *times]), p, v, a))

    def forward(self, positions: Sequence[float]) -> None:
        """Take a list of positions. Raises InputError unless there is a finite one for each joint."""
        self._jump(np.array(self._controlled), positions)

    def drive(self, names: Sequence[str], positions: Sequence[float]) -> None:
        """Take positions by name, of the joints that there are. Raises InputError for a bad message."""
        known = dict(zip(names, positions, strict=False))
        if len(known) != len(names) or len(names) != len(positions):
            raise InputError(f'one position per name is needed, got {listed(names)} and {list(positions)}')
        mine = [name for name in names if name in self._names]
        self._jump(self._indices(mine), [known[name] for name in mine])

    def targets(self, now: float) -> Array:
        """Return the targets (n,) at time now [s]."""
        if self._trajectories:
            self._position, self.velocity = self._position.copy(), self.velocity.copy()
            self.acceleration = self.acceleration.copy()
        for each in self._trajectories:
            i = each.joints
            self._position[i], self.velocity[i], self.acceleration[i] = _interpolated(*each[1:], now)
        self._trajectories = [each for each in self._trajectories if now < each.times[-1]]
        return self._position

    def _end(self, index: NDArray[np.int64]) -> None:
        """End the trajectories that move any of these joints: all of theirs rest where they are."""
        for each in self._trajectories:
            if np.isin(each.joints, index).any():
                self.velocity, self.acceleration = self.velocity.copy(), self.acceleration.copy()
                self.velocity[each.joints] = self.acceleration[each.joints] = 0.0
        self._trajectories = [x for x in self._trajectories if not np.isin(x.joints, index).any()]

    def _jump(self, index: NDArray[np.int64], positions: Sequence[float]) -> None:
        (places,) = _rows([positions], index.size)
        self._end(index)
        self._position = self._position.copy()
        self._position[index] = places

    def _indices(self, names: Sequence[str]) -> NDArray[np.int64]:
        unknown = [name for name in names if name not in self._names]
        if unknown or len(set(names)) < len(names) or not names:
            raise InputError(f'joints must be different ones of {listed(self._names)}, got {listed(names)}')
        return np.array([self._names[name] for name in names])


def _rows(rows: Sequence[Sequence[float]], size: int) -> Array:
    if any(len(row) != size for row in rows):
        raise InputError(f'{size} numbers are needed, got {[len(row) for row in rows]}')
    values = np.array([list(row) for row in rows], dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError('numbers must be finite')
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
