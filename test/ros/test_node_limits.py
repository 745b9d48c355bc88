# SPDX-License-Identifier: Apache-2.0
"""Limits by parameters of a node: joint limits, the tool's limits, the workspace, self-collision."""

from __future__ import annotations

import numpy as np
import pytest
from folding_arm import folding_urdf
from node_harness import Client, running
from small_arm import ARM_JOINTS, arm_urdf

BOX = [-0.3, -0.5, -0.2, 0.6, 0.5, 0.6]


def rates(client: Client, name: str) -> np.ndarray:
    """The velocities of a joint in all samples."""
    return np.array([s.velocity[list(s.name).index(name)] for s in client.samples])


def test_the_limits_of_a_file_and_of_the_tool_hold_on_the_wire(tmp_path):
    file = tmp_path / 'joint_limits.yaml'
    file.write_text('joint_limits: {yaw: {has_velocity_limits: true, max_velocity: 0.8}}')
    with running(arm_urdf(), joint_limits_file=str(file), speed_scaling=1.0) as client:
        client.send('goal_joints', client.joints(yaw=1.0))
        client.wait_said('arrived')
        assert 0.75 < np.abs(rates(client, 'yaw')).max() <= 0.8 + 1e-9
        client.samples.clear()
        assert client.set_parameters(max_tool_speed=0.2)[0].successful
        client.send('goal_joints', client.joints(yaw=0.0))
        client.wait(lambda: any(s.position[0] == 0.0 for s in client.samples), 'the place')
        assert 0.2 < np.abs(rates(client, 'yaw')).max() <= 0.2 / 0.7 + 1e-9  # 0.7 m from the axis


def test_the_workspace_is_told_rejects_goals_and_changes_while_the_node_runs():
    with running(arm_urdf(), workspace=BOX, home=[0.8] * len(ARM_JOINTS)) as client:
        client.send('goal_point', client.point((0.4, 0.0, -0.3)))
        client.wait_said(
            'goal_point rejected: the goal is outside the workspace: z -0.3, allowed: -0.2 to 0.6'
        )
        (result,) = client.set_parameters(workspace=[0.0, 0.0, 0.0, 1.0, 1.0, -1.0])
        assert not result.successful
        assert 'least x, y, z and then the largest' in result.reason
        assert client.set_parameters(workspace=[0.0] * 6)[0].successful
        client.send('goal_point', client.point((0.4, 0.0, -0.1)))
        client.wait(
            lambda: 'goal' in client.statuses[-1].message and client.said()['state'] != 'rejected', 'it'
        )


def test_self_collision_is_rejected_and_its_distance_is_in_the_diagnostics():
    pytest.importorskip('coal')
    with running(folding_urdf(), tip_link='hand', base_link='base') as client:
        client.send('goal_joints', client.joints(elbow=3.0))
        client.wait_said('goal_joints rejected: link "upper" and link "hand" would')
        values = client.wait(
            lambda: [
                v for a in client.diagnostics for s in a.status for v in s.values if 'collision' in v.key
            ],
            'the distance',
        )
        assert '(' in values[-1].value
        assert client.set_parameters(self_collision='false')[0].successful
        client.send('goal_joints', client.joints(elbow=3.05))
        client.wait(lambda: client.said()['state'] == 'moving', 'the motion')
