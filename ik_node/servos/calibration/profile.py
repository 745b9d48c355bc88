# SPDX-License-Identifier: Apache-2.0
"""ArmProfile: the servos of an arm, read from a YAML file in config/servos or of the owner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from ik_node.errors import InputError, join_names, quoted
from ik_node.servos.bus.models import model_named
from ik_node.share import share_path

FOLDER = share_path('config', 'servos')
PROFILES = tuple(sorted(path.stem for path in FOLDER.glob('*.yaml')))
PROTOCOLS = ('feetech', 'dynamixel')
LARGEST_ID = 252


@dataclass(frozen=True)
class JointProfile:
    """One joint and its servo.

    name: of the joint in the URDF. id: of the servo; shadows: ids of servos that turn with it and are never
    commanded. sign: of the joint's motion at rising ticks. unit: rad or m per tick. homing: the tick of zero
    as the maker's procedure sets it, None if only the owner knows. stops: positions (low, high) [rad or m] of
    the mechanical stops, None if not known. full_turn: the joint has no stops, its range may be all ticks.
    fastest: [rad/s or m/s] without load. torque: largest share of the servo's torque.
    """

    name: str
    id: int
    model: str
    shadows: tuple[int, ...] = ()
    sign: int = 1
    unit: float = math.tau / 4096
    homing: float | None = None
    stops: tuple[float, float] | None = None
    full_turn: bool = False
    fastest: float = 5.3
    torque: float = 1.0
    mode: int | None = None


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


def read_profile(given: str) -> ArmProfile:
    """Return the profile of that name, or in the file of that path. Raises InputError."""
    path = FOLDER / f'{given}.yaml' if given in PROFILES else Path(given).expanduser()
    if not path.is_file():
        raise InputError(
            f'profile {quoted(given)} is neither a file nor a shipped profile: {join_names(PROFILES, given)}'
        )
    try:
        values = yaml.safe_load(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f'cannot read profile {path}: {" ".join(str(error).split())}') from None
    try:
        return _profile(path.stem, values)
    except InputError as error:
        raise InputError(f'profile {path}: {error}') from None


def _profile(name: str, values: Any) -> ArmProfile:
    known = _known(values, ArmProfile, 'the profile', without=('name',))
    protocol, baud = known['protocol'], known['baud']
    if protocol not in PROTOCOLS:
        raise InputError(f'protocol must be {" or ".join(PROTOCOLS)}, got {protocol!r}')
    if not _is_whole(baud, 1, 10_000_000):
        raise InputError(f'baud must be a whole number greater than 0, got {baud!r}')
    if not isinstance(known['joints'], Mapping) or not known['joints']:
        raise InputError('joints must map the name of each joint to its servo')
    joints = tuple(_joint(str(joint), entry) for joint, entry in known['joints'].items())
    ids = [number for joint in joints for number in (joint.id, *joint.shadows)]
    twice = sorted({number for number in ids if ids.count(number) > 1})
    if twice:
        raise InputError(f'id {twice[0]} is given to more than one servo')
    folders = known.get('lerobot') or ()
    if not isinstance(folders, (list, tuple)) or not all(isinstance(folder, str) for folder in folders):
        raise InputError(f'lerobot must be a list of folders, got {folders!r}')
    return ArmProfile(name, protocol, baud, joints, str(known.get('robot') or ''), tuple(folders))


def _joint(name: str, values: Any) -> JointProfile:
    where = f'joint {quoted(name)}'
    known = _known(values, JointProfile, where, without=('name',))
    shadows = known.pop('shadows', [])
    if not isinstance(shadows, list) or not all(
        _is_whole(number, 0, LARGEST_ID) for number in (known['id'], *shadows)
    ):
        raise InputError(
            f'{where}: id and shadows must be whole numbers from 0 to {LARGEST_ID}, '
            f'got {known["id"]!r} and {shadows!r}'
        )
    try:
        model_named(str(known['model']))
    except InputError as error:
        raise InputError(f'{where}: {error}') from None
    if known.get('sign', 1) not in (1, -1):
        raise InputError(f'{where}: sign must be 1 or -1, got {known["sign"]!r}')
    if not isinstance(known.get('full_turn', False), bool):
        raise InputError(f'{where}: full_turn must be true or false, got {known["full_turn"]!r}')
    if known.get('mode') is not None and not _is_whole(known['mode'], 0, 255):
        raise InputError(f'{where}: mode must be a whole number from 0 to 255, got {known["mode"]!r}')
    for key in ('unit', 'fastest', 'torque'):
        if key in known and not (_is_number(known[key]) and known[key] > 0.0):
            raise InputError(f'{where}: {key} must be a number greater than 0, got {known[key]!r}')
    if known.get('torque', 1.0) > 1.0:
        raise InputError(f'{where}: torque must be at most 1, got {known["torque"]!r}')
    if known.get('homing') is not None and not _is_number(known['homing']):
        raise InputError(f'{where}: homing must be a number of ticks, got {known["homing"]!r}')
    stops = known.pop('stops', None)
    if stops is not None:
        pair = isinstance(stops, list) and len(stops) == 2 and all(map(_is_number, stops))
        if not pair or not stops[0] < stops[1]:
            raise InputError(f'{where}: stops must be two positions [low, high], got {stops!r}')
        stops = float(stops[0]), float(stops[1])
    return JointProfile(name, shadows=tuple(shadows), stops=stops, **known)


def _known(values: Any, kind: Any, where: str, without: tuple[str, ...]) -> dict[str, Any]:
    """Return the entries of a mapping, all of which are fields of a dataclass. Raises InputError."""
    allowed = {field.name: field for field in fields(kind) if field.name not in without}
    if not isinstance(values, Mapping):
        raise InputError(f'{where} must be a mapping with {join_names(allowed)}, got {values!r}')
    for key in values:
        if key not in allowed:
            raise InputError(f'{where} has no {quoted(str(key))}; allowed: {join_names(allowed, str(key))}')
    for key, field in allowed.items():
        if key not in values and field.default is MISSING:
            raise InputError(f'{where} lacks {quoted(key)}')
    return dict(values)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
