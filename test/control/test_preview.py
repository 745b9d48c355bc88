# SPDX-License-Identifier: Apache-2.0
"""A preview says of every goal what the controller then does: the reason, or the motion and its duration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_harness import PERIOD, RULES, SETTINGS, TOOL, Rig, arm_model, node_rules
from small_arm import ARM_JOINTS, arm_urdf

from ik_node.control.paths import ToolPath
from ik_node.control.preview import Preview
from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize('name', RULES)
def test_the_preview_of_a_goal_is_what_the_controller_does(name: str, tmp_path: Path) -> None:
    text, given, word = node_rules(name, tmp_path)
    settings = ArmSettings(**given)
    model = arm_model(text, settings)
    free = arm_model(text, ArmSettings(**(TOOL if given is TOOL else {}))).first.arm  # without the rules
    preview, rig, rng = Preview(model, settings), Rig(model, settings), np.random.default_rng(4)
    rig.tick(2)
    said, moved = '', 0
    for number, q in enumerate(rng.uniform(free.lower, free.upper, (15, free.n))):
        q = np.clip(q, model.first.arm.lower, model.first.arm.upper) if number % 2 else q
        goal: Any = dict(zip(free.joint_names, q.tolist(), strict=True))
        snapshot = rig.controller.snapshot()
        assert snapshot is not None
        if number % 3 == 0:
            position, direction = free.fk(0.8 * snapshot.position + 0.2 * q)
            goal = ToolPath(position[None], direction[None])
        here = model.joints.named(snapshot.values)
        try:
            found = preview.motion(goal, here)
            reason = ''
        except InputError as error:
            reason = str(error)
        if not isinstance(goal, ToolPath):
            assert preview.rejection(q, here, from_rest=True) == reason
            assert bool(preview.rejection(q, here)) <= bool(reason)
        report = rig.ask(goal)
        if reason:
            assert report.message == f'test rejected: {reason}'
            said += reason
            continue
        assert report.message == found.message
        began = rig.time
        rig.settle()
        moved += 1
        assert rig.time - began == pytest.approx(found.duration, abs=2.5 * PERIOD)
        assert [rig.position(joint) for joint in model.joints.variables] == pytest.approx(
            list(found.end.values()), abs=1e-9
        )
    assert word in said
    assert moved >= 3


def test_what_a_controller_does_not_move_is_rejected() -> None:
    """A gripper that is not among controller_joints ends no program in the middle."""
    settings = replace(SETTINGS, output='joint_trajectory', controller_joints=ARM_JOINTS)
    model = arm_model(arm_urdf(), settings)
    rest = model.joints.named(model.joints.rest)
    with pytest.raises(InputError, match='not "finger"'):
        Preview(model, settings).motion({'finger': 0.01}, rest)
    assert Preview(model, SETTINGS).motion({'finger': 0.01}, rest).solved
