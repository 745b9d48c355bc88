# SPDX-License-Identifier: Apache-2.0
"""An arm holds its weight: it arrives, stays held, and hardly sinks; a wrong description harms little."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from rig import Rig, emulated, started
from virtual_time import VirtualBus

from ik_node.model.inertia import GRAVITY, Weight, link_inertias
from ik_node.model.urdf.description import load_description
from ik_node.model.urdf.reader import read_urdf
from ik_node.servos.arm.goals import MAX_LEAD, MAX_TRIM, Goals, Sag, Torques
from ik_node.servos.arm.registers import JointMeasurement
from ik_node.servos.arm.states import ArmState
from ik_node.servos.calibration.owner_zeros import factors_path, load_factors, store_factors
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.zeros import JointCalibration
from ik_node.servos.emulator.bus import weighing
from ik_node.servos.node import Calibrator
from ik_node.servos.settings import ServoSettings
from ik_node.share import share_path
from ik_node.startup.arguments import URDF

pytestmark = pytest.mark.slow

TEXT = load_description(share_path('urdf', 'so101_like.urdf.xacro'))
ROBOT = read_urdf(TEXT)
WEIGHT = Weight(ROBOT, TEXT)
PROFILE = read_profile('so101')
ARM = [joint for joint in PROFILE.joints if not joint.gripper]
TICK = ARM[0].unit
START = {'shoulder_pan': 0.2, 'shoulder_lift': 0.4, 'elbow_flex': -0.3, 'wrist_flex': 0.2, 'wrist_roll': 0.0}
POSES = [
    {**START, 'shoulder_lift': lift, 'elbow_flex': elbow, 'wrist_flex': wrist}
    for lift, elbow, wrist in (
        (0.8, -0.8, 0.5),
        (-0.2, 0.3, -0.4),
        (1.0, -0.2, 0.2),
        (-0.5, 0.8, 0.6),
        (0.5, 0.0, 0.0),
    )
]


def times(factor: float) -> Torques:
    return lambda positions: {name: factor * torque for name, torque in WEIGHT(positions).items()}


@contextlib.contextmanager
def weighed(
    gain: int = 32, torques: Torques | None = WEIGHT, heavier: float = 1.25, play: float = 0.0
) -> Iterator[Rig]:
    """Yield an arm with torque, heavier than its description."""
    with emulated() as bus:
        assert isinstance(bus, VirtualBus)
        bus.wire.weigh = weighing(PROFILE, bus.wire.servos, times(heavier))
        for joint in PROFILE.joints:
            bus.call('put', id=joint.id, address=21, size=1, value=gain, keep=True)
        for joint in ARM:
            bus.call('motor', id=joint.id, actual=2048 + START[joint.name] / TICK, play=play)
        with started(bus, torques=torques) as rig:
            rig.until(ArmState.PASSIVE)
            rig.switch_on()
            rig.clock.sleep(2.0)
            yield rig


def places(rig: Rig) -> dict[str, float]:
    """Where the joints really are."""
    state = rig.bus.state()
    return {joint.name: (state[joint.id]['actual'] - 2048) * TICK for joint in ARM}


def apart(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The largest distance of two poses [degrees]."""
    return max(abs(math.degrees(one[name] - other[name])) for name in one)


def go(rig: Rig, goal: Mapping[str, float], rest: float = 0.6) -> float:
    """Move to a goal within limits of speed, rest there [s]; return how far the arm is off [degrees]."""
    begin = places(rig)
    steps = max(round(math.radians(apart(begin, goal)) / 0.02), 10)
    for k in range(steps):
        share = (k + 1) / steps
        share = share**3 * (10 - 15 * share + 6 * share**2)
        rig.stream({name: begin[name] + share * (goal[name] - begin[name]) for name in goal}, 0.02)
    rig.stream(dict(goal), rest)
    return apart(places(rig), goal)


