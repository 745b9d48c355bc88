# SPDX-License-Identifier: Apache-2.0
"""Measurements of joints, whatever else is measured beside them."""

from __future__ import annotations

from ik_node.control.joints.feedback import MOST_JOINTS, Feedback


def test_a_thousand_joints_of_others_do_not_keep_the_arm_from_being_measured() -> None:
    feedback = Feedback()
    feedback.take({f'other{k}': 0.0 for k in range(MOST_JOINTS)}, 0.0, 0.0)
    feedback.take({'joint1': 0.5, 'joint2': 0.25}, 1.0, 1.0)
    assert feedback.fresh(0.5) == {'joint1': 0.5, 'joint2': 0.25}
    feedback.take({f'more{k}': 0.0 for k in range(MOST_JOINTS - 2)}, 1.1, 1.1)
    assert feedback.fresh(0.0)['joint1'] == 0.5, 'those measured longest ago are forgotten first'
    assert len(feedback.fresh(0.0)) == MOST_JOINTS
