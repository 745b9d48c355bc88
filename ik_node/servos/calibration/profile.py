# SPDX-License-Identifier: Apache-2.0
"""ArmProfile: the servos of an arm, read from a YAML file in config/servos or of the owner."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ik_node.errors import InputError, join_names, quoted
from ik_node.files import (
    fields,
    list_of,
    mapping_of,
    number,
    one_of,
    optional,
    read_file,
    switch,
    text,
    whole_number,
    wrong,
)
from ik_node.servos.bus.dynamixel import dynamixel
from ik_node.servos.bus.feetech import feetech
from ik_node.servos.bus.models import RADIANS_PER_TICK, model_named
from ik_node.share import share_path

PROTOCOLS = {'feetech': feetech, 'dynamixel': dynamixel}
LARGEST_ID = 252


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
        missing = not path.is_file()
    except (OSError, ValueError):
        missing = False  # read_file says why
    if missing:
        raise InputError(f'profile {quoted(given)} is neither a file nor one of {join_names(shipped, given)}')

    def check(name: str, value: Any) -> ArmProfile:
        return _profile(path.stem, PROFILE(name, value))

    profile: ArmProfile = read_file(path, 'profile', check)
    return profile


def _profile(name: str, values: Mapping[str, Any]) -> ArmProfile:
    joints = tuple(JointProfile(joint, **entry) for joint, entry in values['joints'].items())
    if not joints:
        raise InputError('joints must map the name of each joint to its servo')
    ids = [number for joint in joints for number in (joint.id, *joint.shadows)]
    twice = sorted({number for number in ids if ids.count(number) > 1})
    if twice:
        raise InputError(f'id {twice[0]} is given to more than one servo')
    protocol = values['protocol']
    for joint in joints:
        if model_named(joint.model).codec is not PROTOCOLS[protocol]:
            raise InputError(f'joint {quoted(joint.name)}: {joint.model} does not have protocol {protocol}')
    given = {key: value for key, value in values.items() if value is not None}
    return ArmProfile(name, **{**given, 'joints': joints})


def _model(name: str, value: Any) -> str:
    try:
        return model_named(text(name, value)).name
    except InputError as error:
        raise InputError(f'{name}: {error}') from None


def _stops(name: str, value: Any) -> tuple[float, float]:
    with suppress(InputError):
        low, high = list_of(number(), 2)(name, value)
        if low < high:
            return low, high
    raise wrong(name, 'two positions [low, high]', value)


JOINT = fields(
    {
        'id': whole_number(0, LARGEST_ID),
        'model': _model,
        'lerobot': text,
        'shadows': list_of(whole_number(0, LARGEST_ID)),
        'sign': one_of(1, -1),
        'unit': number(0.0, 1.0, above=True),
        'reversed': switch,
        'zero': optional(number()),
        'homing': optional(number()),
        'stops': optional(_stops),
        'gripper': switch,
        'full_turn': switch,
        'fastest': number(0.0, 1e3, above=True),
        'torque': number(0.0, 1.0, above=True),
        'mode': whole_number(0, 255),
    },
    required=('id', 'model'),
)
PROFILE = fields(
    {
        'protocol': one_of(*PROTOCOLS),
        'baud': whole_number(1, 10_000_000),
        'joints': mapping_of(JOINT),
        'robot': optional(text),
        'lerobot': optional(list_of(text)),
    },
    required=('protocol', 'baud', 'joints'),
)