@pytest.mark.parametrize('gain', [32, 16])
def test_an_arm_arrives_stays_held_and_hardly_sinks_while_it_is_guided(gain):
    with weighed(gain) as rig:
        assert apart(places(rig), START) < 0.8  # switched on, a quarter heavier than described
        assert max(go(rig, pose) for pose in POSES) < 0.57  # 0.01 rad
        assert go(rig, POSES[0], 2.0) < 0.3
        place = places(rig)
        rig.arm.hold()
        rig.clock.sleep(1.0)
        rig.arm.clear()
        rig.clock.sleep(1.0)
        assert apart(places(rig), place) < 0.5
        for _ in range(150):
            rig.stream({name: rig.arm.snapshot.joints[name].position for name in START}, 0.02)
        assert apart(places(rig), place) < 8.0


def test_a_driver_that_starts_again_finds_the_arm_and_does_not_move_it():
    with weighed(16) as rig:
        go(rig, POSES[2], 2.0)
        place = places(rig)
        rig.bus.call('plug', on=False)
        rig.until(ArmState.CLOSED)
        rig.bus.call('plug', on=True)
        rig.until(ArmState.HOLDING)
        rig.clock.sleep(1.0)
        assert apart(places(rig), place) < 0.5


def test_it_pushes_no_harder_than_before_at_contact():
    with weighed() as rig:
        go(rig, POSES[4], 3.0)
        free, tick = rig.bus.state()[2]['load'], rig.tick('shoulder_lift')
        rig.bus.call('motor', id=2, blocked=[tick - 400, tick])
        rig.stream({**POSES[4], 'shoulder_lift': POSES[4]['shoulder_lift'] + 0.02}, 10.0)
        push = 2.5 * (rig.bus.state()[2]['load'] - free) / 0.3  # [N] at 0.3 m
        assert 0.5 < push <= 3.5


WRONG = {
    'in grams': times(1000.0),
    'not a number': times(math.nan),
    'the other way': times(-1.0),
    'too heavy': times(5.0),
}


@pytest.mark.parametrize('on', [True, False])
def test_the_weight_counts_only_where_it_is_to_be_compensated(on):
    settings = ServoSettings(compensate_sag=on, description=str(URDF / 'so101_like.urdf.xacro'))
    calibrating = Calibrator(read_profile('so101'), settings, lambda _: None, pytest.fail)
    assert (calibrating.torques is not None) is on


@pytest.mark.parametrize('torques', WRONG.values(), ids=WRONG.keys())
def test_a_wrong_description_moves_the_arm_by_little_and_is_found_out(torques):
    with weighed(torques=torques) as rig:
        assert apart(places(rig), START) < math.degrees(MAX_LEAD) + 2.0
        errors = [go(rig, pose, 1.0) for pose in POSES]
        assert max(errors) < math.degrees(MAX_LEAD + MAX_TRIM) + 2.0
        assert errors[-1] < 2.0  # no worse than without
        assert rig.arm.snapshot.warnings or 0.1 < rig.arm.factors['shoulder_lift'] < 0.4


def test_a_load_that_is_put_down_lifts_the_arm_by_little():
    with weighed() as rig:
        rig.bus.call('motor', id=2, weight=0.1)
        rig.bus.call('motor', id=3, weight=0.1)
        for pose in POSES:
            go(rig, pose)
        place = places(rig)
        for id in (2, 3):
            rig.bus.call('motor', id=id, weight=0.0)
        rig.stream(POSES[-1], 1.0)
        assert apart(places(rig), place) < 1.0
        assert max(go(rig, pose) for pose in POSES[:3]) < 1.0


def test_a_servo_that_needs_all_of_its_lead_is_named_and_gets_no_more():
    with weighed(4) as rig:
        go(rig, POSES[4])
        assert 'shoulder_lift' in rig.arm.snapshot.warnings
        assert all(abs(lead) <= MAX_LEAD and abs(trim) <= MAX_TRIM for lead, trim in rig.arm.snapshot.leads.values())


def test_no_lead_is_left_without_torque_nor_goes_beyond_a_limit():
    with weighed(16) as rig:
        calibration = rig.arm.calibration.joint('shoulder_lift')
        go(rig, {**START, 'shoulder_lift': calibration.lower + 0.005})
        assert rig.bus.state()[2]['goal'] >= calibration.tick(calibration.lower)
        assert 'limit' not in rig.arm.snapshot.reason
        rig.arm.set_torque(False)
        assert all(trim == 0.0 for _, trim in rig.arm.snapshot.leads.values())


