# SPDX-License-Identifier: Apache-2.0
"""Calibration files of LeRobot: what was recorded of each joint, and where such files are."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ik_node.errors import InputError, join_names, path_text, quoted
from ik_node.servos.calibration.profile import ArmProfile
from ik_node.servos.calibration.recorded import Recorded, is_same

KEYS = ('id', 'drive_mode', 'homing_offset', 'range_min', 'range_max')
OLD = ('homing_offset', 'start_pos', 'end_pos', 'motor_names')  # lists: files of before mid 2025
RECORD = 'record a new one with lerobot-calibrate of LeRobot 0.3.2 or later'
LARGEST_FILE = 1 << 20  # bytes


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
            content = read_file(path, profile)
            if all(content != other for _, other in fitting):
                fitting.append((path, content))
    if memory:
        same = [item for item in fitting if all(is_same(memory[name], item[1][name]) for name in memory)]
        fitting = same or fitting
    if len(fitting) > 1:
        names = ', '.join(path_text(path) for path, _ in fitting)
        raise InputError(f'several calibration files fit profile {profile.name}: {names}; choose one')
    return fitting[0][0] if fitting else None


def read_file(path: str | os.PathLike[str], profile: ArmProfile) -> dict[str, Recorded]:
    """Return what a file of any LeRobot version since 0.3.2 has recorded, by joint of the profile.

    Raises InputError, also for the older format.
    """
    file = Path(path).expanduser()
    shown = f'calibration {path_text(file)}'
    try:
        with file.open('rb') as opened:
            data = opened.read(LARGEST_FILE + 1)
        values = json.loads(data.decode('utf-8')) if len(data) <= LARGEST_FILE else None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f'cannot read {shown}: {error}') from None
    if isinstance(values, dict) and any(isinstance(values.get(key), list) for key in OLD):
        raise InputError(f'{shown} has the format that LeRobot used before mid 2025: {RECORD}')
    if not isinstance(values, dict):
        raise InputError(f'{shown} must map joints to what was recorded: {RECORD}')
    names = {joint.name: joint.lerobot or joint.name for joint in profile.joints}
    missing = [name for name in names.values() if name not in values]
    if missing:
        raise InputError(f'{shown} lacks {join_names(missing)}; it has {join_names(map(str, values))}')
    found = {}
    for joint in profile.joints:
        name = names[joint.name]
        try:
            found[joint.name] = _recorded(values[name], joint.id)
        except InputError as error:
            raise InputError(f'{shown}, joint {quoted(name)}: {error}') from None
    return found


def _recorded(entry: Any, id: int) -> Recorded:
    if not isinstance(entry, dict):
        raise InputError(f'must have {join_names(KEYS)}, got {entry!r}')
    for key in KEYS:
        value = entry.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not abs(value) < 2**31:
            raise InputError(f'{key} must be a whole number, got {value!r}')
    if entry['id'] != id:
        raise InputError(f'the file is for the servo with id {entry["id"]}, the profile has id {id}')
    if not entry['range_min'] < entry['range_max']:
        raise InputError(f'range_min {entry["range_min"]} must be less than range_max {entry["range_max"]}')
    return Recorded(entry['range_min'], entry['range_max'], entry['homing_offset'])
