# SPDX-License-Identifier: Apache-2.0
"""Calibration files of LeRobot: what was recorded of each joint, and where such files are."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ik_node.errors import InputError, join_names, quoted

KEYS = ('id', 'drive_mode', 'homing_offset', 'range_min', 'range_max')
OLD = ('homing_offset', 'start_pos', 'end_pos', 'motor_names')  # lists: files of before mid 2025
RECORD = 'record a new one with lerobot-calibrate of LeRobot 0.3.2 or later'
LARGEST_FILE = 1 << 20  # bytes


@dataclass(frozen=True)
class Recorded:
    """What was recorded of a joint, in ticks. low, high: its range. homing_offset: as in the register."""

    low: int
    high: int
    homing_offset: int


def folder_of_lerobot() -> Path:
    """Return the folder in which LeRobot keeps the calibration of robots."""
    home = os.environ.get('HF_LEROBOT_CALIBRATION')
    if home:
        return Path(home).expanduser() / 'robots'
    cache = Path(os.environ.get('HF_HOME') or '~/.cache/huggingface').expanduser()
    return (
        Path(os.environ.get('HF_LEROBOT_HOME') or cache / 'lerobot').expanduser() / 'calibration' / 'robots'
    )


def find_files(folders: Sequence[str]) -> list[Path]:
    """Return the calibration files in these folders of LeRobot, newest first."""
    home = folder_of_lerobot()
    found = [path for folder in folders for path in home.joinpath(folder).glob('*.json') if path.is_file()]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def read_file(path: str | os.PathLike[str], ids: Mapping[str, int]) -> dict[str, Recorded]:
    """Return what a file of any LeRobot version since 0.3.2 has recorded, by joint.

    ids: of the servos, by the joints that the file must have. Raises InputError, also for the older format.
    """
    path = Path(path).expanduser()
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f'calibration {path} is too large to be a calibration file')
        values = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f'cannot read calibration {path}: {error}') from None
    if isinstance(values, dict) and any(isinstance(values.get(key), list) for key in OLD):
        raise InputError(f'calibration {path} has the format that LeRobot used before mid 2025: {RECORD}')
    if not isinstance(values, dict):
        raise InputError(f'calibration {path} must map joints to what was recorded: {RECORD}')
    missing = [joint for joint in ids if joint not in values]
    if missing:
        raise InputError(
            f'calibration {path} lacks {join_names(missing)}; it has {join_names(map(str, values))}'
        )
    found = {}
    for joint, number in ids.items():
        try:
            found[joint] = _recorded(values[joint], number)
        except InputError as error:
            raise InputError(f'calibration {path}, joint {quoted(joint)}: {error}') from None
    return found


def _recorded(entry: Any, number: int) -> Recorded:
    if not isinstance(entry, dict):
        raise InputError(f'must have {join_names(KEYS)}, got {entry!r}')
    for key in KEYS:
        value = entry.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f'{key} must be a whole number, got {value!r}')
    if entry['id'] != number:
        raise InputError(f'the file is of the servo with id {entry["id"]}, the profile has id {number}')
    if entry['drive_mode'] != 0:
        raise InputError(f'drive_mode must be 0, got {entry["drive_mode"]}')
    if not entry['range_min'] < entry['range_max']:
        raise InputError(f'range_min {entry["range_min"]} must be less than range_max {entry["range_max"]}')
    return Recorded(entry['range_min'], entry['range_max'], entry['homing_offset'])
