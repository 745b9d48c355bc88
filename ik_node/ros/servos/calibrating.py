# SPDX-License-Identifier: Apache-2.0
"""How the parameters of ik_servos become a calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ik_node.errors import InputError, join_names, path_text
from ik_node.model.inertia import Weight
from ik_node.model.urdf.description import load_description, read_from
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.servos.settings import LEROBOT, MEMORY, ServoSettings
from ik_node.servos.calibration.by_joint import read_by_joint
from ik_node.servos.calibration.lerobot_file import find_file, folder_of_lerobot, read_file
from ik_node.servos.calibration.owner_zeros import (
    factors_path,
    load_factors,
    load_zeros,
    owner_zeros,
    store_factors,
    store_zeros,
    ticks_now,
    zeros_path,
)
from ik_node.servos.calibration.profile import ArmProfile
from ik_node.servos.calibration.recorded import Recorded
from ik_node.servos.calibration.zeros import ArmCalibration, calibrate, check_names, read_zeros
from ik_node.servos.ports import EMULATED, arm_at
from ik_node.share import share_path

CHANGED = 0.02  # of a factor, at which it is stored anew


class Calibrating:
    """Calibrates an arm from what its servos have stored; tell: called with decisions, warn: with doubts.

    description: its path, None without one. torques: of its gravity at positions, None if the sag is not to
    be compensated. factors: what was learned of the sag, from the first calibration on.
    """

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
        self.description = _path_of(settings.description or profile.robot)
        self._limits, weight = _described(self.description, settings.xacro_args, profile)
        self.torques = weight if settings.compensate_sag else None
        self.factors: dict[str, float] = {}
        self._stored: dict[str, float] = {}  # of the factors
        self._learning: Path | None = None  # the file for them
        self._memory: Mapping[str, Recorded] = {}
        self._told: tuple[list[str], list[str]] = [], []

    def __call__(self, memory: Mapping[str, Recorded]) -> ArmCalibration:
        """Return the calibration for what the servos have stored. Raises InputError and PortError."""
        self._memory = memory
        self._recall()
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

    def _recall(self) -> None:
        """Continue with what was learned of the arm at the port, which may be another one than before."""
        if self._settings.port == EMULATED:
            return
        path = factors_path(self._profile.name, arm_at(self._settings.port))
        if path == self._learning:
            return
        try:
            self.store_learned()
        except InputError as error:
            self._warn(f'the learned compensation of sag is not stored: {error}')
        self.factors.clear()  # first: another thread may be about to store
        self._stored, self._learning = load_factors(path), path
        self.factors.update(self._stored)

    def store_learned(self) -> None:
        """Store what was learned of the sag of a real arm, if that has changed. Raises InputError."""
        path, factors = self._learning, dict(self.factors)  # in this order, see _recall
        if path is None:
            return
        if any(abs(factor - self._stored.get(name, 1.0)) > CHANGED for name, factor in factors.items()):
            self._stored = factors  # tried once, also if it fails
            store_factors(path, factors)

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


def _path_of(given: str) -> Path | None:
    """Return the file of a description, given as its path or as the name of a shipped robot."""
    if not given:
        return None
    path = Path(given).expanduser()
    if given.isidentifier() and not path.is_file():
        path = share_path('urdf').joinpath(f'{given}.urdf.xacro')
    return path


def _described(
    path: Path | None, arguments: str, profile: ArmProfile
) -> tuple[dict[str, tuple[float, float]], Weight | None]:
    """Return the limits of the joints that a description has, by name, and its weight.

    Raises IkError if it has none of the joints.
    """
    if path is None:
        return {}, None
    text = load_description(path, arguments)
    with read_from(path):
        robot = read_urdf(text)
    joints = robot.joints
    profile.check_described(joints)
    limits = {name: (joints[name].lower, joints[name].upper) for name in profile.names if name in joints}
    return limits, Weight(robot, text)
