# SPDX-License-Identifier: Apache-2.0
"""The zero of each joint: three estimates from what was recorded, one choice, limits and warnings.

q = sign (tick - zero) unit. What LeRobot calls 0 degrees is the middle of the recorded range, which is not
the zero of a URDF: the elbow of an SO-101 is 6.9 degrees off. Where the whole range between the stops was
recorded, the stops of the CAD model give the zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ik_node.checks import yaml_number
from ik_node.errors import InputError, join_names, quoted
from ik_node.servos.calibration.lerobot_file import Recorded
from ik_node.servos.calibration.profile import ArmProfile, JointProfile

TICKS = 4096  # of a turn
SPANS_AGREE = math.radians(3.0)  # recorded and CAD span: then the whole range was recorded
APART = math.radians(4.0)  # two estimates of a zero
LEAST_SPAN, MOST_SPAN = 0.6, 1.05  # of a recorded range, as shares of that of the CAD model
MARGIN = 8  # ticks that commands keep from the ends of the recorded range
ZERO_FROM = ('stops', 'homing', 'lerobot')
OWNER = 'owner'


@dataclass(frozen=True)
class JointCalibration:
    """From the ticks of one servo to the position of its joint.

    zero [ticks] and from which estimate. low, high [ticks]: the range in which the joint may be commanded.
    lower, upper [rad or m]: the stricter limits of that range and the URDF. estimates [ticks]: by name.
    warnings: what the owner should look at. notes: what was decided.
    """

    profile: JointProfile
    zero: float
    source: str
    low: int
    high: int
    lower: float
    upper: float
    estimates: Mapping[str, float]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the joint."""
        return self.profile.name

    def position(self, tick: float) -> float:
        """Return the position [rad or m] at a tick."""
        return self.profile.sign * (tick - self.zero) * self.profile.unit

    def tick(self, position: float) -> int:
        """Return the tick nearest to a position [rad or m], inside the limits or not."""
        return round(self.zero + self.profile.sign * position / self.profile.unit)


@dataclass(frozen=True)
class ArmCalibration:
    """The calibration of every joint, in the order of the profile."""

    profile: ArmProfile
    joints: tuple[JointCalibration, ...]

    @property
    def warnings(self) -> list[str]:
        """All warnings, each with its joint."""
        return [f'{joint.name}: {text}' for joint in self.joints for text in joint.warnings]

    @property
    def notes(self) -> list[str]:
        """All decisions, each with its joint."""
        return [f'{joint.name}: {text}' for joint in self.joints for text in joint.notes]

    def positions(self, ticks: Mapping[str, float]) -> dict[str, float]:
        """Return positions [rad or m] of the joints that ticks names."""
        return {joint.name: joint.position(ticks[joint.name]) for joint in self.joints if joint.name in ticks}

    def from_lerobot(self, degrees: Mapping[str, float]) -> dict[str, float]:
        """Return positions [rad or m] for LeRobot's degrees, which count from the middle of the range."""
        found = {}
        for joint in self.joints:
            if joint.name in degrees:
                ticks = degrees[joint.name] * (TICKS - 1) / 360.0
                found[joint.name] = joint.position(joint.estimates['lerobot'] + ticks)
        return found

    def to_lerobot(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return LeRobot's degrees for positions [rad or m]."""
        found = {}
        for joint in self.joints:
            if joint.name in positions:
                tick = joint.zero + joint.profile.sign * positions[joint.name] / joint.profile.unit
                found[joint.name] = (tick - joint.estimates['lerobot']) * 360.0 / (TICKS - 1)
        return found


def read_zeros(text: str) -> dict[str, float]:
    """Return the ticks of zero by joint, of a parameter such as 'elbow_flex: 2126, wrist_roll: 2050'.

    Raises InputError.
    """
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(','))):
        name, colon, value = (item.strip() for item in part.partition(':'))
        tick = yaml_number(value)
        if not (name and colon) or tick is None or not abs(tick) <= 2 * TICKS:
            raise InputError(f"zeros must be ticks by joint such as 'elbow_flex: 2126', got {text!r}")
        found[name] = tick
    return found