@pytest.mark.parametrize(('load', 'stiction', 'gap'), [(0.0, 0.2, 1.0), (0.5, 0.08, 0.5), (0.9, 0.2, 1.0)])
def test_an_arm_with_friction_and_play_rests(load, stiction, gap):
    """A geared motor with stiction, back-EMF and play; 19.6 Nm/rad, softer than the driver thinks."""
    sag = Sag(lambda _: {'shoulder_lift': -0.8 * load}, {'shoulder_lift': 0.0307}, {})
    goals = Goals({'shoulder_lift': JointCalibration(ARM[1], None, 0.0, '', -3.0, 3.0, {}, (), ())}, sag)
    goals.begin({'shoulder_lift': 0})
    motor = joint = motor_speed = joint_speed = 0.0
    seen, dt, gap = [], 2e-4, math.radians(gap)
    for cycle in range(600):
        share = min(cycle / 100, 1.0)
        command = 0.6 * share**3 * (10 - 15 * share + 6 * share**2)
        tick = round(joint / TICK)
        measured = JointMeasurement(tick, tick * TICK, joint_speed, 0.0, 12.0, 30.0)
        goals.follow({'shoulder_lift': command}, {'shoulder_lift': measured}, 0.01, 1.0)
        goal, before = round(goals.sent['shoulder_lift'] / TICK), tick
        for step in range(50):
            if step % 5 == 0:
                now = round(joint / TICK)
                error, before, moved = goal - now, now, now - before
                drive = 2.5 * min(max(0.012 * error * (abs(error) > 1) - 0.02 * moved, -1.0), 1.0)
            bend = motor - joint
            gears = 0.0
            if abs(bend) > gap / 2:
                gears = 100.0 * (bend - math.copysign(gap / 2, bend)) + 0.3 * (motor_speed - joint_speed)
                gears = max(gears, 0.0) if bend > 0 else min(gears, 0.0)
            pull = drive - 0.5 * motor_speed - gears
            motor_speed = _rubbed(motor_speed, pull, 0.012, stiction, dt)
            joint_speed = _rubbed(joint_speed, gears - load, 0.03, 0.03, dt)
            motor, joint = motor + motor_speed * dt, joint + joint_speed * dt
        seen.append(joint)
    rest = np.degrees(seen[400:])
    assert np.ptp(rest) < 0.13
    assert abs(rest[-1] - math.degrees(0.6)) < 0.4


def _rubbed(speed: float, torque: float, inertia: float, stiction: float, dt: float) -> float:
    """Return the speed after dt under a torque and Coulomb friction."""
    if abs(speed) < 1e-4 and abs(torque) <= stiction:
        return 0.0
    way = math.copysign(1.0, speed if abs(speed) >= 1e-4 else torque)
    after = speed + (torque - 0.75 * stiction * way) / inertia * dt
    return 0.0 if after * speed < 0.0 else after


def test_the_torque_is_the_slope_of_the_potential_energy():
    inertias = link_inertias(ROBOT, TEXT)

    def energy(positions):
        poses = ROBOT.link_poses(positions)
        weighty = [(inertias[name], pose) for name, pose in poses.items() if name not in ('base_link', 'tool0')]
        return sum(GRAVITY * i.mass * (pose[:3, :3] @ i.centre + pose[:3, 3])[2] for i, pose in weighty)

    for name, torque in WEIGHT(START).items():
        up, down = ({**START, name: START.get(name, 0.0) + step} for step in (1e-5, -1e-5))
        assert torque == pytest.approx((energy(down) - energy(up)) / 2e-5, abs=1e-6)


@pytest.mark.parametrize('text', ['', '- 1', 'a: .nan', 'a: [', 'a: x', '{b: .inf}'])
def test_what_was_learned_is_stored_and_a_damaged_file_counts_as_nothing(text, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    path = factors_path('so101', 'usb')
    assert load_factors(path) == {}
    store_factors(path, {'shoulder_lift': 1.2345})
    assert load_factors(path) == {'shoulder_lift': 1.234}
    path.write_text(text)
    assert load_factors(path) == {}
