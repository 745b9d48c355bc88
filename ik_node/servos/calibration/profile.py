# SPDX-License-Identifier: Apache-2.0
"""ArmProfile: the servos of an arm, read from a YAML file in config/servos or of the owner."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from ik_node.checks import yaml_number
from ik_node.errors import InputError, join_names, path_text, quoted
from ik_node.servos.bus import dynamixel, feetech
from ik_node.servos.bus.models import RADIANS_PER_TICK, model_named
from ik_node.share import share_path

PROTOCOLS = {'feetech': feetech, 'dynamixel': dynamixel}
LARGEST_ID = 252
LARGEST_FILE = 1 << 20  # bytes


@dataclass(frozen=True)
class JointProfile:
    """One joint and its servo.

    name: of the joint in the URDF. lerobot: its name in LeRobot's files, empty for the same.
    id: of the servo; shadows: ids of servos that turn with it and are never commanded. model: see bus.models.
    sign: of the joint's motion at rising ticks. unit: rad or m per tick.
    reversed: the servo's memory must have it turn the other way (Dynamixel, drive mode).
    zero: the tick of zero as delivered, homing: as LeRobot's calibration sets it by the owner's eye; None
    where only the owner knows. stops: positions (low, high) [rad or m] of the mechanical stops, None if not
    known. gripper: its zero comes from its closed stop, and LeRobot has it in percent.
    full_turn: the joint has no stops, its range may be all ticks.
    fastest: [rad/s or m/s] without load. torque: largest share of the servo's torque.
    mode: operating mode, None as it is.
    """

    name: str
    id: int
    model: str
    lerobot: str = ''
    shadows: tuple[int, ...] = ()
    sign: int = 1
    unit: float = RADIANS_PER_TICK
    reversed: bool = False
    zero: float | None = None
    homing: float | None = None
    stops: tuple[float, float] | None = None
    gripper: bool = False
    full_turn: bool = False
    fastest: float = 5.3
    torque: float = 1.0
    mode: int | None = None

    @property
    def scale(self) -> float:
        """How far the joint moves while its servo turns by one radian: 1 rad, or metres."""
        return self.unit / RADIANS_PER_TICK


@dataclass(frozen=True)
class ArmProfile:
    """The servos of an arm.

    robot: the description in urdf/ that shows it, empty if there is none. lerobot: folders of LeRobot's
    calibration files.
    """

    name: str
    protocol: str
    baud: int
    joints: tuple[JointProfile, ...]
    robot: str = ''
    lerobot: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the joints."""
        return tuple(joint.name for joint in self.joints)

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the servos that are commanded."""
        return tuple(joint.id for joint in self.joints)

    def check_described(self, joints: Collection[str]) -> None:
        """Raise InputError unless a description with these joints has one of this arm at least."""
        if set(self.names).isdisjoint(joints):
            raise InputError(
                f'the description has none of the joints of profile {quoted(self.name)}: it has '
                f'{join_names(joints)}, the profile {join_names(self.names)}. Give the description of this '
                'arm, or use the names of its joints in a copy of the profile'
            )


def shipped_profiles() -> tuple[str, ...]:
    """Return the names of the profiles in config/servos."""
    return tuple(sorted(path.stem for path in share_path('config', 'servos').glob('*.yaml')))


def read_profile(given: str) -> ArmProfile:
    """Return the profile of that name, or in the file of that path. Raises InputError."""
    shipped = shipped_profiles()
    path = share_path('config', 'servos', f'{given}.yaml') if given in shipped else Path(given).expanduser()
    try:
        if not path.is_file():
            raise InputError(
                f'profile {quoted(given)} is neither a file nor one of {join_names(shipped, given)}'
            )
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f'profile {path_text(path)} has more than {LARGEST_FILE} bytes')
        values = yaml.safe_load(path.read_text(encoding='utf-8'))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f'cannot read profile {path_text(path)}: {" ".join(str(error).split())}') from None
    try:
        return _profile(path.stem, values)
    except InputError as error:
        raise InputError(f'profile {path_text(path)}: {error}') from None


def _profile(name: str, values: Any) -> ArmProfile:
    known = _known(values, ArmProfile, 'the profile')
    protocol, baud = known['protocol'], known['baud']
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise InputError(f'protocol must be {" or ".join(PROTOCOLS)}, got {protocol!r}')
    if not _is_whole(baud, 1, 10_000_000):
        raise InputError(f'baud must be a whole number from 1 to 10000000, got {baud!r}')
    if not isinstance(known['joints'], Mapping) or not known['joints']:
        raise InputError('joints must map the name of each joint to its servo')
    joints = tuple(_joint(str(joint), entry) for joint, entry in known['joints'].items())
    ids = [number for joint in joints for number in (joint.id, *joint.shadows)]
    twice = sorted({number for number in ids if ids.count(number) > 1})
    if twice:
        raise InputError(f'id {twice[0]} is given to more than one servo')
    for joint in joints:
        if model_named(joint.model).codec is not PROTOCOLS[protocol]:
            raise InputError(f'joint {quoted(joint.name)}: {joint.model} does not have protocol {protocol}')
    folders, robot = known.get('lerobot') or [], known.get('robot') or ''
    if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
        raise InputError(f'lerobot must be a list of folders, got {folders!r}')
    if not isinstance(robot, str):
        raise InputError(f'robot must be the name of a description, got {robot!r}')
    return ArmProfile(name, protocol, baud, joints, robot, tuple(folders))


def _joint(name: str, values: Any) -> JointProfile:
    where = f'joint {quoted(name)}'
    known = _known(values, JointProfile, where)
    try:
        read = {key: READERS[key](key, value) for key, value in known.items()}
        model_named(read['model'])
    except InputError as error:
        raise InputError(f'{where}: {error}') from None
    return JointProfile(name, **read)


def _known(values: Any, kind: Any, where: str) -> dict[str, Any]:
    """Return the entries of a mapping, all of which are fields of a dataclass. Raises InputError."""
    allowed = {field.name: field for field in fields(kind) if field.name != 'name'}
    if not isinstance(values, Mapping):
        raise InputError(f'{where} must be a mapping with {join_names(allowed)}, got {values!r}')
    for key in values:
        if key not in allowed:
            raise InputError(f'{where} has no {quoted(str(key))}; allowed: {join_names(allowed, str(key))}')
    for key, field in allowed.items():
        if key not in values and field.default is MISSING:
            raise InputError(f'{where} lacks {quoted(key)}')
    return dict(values)


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _number(low: float, high: float) -> Callable[[str, Any], float]:
    def read(key: str, value: Any) -> float:
        number = yaml_number(value)
        if number is None or not low < number <= high:
            raise InputError(f'{key} must be a number greater than {low:g}, at most {high:g}, got {value!r}')
        return number

    return read


def _tick(key: str, value: Any) -> float | None:
    number = yaml_number(value)
    if value is not None and (number is None or not math.isfinite(number)):
        raise InputError(f'{key} must be a number of ticks, got {value!r}')
    return number


def _whole(low: int, high: int) -> Callable[[str, Any], int]:
    def read(key: str, value: Any) -> int:
        if not _is_whole(value, low, high):
            raise InputError(f'{key} must be a whole number from {low} to {high}, got {value!r}')
        return int(value)

    return read


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f'{key} must be text, got {value!r}')
    return value


def _switch(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f'{key} must be true or false, got {value!r}')
    return value


def _sign(key: str, value: Any) -> int:
    if value not in (1, -1) or isinstance(value, bool):
        raise InputError(f'{key} must be 1 or -1, got {value!r}')
    return int(value)


def _shadows(key: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise InputError(f'{key} must be a list of ids, got {value!r}')
    return tuple(_whole(0, LARGEST_ID)(key, id) for id in value)


def _stops(key: str, value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    numbers = [yaml_number(end) for end in value] if isinstance(value, list) else []
    if len(numbers) == 2:
        low, high = numbers
        if low is not None and high is not None and -math.inf < low < high < math.inf:
            return low, high
    raise InputError(f'{key} must be two positions [low, high], got {value!r}')


READERS: Mapping[str, Callable[[str, Any], Any]] = {
    'id': _whole(0, LARGEST_ID),
    'model': _text,
    'lerobot': _text,
    'shadows': _shadows,
    'sign': _sign,
    'unit': _number(0.0, 1.0),
    'reversed': _switch,
    'zero': _tick,
    'homing': _tick,
    'stops': _stops,
    'gripper': _switch,
    'full_turn': _switch,
    'fastest': _number(0.0, 1e3),
    'torque': _number(0.0, 1.0),
    'mode': _whole(0, 255),
}
