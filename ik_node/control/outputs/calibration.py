# SPDX-License-Identifier: Apache-2.0
"""Calibration: joint positions of a driver whose signs and zeros differ from those of the URDF.

Applied at the border only: to measured positions as they arrive and to commands as they go out. Everything
else, goals included, is in the coordinates of the URDF.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ik_node.checks import Array, yaml_number
from ik_node.control.outputs.joint_trajectory import JointTrajectory
from ik_node.control.outputs.outputs import Output
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.errors import LARGEST, InputError, join_names

SYNTAX = "such as 'shoulder_pan: -1, elbow_flex: 1'"


class Calibration:
    """position of the driver = sign * position of the URDF + offset [rad or m], by joint; velocities alike.

    signs: 1 or -1. Joints that are not named have sign 1 and offset 0.
    """

    def __init__(self, signs: Mapping[str, float], offsets: Mapping[str, float]) -> None:
        self.joints = tuple(dict.fromkeys([*signs, *offsets]))
        self._map = {name: (signs.get(name, 1.0), offsets.get(name, 0.0)) for name in self.joints}

    @classmethod
    def read(cls, signs: str, offsets: str) -> Calibration:
        """Read the parameters joint_signs and joint_offsets. Raises InputError."""
        found = cls(_read('joint_signs', signs), _read('joint_offsets', offsets))
        for name, (sign, offset) in found._map.items():
            if sign not in (1.0, -1.0):
                raise InputError(f'parameter joint_signs must give 1 or -1 to joint "{name}", got {sign:g}')
            if not abs(offset) <= LARGEST:
                raise InputError(
                    f'parameter joint_offsets must give joint "{name}" a number up to {LARGEST:g}, '
                    f'got {offset}'
                )
        return found

    def check(self, joints: Sequence[str]) -> None:
        """Raise InputError if a joint is none of joints."""
        for name in self.joints:
            if name not in joints:
                raise InputError(
                    f'parameter joint_signs or joint_offsets names "{name}", which is not a movable joint of '
                    f'this robot; movable joints: {join_names(joints, name)}'
                )

    def measured(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return positions of the URDF from those of the driver."""
        found = dict(positions)
        for name in self.joints:
            if name in found:
                sign, offset = self._map[name]
                found[name] = sign * (found[name] - offset)
        return found

    def commanded(
        self, names: Sequence[str], positions: Sequence[float] | Array, velocities: Sequence[float] | Array
    ) -> tuple[Array, Array]:
        """Return positions and velocities of the driver from those of the URDF, each (m,)."""
        rows = np.array([self._map.get(name, (1.0, 0.0)) for name in names]).reshape(-1, 2)
        return rows[:, 0] * positions + rows[:, 1], rows[:, 0] * velocities


class Calibrated(Output):
    """An output in the coordinates of the driver."""

    def __init__(self, output: Output, calibration: Calibration) -> None:
        self._output, self._calibration = output, calibration
        self.runs_plans, self.only_listed = output.runs_plans, output.only_listed

    def late(self, time: float) -> float:
        """Ask the output."""
        return self._output.late(time)

    def done(self) -> bool:
        """Ask the output."""
        return self._output.done()

    def take(self, setpoint: Setpoint) -> None:
        """Pass a setpoint on."""
        positions, velocities = self._calibration.commanded(
            setpoint.names, setpoint.positions, setpoint.velocities
        )
        trajectory = None if setpoint.trajectory is None else self._of_driver(setpoint.trajectory)
        self._output.take(
            replace(setpoint, positions=positions, velocities=velocities, trajectory=trajectory)
        )

    def halted(self, stand: JointTrajectory | None) -> None:
        """Pass the end of the commands on."""
        self._output.halted(None if stand is None else self._of_driver(stand))

    def _of_driver(self, trajectory: JointTrajectory) -> JointTrajectory:
        convert, names, rows = self._calibration.commanded, trajectory.names, trajectory.rows
        positions, velocities = convert(names, rows[0], rows[1])
        _, accelerations = convert(names, rows[0], rows[2])
        return replace(trajectory, positions=positions, velocities=velocities, accelerations=accelerations)


def _read(parameter: str, text: str) -> dict[str, float]:
    """Return the numbers by name of a text such as 'a: 1, b: 2'."""
    if not text.strip():
        return {}
    import yaml  # here: most arms need no calibration

    try:
        found: Any = yaml.safe_load(text if text.strip().startswith('{') else f'{{{text}}}')
    except yaml.YAMLError:
        found = None
    if isinstance(found, dict):
        found = {str(name): yaml_number(value) for name, value in found.items()}
    if not isinstance(found, dict) or None in found.values():
        raise InputError(f'parameter {parameter} must hold a number by joint, {SYNTAX}, got {text!r}')
    return found
