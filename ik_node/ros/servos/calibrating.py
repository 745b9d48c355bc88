# SPDX-License-Identifier: Apache-2.0
"""How the parameters of ik_servos become a calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ik_node.errors import InputError, join_names, path_text
from ik_node.model.urdf.description import load_description, read_from
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.servos.settings import LEROBOT, MEMORY, ServoSettings
from ik_node.servos.calibration.by_joint import read_by_joint
from ik_node.servos.calibration.lerobot_file import find_file, folder_of_lerobot, read_file
from ik_node.servos.calibration.owner_zeros import (
    load_zeros,
    owner_zeros,
    store_zeros,
    ticks_now,
    zeros_path,
)
from ik_node.servos.calibration.profile import ArmProfile
from ik_node.servos.calibration.recorded import Recorded
from ik_node.servos.calibration.zeros import ArmCalibration, calibrate, check_names, read_zeros
from ik_node.servos.ports import arm_at
from ik_node.share import share_path


class Calibrating:
    """Calibrates an arm from what its servos have stored; tell: called with decisions, warn: with doubts."""

    def __init__(
        self,
        profile: ArmProfile,
        settings: ServoSettings,
        tell: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        """Raises IkError for settings that are wrong."""
        self._profile, self._settings, self._tell, self._warn = profile, settings, tell, warn
        self._zeros = read_zeros(settings.zeros)
        check_names('zeros:', self._zeros, profile)
        given = settings.calibration
        self._written = None if given in (MEMORY, LEROBOT) else read_file(given, profile)
        self._limits = _limits(settings.description or profile.robot, settings.xacro_args, profile)
        self._memory: Mapping[str, Recorded] = {}
        self._told: tuple[list[str], list[str]] = [], []

    def __call__(self, memory: Mapping[str, Recorded]) -> ArmCalibration:
        """Return the calibration for what the servos have stored. Raises InputError and PortError."""
        self._memory = memory
        zeros = {**ticks_now(self._profile, load_zeros(self._path()), memory), **self._zeros}
        found = calibrate(
            self._profile, memory, self._settings.zero_from, zeros, self._limits, self._file(memory)
        )
        told = found.notes, found.warnings
        if told != self._told:
            self._told = told
            for line in found.notes:
                self._tell(line)
            for line in found.warnings:
                self._warn(line)
        return found

    def _path(self) -> Path:
        """Return the file for the zeros of the arm at the port. Raises PortError."""
        return zeros_path(self._profile.name, arm_at(self._settings.port))

    def _file(self, memory: Mapping[str, Recorded]) -> Mapping[str, Recorded] | None:
        """Return what a file of LeRobot has recorded, None if none is wanted."""
        if self._settings.calibration != LEROBOT:
            return self._written
        path = find_file(self._profile, memory)
        if path is None:
            raise InputError(
                f'no calibration file of LeRobot for profile {self._profile.name} is in '
                f'{path_text(folder_of_lerobot())}; folders: {join_names(self._profile.lerobot)}'
            )
        return read_file(path, self._profile)

    def store_pose(self, ticks: Mapping[str, int], pose: str) -> Path:
        """Store that joints are in a known pose at these ticks; return the file. Raises InputError."""
        known = read_pose(pose, self._profile.names)
        if not known:
            raise InputError(
                'known_pose is empty: set it to the positions at which you hold the joints whose zeros are '
                f"to be set, such as '{self._profile.names[0]}=0'"
            )
        zeros = owner_zeros(self._profile, known, ticks, self._memory)
        path = self._path()
        store_zeros(path, zeros)
        return path


def read_pose(text: str, names: tuple[str, ...]) -> dict[str, float]:
    """Return the positions [rad or m] by joint of a pose such as 'elbow_flex=1.57'. Raises InputError."""
    found: dict[str, float] = {}
    for name, position in read_by_joint(text):
        if name not in names or position is None or not abs(position) <= 10.0 or name in found:
            raise InputError(
                f"known_pose must be positions by joint, each once, such as '{names[0]}=0.5', got {text!r}; "
                f'joints: {join_names(names, name)}'
            )
        found[name] = position
    return found


def _limits(given: str, arguments: str, profile: ArmProfile) -> dict[str, tuple[float, float]]:
    """Return the limits of the joints that a description has, by name. Raises IkError if it has none."""
    if not given:
        return {}
    path = Path(given).expanduser()
    if given.isidentifier() and not path.is_file():
        path = share_path('urdf').joinpath(f'{given}.urdf.xacro')
    text = load_description(path, arguments)
    with read_from(path):
        joints = read_urdf(text).joints
    profile.check_described(joints)
    return {name: (joints[name].lower, joints[name].upper) for name in profile.names if name in joints}
