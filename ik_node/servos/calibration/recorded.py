# SPDX-License-Identifier: Apache-2.0
"""Recorded: what a calibration has left in the memory of a servo, or in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ik_node.errors import InputError, join_names, path_text
from ik_node.files import fields, read_file, whole_number
from ik_node.servos.bus.models import PHASE_MULTI_TURN, TICKS_PER_TURN, ServoModel
from ik_node.servos.calibration.profile import ArmProfile

DRIVE_MODE_REVERSED = 0x01  # Dynamixel
REGISTERS = ('min_position_limit', 'max_position_limit', 'homing_offset', 'phase', 'drive_mode')


@dataclass(frozen=True)
class Recorded:
    """What was recorded of a joint.

    low, high [ticks]: its range. homing_offset [ticks]: as in the register. multi_turn: positions count
    beyond one turn. reversed: the servo turns the other way; None where that is not known or cannot be set.
    """

    low: int
    high: int
    homing_offset: int
    multi_turn: bool = False
    reversed: bool | None = None

    @property
    def is_range(self) -> bool:
        """Whether low and high are ends of a motion, without the step from 4095 to 0 between them."""
        return 0 < self.low < self.high < TICKS_PER_TURN - 1

    @property
    def as_delivered(self) -> bool:
        """Whether the servo has the values of the factory: nobody has calibrated it."""
        return (self.low, self.high, self.homing_offset) == (0, TICKS_PER_TURN - 1, 0)

    @property
    def middle(self) -> float:
        """The middle [ticks] of the range, which LeRobot calls 0 degrees."""
        return (self.low + self.high) / 2.0

    def text(self) -> str:
        """Return range and offset in words."""
        return f'range {self.low} to {self.high} and offset {self.homing_offset}'


def registers_of(model: ServoModel) -> tuple[str, ...]:
    """Return the names of those REGISTERS that a servo has."""
    return tuple(name for name in REGISTERS if name in model.registers)


def recorded_in(model: ServoModel, counts: Mapping[str, int]) -> Recorded:
    """Return what is in the memory of a servo. counts: of the registers_of its model, decoded."""
    return Recorded(
        counts['min_position_limit'],
        counts['max_position_limit'],
        counts['homing_offset'],
        bool(counts['phase'] & PHASE_MULTI_TURN) if 'phase' in model.registers else False,
        bool(counts['drive_mode'] & DRIVE_MODE_REVERSED) if 'drive_mode' in model.registers else None,
    )


def is_same(one: Recorded, other: Recorded) -> bool:
    """Whether range and offset are the same."""
    return (one.low, one.high, one.homing_offset) == (other.low, other.high, other.homing_offset)


KEYS = ('id', 'drive_mode', 'homing_offset', 'range_min', 'range_max')
OLD = ('homing_offset', 'start_pos', 'end_pos', 'motor_names')  # lists: files of before mid 2025
RECORD = 'record a new one with lerobot-calibrate of LeRobot 0.3.2 or later'
ENTRY = fields(dict.fromkeys(KEYS, whole_number()), required=KEYS, others=True)


def folder_of_lerobot() -> Path:
    """Return the folder in which LeRobot keeps the calibration of robots."""
    cache = Path(os.environ.get('HF_HOME') or '~/.cache/huggingface')
    home = Path(os.environ.get('HF_LEROBOT_HOME') or cache / 'lerobot')
    return Path(os.environ.get('HF_LEROBOT_CALIBRATION') or home / 'calibration').expanduser() / 'robots'


def find_files(profile: ArmProfile) -> list[Path]:
    """Return the files that LeRobot has for arms of a profile, those of the newest LeRobot first."""
    home = folder_of_lerobot()
    found: list[Path] = []
    with suppress(OSError):
        for folder in profile.lerobot:
            found += sorted(path for path in home.joinpath(folder).glob('*.json') if path.is_file())
    return found


def find_file(profile: ArmProfile, memory: Mapping[str, Recorded] | None = None) -> Path | None:
    """Return the only file of LeRobot that fits an arm, None if there is none.

    memory: of the servos, by joint; a file with the same values is the one. Files with the same content are
    one. Raises InputError that lists them if several fit.
    """
    fitting: list[tuple[Path, dict[str, Recorded]]] = []
    for path in find_files(profile):
        with suppress(InputError):  # of another arm, or of before mid 2025
            content = read_calibration(path, profile)
            if all(content != other for _, other in fitting):
                fitting.append((path, content))
    if memory:
        same = [item for item in fitting if all(is_same(memory[name], item[1][name]) for name in memory)]
        fitting = same or fitting
    if len(fitting) > 1:
        names = ', '.join(path_text(path) for path, _ in fitting)
        raise InputError(f'several calibration files fit profile {profile.name}: {names}; choose one')
    return fitting[0][0] if fitting else None


def read_calibration(path: str | os.PathLike[str], profile: ArmProfile) -> dict[str, Recorded]:
    """Return what a file of any LeRobot version since 0.3.2 has recorded, by joint of the profile.

    Raises InputError, also for the older format.
    """
    names = {joint.name: joint.lerobot or joint.name for joint in profile.joints}

    def check(_: str, values: Any) -> dict[str, Recorded]:
        if isinstance(values, dict) and any(isinstance(values.get(key), list) for key in OLD):
            raise InputError(f'it has the format that LeRobot used before mid 2025: {RECORD}')
        if not isinstance(values, dict):
            raise InputError(f'it must map joints to what was recorded: {RECORD}')
        missing = [name for name in names.values() if name not in values]
        if missing:
            raise InputError(f'it lacks {join_names(missing)}; it has {join_names(values)}')
        return {
            joint.name: _recorded(names[joint.name], values[names[joint.name]], joint.id) for joint in profile.joints
        }

    found: dict[str, Recorded] = read_file(path, 'calibration', check, json.loads)
    return found


def _recorded(name: str, value: Any, id: int) -> Recorded:
    entry = ENTRY(name, value)
    low, high = entry['range_min'], entry['range_max']
    if entry['id'] != id:
        raise InputError(f'{name} is for the servo with id {entry["id"]}, the profile has id {id}')
    if not low < high:
        raise InputError(f'{name}.range_min {low} must be less than range_max {high}')
    return Recorded(low, high, entry['homing_offset'])
