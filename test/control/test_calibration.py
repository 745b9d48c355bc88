"""Calibration: a driver whose signs and zeros differ from the URDF's."""

from dataclasses import replace

import numpy as np
import pytest
from control_harness import SETTINGS, Kept, Rig
from hypothesis import given, settings
from hypothesis import strategies as st
from small_arm import ARM_JOINTS, PARAMETERS, arm_urdf

from ik_node.control.outputs.calibration import Calibrated, Calibration
from ik_node.control.outputs.outputs import Outputs
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.robot.settings import ArmSettings
from ik_node.errors import InputError

FLIPPED = Calibration.read('yaw: -1, elbow: 1', '{yaw: 0.1, wrist: -0.3}')
NUMBERS = st.floats(-4.0, 4.0)


def test_a_driver_position_is_sign_times_position_plus_offset():
    positions, velocities = FLIPPED.commanded(['yaw', 'wrist', 'roll'], [0.5, 0.5, 0.5], [1.0, 1.0, 1.0])
    assert positions == pytest.approx([-0.4, 0.2, 0.5])
    assert velocities == pytest.approx([-1.0, 1.0, 1.0])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([1, -1]), min_size=5, max_size=5), st.lists(NUMBERS, min_size=5, max_size=5))
def test_what_is_commanded_and_measured_back_is_the_same(signs, offsets):
    calibration = Calibration.read(
        str(dict(zip(ARM_JOINTS, signs, strict=True))), str(dict(zip(ARM_JOINTS, offsets, strict=True)))
    )
    places = np.linspace(-2.0, 2.0, 5)
    out, _ = calibration.commanded(ARM_JOINTS, places, np.zeros(5))
    back = calibration.measured(dict(zip(ARM_JOINTS, out.tolist(), strict=True)))
    assert list(back.values()) == pytest.approx(places.tolist(), abs=1e-14)


def test_an_arm_with_another_calibration_does_not_jump_and_arrives(model):
    rig = Rig(model, measured=True)
    driver = Kept()
    driver.runs_plans = True
    rig.controller._outputs = Outputs([Calibrated(driver, FLIPPED)])
    rig.controller.set_limits(replace(SETTINGS, measured_timeout=0.0))
    start = {**dict.fromkeys(ARM_JOINTS, 0.2), 'yaw': 0.7}
    rig.measure(**FLIPPED.measured(start))
    first = rig.tick() and driver.samples[-1]
    assert dict(zip(first.names, first.positions.tolist(), strict=True)) == pytest.approx(start)
    assert rig.position('yaw') == pytest.approx(-0.6)
    rig.go(yaw=0.5)
    for _ in range(200):
        at = rig.tick()
        rig.measure(
            **FLIPPED.measured(dict(zip(at.names, driver.samples[-1].positions.tolist(), strict=True)))
        )
    last = driver.samples[-1]
    assert last.positions[last.names.index('yaw')] == pytest.approx(-0.4)
    (trajectory,) = (sample.trajectory for sample in driver.samples if sample.trajectory is not None)
    assert trajectory.positions[0] == pytest.approx([0.7, 0.2, 0.2, 0.2, 0.2])
    assert trajectory.positions[-1] == pytest.approx([-0.4, 0.2, 0.2, 0.2, 0.2])
    middle = trajectory.motion.sampled(np.linspace(0.0, trajectory.duration, 30))[1, 1:-1, 0]
    assert (middle < 0.0).all()
    assert trajectory.accelerations[:8, 0].min() < 0.0 < trajectory.accelerations[-2, 0]


@pytest.mark.parametrize(
    ('given', 'words'),
    [
        ({'joint_signs': 'yaw: 2'}, 'must give 1 or -1 to joint "yaw", got 2'),
        ({'joint_signs': 'yaw'}, "joint_signs must hold a number by joint, such as 'shoulder_pan: -1"),
        ({'joint_signs': 'yaw: true'}, 'must hold a number by joint'),
        ({'joint_offsets': 'yaw: .nan'}, 'a number up to 1e+09, got nan'),
        ({'joint_offsets': 'yaw: {'}, 'must hold a number by joint'),
        ({'joint_offsets': '[1, 2]'}, 'must hold a number by joint'),
        (
            {'joint_offsets': 'jaw: 1'},
            'names "jaw", which is not a movable joint of this robot; movable joints:',
        ),
    ],
)
def test_a_wrong_calibration_is_rejected(given, words):
    with pytest.raises(InputError) as error:
        ArmModel.build(arm_urdf(), ArmSettings(**PARAMETERS, **given))
    assert words in str(error.value)


def test_a_calibrated_output_is_done_when_its_output_is() -> None:
    for done in (False, True):
        output = Kept()
        output.done = lambda done=done: done
        assert Calibrated(output, FLIPPED).done() is done
