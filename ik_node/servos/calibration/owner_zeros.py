# SPDX-License-Identifier: Apache-2.0
"""Files of the user for one arm: zeros that its owner has set, and what its driver has learned of its sag."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from ik_node.checks import yaml_number
from ik_node.errors import InputError, join_names, quoted
from ik_node.files import anything, fields, mapping_of, number, read_file, whole_number, write_file
from ik_node.servos.bus.models import TICKS_PER_TURN, model_named
from ik_node.servos.calibration.profile import ArmProfile

from .recorded import Recorded

LEARNED = '# Lead that the load of each joint takes, as a share of what the description says.\n'
HEADER = '# Ticks at which the joints of this arm are at zero, and the homing offsets of the servos then.\n'


@dataclass(frozen=True)
class OwnerZero:
    """The tick at which a joint is at zero while its servo has this homing offset [ticks]."""

    tick: float
    homing_offset: int


ZEROS = mapping_of(fields({'tick': number(), 'homing_offset': whole_number()}, required=('tick', 'homing_offset')))


def zeros_path(profile: str, arm: str = '') -> Path:
    """Return the file for an arm; arm: what tells it from others of the profile, such as a serial number."""
    home = Path(os.environ.get('XDG_CONFIG_HOME') or '~/.config').expanduser()
    name = re.sub(r'[^\w.-]+', '_', f'{profile}-{arm}' if arm else profile)
    return home / 'ik_node' / 'servos' / f'{name}.yaml'


def factors_path(profile: str, arm: str = '') -> Path:
    """Return the file for what was learned of the sag of an arm, see zeros_path."""
    return zeros_path(profile, arm).with_suffix('.sag.yaml')


def owner_zeros(
    profile: ArmProfile,
    positions: Mapping[str, float],
    ticks: Mapping[str, float],
    recorded: Mapping[str, Recorded],
) -> dict[str, OwnerZero]:
    """Return the zeros by joint for an arm that stands at positions [rad or m] which its owner knows.

    ticks: measured there. recorded: in the memory of the servos. Raises InputError for joints that the
    profile does not have or that were not measured, and for positions more than a turn away.
    """
    joints, found = {joint.name: joint for joint in profile.joints}, {}
    for name, position in positions.items():
        if name not in joints:
            raise InputError(f'{quoted(name)} is not one of {join_names(joints, name)}')
        joint = joints[name]
        if name not in ticks or name not in recorded:
            raise InputError(f'servo {joint.id} of joint {quoted(name)} does not answer')
        if not abs(position) <= TICKS_PER_TURN * joint.unit:
            raise InputError(
                f'the position of {quoted(name)} must be from {-TICKS_PER_TURN * joint.unit:.3g} to '
                f'{TICKS_PER_TURN * joint.unit:.3g}, got {position}'
            )
        tick = ticks[name] - joint.sign * position / joint.unit
        found[name] = OwnerZero(tick, recorded[name].homing_offset)
    return found


def ticks_now(
    profile: ArmProfile, zeros: Mapping[str, OwnerZero], recorded: Mapping[str, Recorded]
) -> dict[str, float]:
    """Return the ticks of zero by joint under the homing offsets that the servos have now.

    A calibration changes them, and with them every tick. Raises InputError for unknown joints and offsets.
    """
    joints, found = {joint.name: joint for joint in profile.joints}, {}
    for name, zero in zeros.items():
        if name not in joints:
            raise InputError(f'zeros: {quoted(name)} is not one of {join_names(joints, name)}')
        if name not in recorded:
            raise InputError(f'the homing offset of joint {quoted(name)} is not known')
        now = recorded[name]
        shift = model_named(joints[name].model).homing_sign * (now.homing_offset - zero.homing_offset)
        tick = zero.tick + shift
        if shift:  # ticks begin again after a turn
            tick -= round((tick - now.middle) / TICKS_PER_TURN) * TICKS_PER_TURN
        found[name] = tick
    return found


def load_zeros(path: Path) -> dict[str, OwnerZero]:
    """Return the zeros by joint in the file; none if there is no such file. Raises InputError."""
    try:
        entries = read_file(path, 'zeros', ZEROS)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise InputError(f'{error}. Remove this file and set the zeros again') from None
    return {name: OwnerZero(**entry) for name, entry in entries.items()}


def store_zeros(path: Path, zeros: Mapping[str, OwnerZero]) -> None:
    """Write the zeros by joint, whole or not at all; those of other joints stay. Raises InputError."""
    known = {name: asdict(zero) for name, zero in {**load_zeros(path), **zeros}.items()}
    write_file(path, HEADER + yaml.safe_dump(known, sort_keys=False))


def load_factors(path: Path) -> dict[str, float]:
    """Return what was learned of the sag by joint, see arm.sag; what cannot be read counts as not learned."""
    with suppress(InputError):
        values = read_file(path, 'sag', mapping_of(anything))
        numbers = {name: yaml_number(entry) for name, entry in values.items()}
        return {name: one for name, one in numbers.items() if one is not None and math.isfinite(one)}
    return {}


def store_factors(path: Path, factors: Mapping[str, float]) -> None:
    """Write what was learned of the sag by joint, whole or not at all. Raises InputError."""
    rounded = {name: round(factor, 3) for name, factor in factors.items()}
    write_file(path, LEARNED + yaml.safe_dump(rounded))