def calibrate(
    profile: ArmProfile,
    recorded: Mapping[str, Recorded],
    zero_from: str = 'stops',
    zeros: Mapping[str, float] | None = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> ArmCalibration:
    """Return the calibration of an arm.

    recorded: of each joint, from the memory of its servo or LeRobot's file; a joint without has all ticks.
    zero_from: one of ZERO_FROM. zeros [ticks]: by joint, from the owner; they count before the estimates.
    limits [rad or m]: those of the URDF, by joint. Raises InputError for joints whose zero is not known.
    """
    given, bounds = zeros or {}, limits or {}
    if zero_from not in ZERO_FROM:
        raise InputError(f'zero_from must be one of {", ".join(ZERO_FROM)}, got {zero_from!r}')
    for names, what in ((given, 'zeros'), (recorded, 'the calibration')):
        unknown = [name for name in names if name not in profile.names]
        if unknown and what == 'zeros':
            raise InputError(
                f'zeros names {quoted(unknown[0])}; joints: {join_names(profile.names, unknown[0])}'
            )
    joints = tuple(
        _calibrated(joint, recorded.get(joint.name), zero_from, given.get(joint.name), bounds.get(joint.name))
        for joint in profile.joints
    )
    return ArmCalibration(profile, joints)


def estimates_of(joint: JointProfile, recorded: Recorded | None) -> dict[str, float]:
    """Return the estimates [ticks] of the zero by name: those of ZERO_FROM that can be made."""
    found = {}
    if recorded is not None and joint.stops is not None:
        low, high = joint.stops
        if joint.homing is None:  # a gripper: it is recorded closed first
            found['stops'] = recorded.low - joint.sign * low / joint.unit
        elif _whole_range(joint, recorded):
            middle = (recorded.low + recorded.high) / 2.0
            found['stops'] = middle - joint.sign * (low + high) / 2.0 / joint.unit
    if joint.homing is not None:
        found['homing'] = joint.homing
    if recorded is not None:
        found['lerobot'] = (recorded.low + recorded.high) / 2.0
    return found


def _whole_range(joint: JointProfile, recorded: Recorded) -> bool:
    assert joint.stops is not None
    span = (recorded.high - recorded.low) * joint.unit
    return abs(span - (joint.stops[1] - joint.stops[0])) <= SPANS_AGREE


def _calibrated(
    joint: JointProfile,
    recorded: Recorded | None,
    zero_from: str,
    given: float | None,
    limits: tuple[float, float] | None,
) -> JointCalibration:
    estimates = estimates_of(joint, recorded)
    order = (
        ['lerobot'] if zero_from == 'lerobot' else ['stops', 'homing'] if zero_from == 'stops' else ['homing']
    )
    if joint.homing is None and zero_from != 'lerobot':
        order = ['stops']
    source = OWNER if given is not None else next((name for name in order if name in estimates), '')
    if not source:
        raise InputError(
            f'the zero of joint {quoted(joint.name)} is not known: calibrate the arm, or hold it in a pose '
            'that you know and store that with set_zero'
        )
    zero = estimates[source] if given is None else given
    low, high = (0, TICKS - 1) if recorded is None or joint.full_turn else (recorded.low, recorded.high)
    margin = 0 if joint.full_turn else min(MARGIN, (high - low) // 4)
    found = JointCalibration(joint, zero, source, low + margin, high - margin, 0.0, 0.0, estimates)
    ends = sorted((found.position(found.low), found.position(found.high)))
    lower, upper = ends
    notes = [f'zero at tick {zero:.1f}, from {"what its owner has set" if source == OWNER else source}']
    if limits is not None:
        lower, upper = max(lower, limits[0]), min(upper, limits[1])
        if lower > upper:
            raise InputError(
                f'joint {quoted(joint.name)} can be from {ends[0]:.3f} to {ends[1]:.3f}, the URDF allows '
                f'{limits[0]:.3f} to {limits[1]:.3f}: its zero must be wrong'
            )
        if (lower, upper) != limits:
            notes.append(
                f'limits {lower:.3f} to {upper:.3f}, as recorded; the URDF has {limits[0]:.3f} to '
                f'{limits[1]:.3f}'
            )
    warnings = tuple(_warnings(joint, recorded, estimates, zero_from, source))
    return replace(found, lower=lower, upper=upper, warnings=warnings, notes=tuple(notes))


def _warnings(
    joint: JointProfile,
    recorded: Recorded | None,
    estimates: Mapping[str, float],
    zero_from: str,
    source: str,
) -> list[str]:
    found = []
    if zero_from == 'stops' and source == 'homing' and joint.stops is not None:
        found.append('the recorded range is not that between the stops; zero is where the arm was held')
    fair = {name: tick for name, tick in estimates.items() if name != 'lerobot'}
    if source in estimates:
        fair[source] = estimates[source]
    apart = (
        (max(fair.values()) - min(fair.values())) * joint.unit if fair and joint.homing is not None else 0.0
    )
    if apart > APART:
        shown = ', '.join(f'{name} {tick:.0f}' for name, tick in fair.items())
        found.append(f'estimates of zero differ by {math.degrees(apart):.1f} degrees: {shown}')
    if recorded is None or joint.full_turn:
        return found
    if joint.stops is not None:
        share = (recorded.high - recorded.low) * joint.unit / (joint.stops[1] - joint.stops[0])
        if not LEAST_SPAN <= share <= MOST_SPAN:
            found.append(
                f'the recorded range is {100 * share:.0f} % of that between the stops: record it again'
            )
    if recorded.low <= 0 or recorded.high >= TICKS - 1:
        found.append(
            'the recorded range contains the step from 4095 to 0: calibrate again, held in mid-range'
        )
    return found


def differences(
    memory: Mapping[str, Recorded], file: Mapping[str, Recorded], names: Sequence[str]
) -> list[str]:
    """Return in which joints the memory of the servos differs from a calibration file."""
    found = []
    for name in names:
        if name in memory and name in file and memory[name] != file[name]:
            found.append(
                f'{name}: the servo has range {memory[name].low} to {memory[name].high} and offset '
                f'{memory[name].homing_offset}, the file {file[name].low} to {file[name].high} and '
                f'{file[name].homing_offset}'
            )
    return found
