# SPDX-License-Identifier: Apache-2.0
"""From ticks to joint positions: the zero of each joint, chosen among its estimates, and its limits.

q = sign (tick - zero) unit. What LeRobot calls 0 degrees is the middle of the recorded range, which is not
the zero of a URDF: the elbow of an SO-101 is 6.9 degrees off. Where the whole range between the stops was
recorded, the stops of the CAD model give the zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ik_node.checks import yaml_number
from ik_node.errors import InputError, join_names, quoted
from ik_node.servos.bus.models import TICKS_PER_TURN
from ik_node.servos.calibration.profile import ArmProfile, JointProfile

from .recorded import Recorded, is_same

# Numbers by joint, as text of parameters and command lines: 'wrist_roll=0, elbow_flex=0.1'.
#
# Not with the colon of YAML: `ros2 param set` and rcl take 'wrist_roll: 0' for a mapping, and reject it. A
# colon is read as well, where it gets here.

PART = re.compile(r'(.*)[=:](.*)', re.DOTALL)


def read_by_joint(text: str) -> list[tuple[str, float | None]]:
    """Return name and number of each part of text, in its order; None for what is not a number."""
    found: list[tuple[str, float | None]] = []
    for part in filter(None, (part.strip() for part in text.split(','))):
        match = PART.fullmatch(part)
        name, value = match.groups() if match else (part, '')
        found.append((name.strip(), yaml_number(value.strip())))
    return found


# Three estimates of the zero of a joint from what was recorded of it, and warnings about them.
#
# stops: the stops of the CAD model are at the ends of the recorded range. homing: the joint was held at
# zero, by eye, when LeRobot made that pose tick 2047; or the factory has set it. lerobot: the middle of
# the recorded range, which LeRobot calls 0 degrees.

STOPS, HOMING, LEROBOT = 'stops', 'homing', 'lerobot'
ZERO_FROM = (STOPS, HOMING, LEROBOT)
OWNER = 'owner'

SPANS_AGREE = math.radians(3.0)  # recorded and CAD span: then the whole range was recorded
MAX_SPREAD = math.radians(4.0)  # two estimates of a zero
MIN_SPAN, MAX_SPAN = 0.6, 1.05  # of a recorded range, as shares of that of the CAD model


def estimates_of(joint: JointProfile, recorded: Recorded | None) -> dict[str, float]:
    """Return the estimates [ticks] of the zero that can be made, by their names."""
    found: dict[str, float] = {}
    if recorded is not None and recorded.is_range and joint.stops is not None:
        low, high = sorted(joint.sign * stop / joint.unit for stop in joint.stops)  # [ticks] from zero
        if joint.gripper:  # its spans vary with the jaws, but it is always recorded closed
            closed = recorded.low if joint.sign > 0 else recorded.high
            found[STOPS] = closed - joint.sign * joint.stops[0] / joint.unit
        elif abs((recorded.high - recorded.low) - (high - low)) * joint.unit <= SPANS_AGREE:
            found[STOPS] = recorded.middle - (low + high) / 2.0
    if joint.zero is not None:
        found[HOMING] = joint.zero
    elif joint.homing is not None and _is_calibrated(joint, recorded):
        found[HOMING] = joint.homing
    if recorded is not None and (joint.zero is not None or _is_calibrated(joint, recorded)):
        found[LEROBOT] = recorded.middle
    return found


def best_estimate(joint: JointProfile, estimates: Mapping[str, float], zero_from: str) -> str | None:
    """Return the name of the estimate to take, None if there is none."""
    order = {STOPS: (STOPS, HOMING), HOMING: (HOMING,), LEROBOT: (LEROBOT,)}[zero_from]
    if joint.gripper:  # LeRobot has no degrees of it
        order = (STOPS, HOMING)
    return next((name for name in order if name in estimates), None)


def warnings_of(
    joint: JointProfile,
    recorded: Recorded | None,
    file: Recorded | None,
    estimates: Mapping[str, float],
    source: str | None,
    zero: float | None,
) -> list[str]:
    """Return what the owner should look at. source, zero: what was chosen. file: what a file has recorded."""
    found: list[str] = []
    if recorded is None:
        return found
    if file is not None and not is_same(recorded, file):
        found.append(f'the servo has {recorded.text()}, the file {file.text()}: those of the servo are used')
    if recorded.multi_turn:
        found.append('the servo counts beyond one turn (bit 4 of phase): calibrate with LeRobot 0.6.0 or later')
    found += _warnings_of_range(joint, recorded)
    if source == HOMING and joint.stops is not None and joint.zero is None and recorded.is_range:
        found.append(
            'the recorded range is not the full range between the stops, so zero is taken from the pose held '
            'during calibration'
        )
    # The middle differs on every good calibration, by the CAD model: no warning, unless it is the choice.
    compared = {name: tick for name, tick in estimates.items() if name != LEROBOT}
    if source is not None and zero is not None:
        compared[source] = zero
    spread = (max(compared.values()) - min(compared.values())) * joint.unit if compared else 0.0
    if spread > MAX_SPREAD:
        shown = ', '.join(f'{name} {tick:.0f}' for name, tick in compared.items())
        found.append(f'estimates of zero differ by {math.degrees(spread):.1f} degrees: {shown}')
    return found


def _is_calibrated(joint: JointProfile, recorded: Recorded | None) -> bool:
    if recorded is None:
        return False
    return recorded.is_range or (joint.full_turn and not recorded.as_delivered)


def _warnings_of_range(joint: JointProfile, recorded: Recorded) -> list[str]:
    if joint.zero is not None and joint.stops is None:
        return []  # factory limits need no record
    if recorded.as_delivered:
        return ['the servo is as delivered, without a recorded range: calibrate the arm']
    if joint.full_turn:
        return []
    if not recorded.is_range:
        return [
            f'the recorded range {recorded.low} to {recorded.high} contains the step from 4095 to 0: '
            'calibrate again, with the joint held in mid-range'
        ]
    if joint.stops is not None:
        share = (recorded.high - recorded.low) * joint.unit / (joint.stops[1] - joint.stops[0])
        if not MIN_SPAN <= share <= MAX_SPAN:
            return [f'the recorded range is {100 * share:.0f} % of that between the stops: record it again']
    return []


MARGIN = 8  # ticks that commands keep from the ends of the recorded range
STEP_MARGIN = 32  # ticks that commands keep from the step from 4095 to 0: beyond it the servo turns back
ASIDE = 0.5  # [rad] between the middles of stops and URDF limits: more, and the zero is another pose
LEROBOT_TURN = TICKS_PER_TURN - 1  # ticks that LeRobot takes for 360 degrees


@dataclass(frozen=True)
class JointCalibration:
    """From the ticks of one servo to the position of its joint.

    zero [ticks] and the estimate it is from, or OWNER. recorded: what is known of the range.
    lower, upper [rad or m]: the joint may be commanded from and to, the stricter limits of recorded range and
    URDF. estimates [ticks]: by name.
    warnings: what the owner should look at. notes: what was decided.
    """

    profile: JointProfile
    recorded: Recorded | None
    zero: float
    source: str
    lower: float
    upper: float
    estimates: Mapping[str, float]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the joint."""
        return self.profile.name

    def position(self, tick: float) -> float:
        """Return the position [rad or m] at a tick."""
        return _position(self.profile, self.zero, tick)

    def tick(self, position: float) -> int:
        """Return the tick nearest to a position [rad or m], inside the limits or not."""
        return round(_tick(self.profile, self.zero, position))


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

    def joint(self, name: str) -> JointCalibration:
        """Return the calibration of a joint. Raises InputError."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise InputError(f'the calibration has no {quoted(name)}, but {join_names(self.profile.names, name)}')

    def positions(self, ticks: Mapping[str, float]) -> dict[str, float]:
        """Return the positions [rad or m] of joints at ticks. Raises InputError for other names."""
        return {name: self.joint(name).position(tick) for name, tick in ticks.items()}

    def from_lerobot(self, degrees: Mapping[str, float]) -> dict[str, float]:
        """Return the positions [rad] of joints for LeRobot's degrees. Raises InputError."""
        found = {}
        for name, angle in degrees.items():
            joint = self.joint(name)
            found[name] = joint.position(_lerobot_zero(joint) + angle * LEROBOT_TURN / 360.0)
        return found

    def to_lerobot(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return LeRobot's degrees for the positions [rad] of joints. Raises InputError."""
        found = {}
        for name, position in positions.items():
            joint = self.joint(name)
            tick = _tick(joint.profile, joint.zero, position)
            found[name] = (tick - _lerobot_zero(joint)) * 360.0 / LEROBOT_TURN
        return found


def read_zeros(text: str) -> dict[str, float]:
    """Return the ticks of zero by joint, of a parameter such as 'elbow_flex=2126, wrist_roll=2050'.

    Raises InputError.
    """
    found: dict[str, float] = {}
    for name, tick in read_by_joint(text):
        if not name or tick is None or not abs(tick) <= 2 * TICKS_PER_TURN or name in found:
            raise InputError(
                f"zeros must be ticks by joint, each once, such as 'elbow_flex=2126, wrist_roll=2050', got {text!r}"
            )
        found[name] = tick
    return found


def calibrate(
    profile: ArmProfile,
    recorded: Mapping[str, Recorded],
    zero_from: str = 'stops',
    zeros: Mapping[str, float] | None = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
    file: Mapping[str, Recorded] | None = None,
) -> ArmCalibration:
    """Return the calibration of an arm.

    recorded: in the memory of each servo, by joint. file: in LeRobot's file, by joint; it counts for joints
    whose memory is not given. zero_from: one of ZERO_FROM, the estimate to prefer. zeros [ticks]: by joint,
    from the owner; they count before the estimates. limits [rad or m]: those of the URDF, by joint; it may
    have further ones. Raises InputError that names all joints whose zero cannot be known.
    """
    given, bounds, written = zeros or {}, limits or {}, file or {}
    if zero_from not in ZERO_FROM:
        raise InputError(f'zero_from must be one of {", ".join(ZERO_FROM)}, got {zero_from!r}')
    for what, names in (('zeros:', given), ('the memory of servos:', recorded), ('the file:', written)):
        check_names(what, names, profile)
    joints: list[JointCalibration] = []
    problems: dict[str, list[str]] = {}  # names of joints by what is wrong
    for joint in profile.joints:
        name = joint.name
        try:
            known = recorded.get(name, written.get(name))
            joints.append(_calibrated(joint, known, written.get(name), zero_from, given.get(name), bounds.get(name)))
        except InputError as error:
            problems.setdefault(str(error), []).append(name)
    if problems:
        raise InputError('; '.join(f'joint {join_names(names)}: {text}' for text, names in problems.items()))
    return ArmCalibration(profile, tuple(joints))


def check_names(what: str, names: Iterable[str], profile: ArmProfile) -> None:
    """Raise InputError for a name that no joint of an arm has; what: has the names, for the message."""
    for name in names:
        if name not in profile.names:
            raise InputError(f'{what} {quoted(name)} is not one of {join_names(profile.names, name)}')


def _calibrated(
    joint: JointProfile,
    recorded: Recorded | None,
    file: Recorded | None,
    zero_from: str,
    given: float | None,
    limits: tuple[float, float] | None,
) -> JointCalibration:
    if recorded is not None and recorded.reversed not in (None, joint.reversed):
        raise InputError(
            f'bit 0 of drive_mode in servo {joint.id} must be {int(joint.reversed)}, as the profile has it: '
            'the joint would turn the wrong way'
        )
    estimates = estimates_of(joint, recorded)
    source = OWNER if given is not None else best_estimate(joint, estimates, zero_from)
    zero = given if given is not None else estimates.get(source or '')
    warnings = [*warnings_of(joint, recorded, file, estimates, source, zero), *_other_zero(joint, limits)]
    if source is None or zero is None:
        why = f' ({"; ".join(text.partition(":")[0] for text in warnings)})' if warnings else ''
        raise InputError(
            f'the zero is not known{why}: calibrate the arm, or hold it in a pose that you know, given as '
            'known_pose, and call set_zero'
        )
    lower, upper, notes = _limits(joint, recorded, zero, limits)
    notes = [f'zero at tick {zero:.1f} of 4096 (zero_from: {source})', *notes]
    return JointCalibration(joint, recorded, zero, source, lower, upper, estimates, tuple(warnings), tuple(notes))


def _other_zero(joint: JointProfile, urdf: tuple[float, float] | None) -> list[str]:
    """Return a warning if the limits of a URDF are so far beside the stops that its zero is another pose."""
    if urdf is None or joint.stops is None or joint.gripper:
        return []
    aside = (sum(urdf) - sum(joint.stops)) / 2.0
    if abs(aside) <= ASIDE:
        return []
    return [
        f'the limits of the URDF, {urdf[0]:.2f} to {urdf[1]:.2f}, are {abs(aside):.2f} beside the stops, '
        f'{joint.stops[0]:.2f} to {joint.stops[1]:.2f}: its zero is probably another pose, so the tool '
        'misses its goals. For an SO-101 use so101_new_calib.urdf'
    ]


def _limits(
    joint: JointProfile, recorded: Recorded | None, zero: float, urdf: tuple[float, float] | None
) -> tuple[float, float, list[str]]:
    """Return lower, upper [rad or m] and notes. Raises InputError if no position is left."""
    if recorded is not None and recorded.is_range:
        low, high = recorded.low, recorded.high
        margin, origin = min(MARGIN, (high - low) // 4), 'the recorded range'
    else:
        low, high = 0, TICKS_PER_TURN - 1
        margin, origin = STEP_MARGIN, 'one turn of the servo'
    lower, upper = sorted(_position(joint, zero, tick) for tick in (low + margin, high - margin))
    if origin != 'the recorded range' and joint.stops is not None:
        lower, upper, origin = max(lower, joint.stops[0]), min(upper, joint.stops[1]), 'the stops'
    if urdf is None:
        return lower, upper, []
    strict_lower, strict_upper = max(lower, urdf[0]), min(upper, urdf[1])
    if strict_lower > strict_upper:
        raise InputError(
            f'{origin} allows {lower:.3f} to {upper:.3f}, the URDF {urdf[0]:.3f} to {urdf[1]:.3f}: its zero '
            f'at tick {zero:.0f} must be wrong'
        )
    if (strict_lower, strict_upper) == urdf:
        return *urdf, []
    note = f'limits {strict_lower:.3f} to {strict_upper:.3f} by {origin}'
    note += f'; the URDF has {urdf[0]:.3f} to {urdf[1]:.3f}'
    return strict_lower, strict_upper, [note]


def _position(joint: JointProfile, zero: float, tick: float) -> float:
    return joint.sign * (tick - zero) * joint.unit


def _tick(joint: JointProfile, zero: float, position: float) -> float:
    return zero + joint.sign * position / joint.unit


def _lerobot_zero(joint: JointCalibration) -> float:
    """Return the tick of LeRobot's 0 degrees. Raises InputError if LeRobot has no degrees of the joint."""
    if joint.profile.gripper:
        raise InputError(f'joint {quoted(joint.name)} is a gripper, for which LeRobot has no degrees')
    if joint.recorded is None:
        raise InputError(f'no range of joint {quoted(joint.name)} is known, so LeRobot has no degrees for it')
    return joint.recorded.middle
