# SPDX-License-Identifier: Apache-2.0
"""Measurements of joints, whatever else is measured beside them."""

from __future__ import annotations

import pytest
from small_arm import ARM_JOINTS, arm_urdf

from ik_node.control.joints.feedback import MOST_JOINTS, Feedback
from ik_node.model.joint_set import JointSet
from ik_node.model.urdf.reader import read_urdf


def test_a_thousand_joints_of_others_do_not_keep_the_arm_from_being_measured() -> None:
    feedback = Feedback()
    feedback.take({f'other{k}': 0.0 for k in range(MOST_JOINTS)}, 0.0, 0.0)
    feedback.take({'joint1': 0.5, 'joint2': 0.25}, 1.0, 1.0)
    assert feedback.fresh(0.5) == {'joint1': 0.5, 'joint2': 0.25}
    feedback.take({f'more{k}': 0.0 for k in range(MOST_JOINTS - 2)}, 1.1, 1.1)
    assert feedback.fresh(0.0)['joint1'] == 0.5, 'those measured longest ago are forgotten first'
    assert len(feedback.fresh(0.0)) == MOST_JOINTS


@pytest.mark.parametrize(
    ('arrived', 'says', 'not_said'),
    [
        ([f'arm_1/{name}' for name in ARM_JOINTS], '"yaw" by "arm_1/yaw"', 'no publisher'),
        ([name.upper() for name in ARM_JOINTS], '"yaw" by "YAW"', ''),
        ([f'{name}_joint' for name in ARM_JOINTS], '"yaw" by "yaw_joint"', ''),
        (['motor_1', 'motor_2'], 'none of which is a joint', 'did you mean'),
        (['yaw', 'shoulder', 'finger', 'elbw'], '"elbow" by "elbw"', 'none of which'),
        ([''], '""', 'did you mean'),
        (['yaw', 'shoulder'], '', ';'),
        ([], 'no message has arrived', ''),
    ],
)
def test_what_arrived_instead_of_the_joints_is_said(arrived: list[str], says: str, not_said: str) -> None:
    feedback = Feedback()
    feedback.topic = 'joint_states'
    feedback.judge(JointSet(read_urdf(arm_urdf())))
    feedback.take(dict.fromkeys(arrived, 0.0), 0.0, 0.0)
    said = feedback.missing(ARM_JOINTS)
    assert says in said
    assert not not_said or not_said not in said
    feedback.offered = False
    assert 'no publisher' in feedback.missing(ARM_JOINTS)
    feedback.take(dict.fromkeys(ARM_JOINTS, 0.0), 0.1, 0.1)
    assert not feedback.missing(ARM_JOINTS)


@pytest.mark.parametrize(('speed', 'believed'), [(3.0, True), (9.0, False)])
def test_slow_hardware_behind_a_fast_broadcaster_is_believed(speed: float, believed: bool) -> None:
    feedback = Feedback()
    feedback.judge(JointSet(read_urdf(arm_urdf())))
    for step in range(100):  # 100 Hz; read at 5 Hz, always moving
        place = speed * 0.2 * (step // 20) - 2.0
        feedback.take({'yaw': place}, 0.01 * step, 0.01 * step)
    assert (feedback.doubt(['yaw']) == '') is believed


def test_a_leap_of_a_joint_at_rest_is_not_believed() -> None:
    feedback = Feedback()
    feedback.judge(JointSet(read_urdf(arm_urdf())))
    for step in range(101):
        feedback.take({'yaw': 0.0 if step < 100 else 1.0}, 0.01 * step, 0.01 * step)
    assert feedback.doubt(['yaw'])
