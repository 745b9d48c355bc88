# SPDX-License-Identifier: Apache-2.0
"""Sliders of the panel for an arm with a ball joint: a real viser server, without a browser."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

viser = pytest.importorskip('viser')

from ik_node import Arm  # noqa: E402
from ik_node.model.urdf.description import load_description  # noqa: E402
from ik_node.share import share_path  # noqa: E402
from ik_node.viewer.panel.joints_panel import JointsPanel  # noqa: E402


@pytest.fixture
def panel() -> Iterator[JointsPanel]:
    server = viser.ViserServer(host='127.0.0.1', port=0, verbose=False)
    yield JointsPanel(server.gui)
    server.stop()


def arm_of(name: str) -> Arm:
    return Arm.from_urdf(load_description(share_path('urdf', f'{name}.urdf.xacro')))


def test_a_ball_joint_has_sliders_for_swing_and_twist(panel):
    arm = arm_of('ball_joint_arm')
    panel.show([arm])
    (ball,) = [slider for slider in panel._sliders if len(slider.joints) == 3]
    assert ball.joints == arm.balls[0].joints
    assert [len(slider.handles) for slider in panel._sliders].count(1) == arm.n - 3
    rng = np.random.default_rng(1)
    for q in arm.sample(rng, 20):
        values = dict(zip(arm.joint_names, q.tolist(), strict=True))
        panel.set(values)
        for name, value in ball.get().items():
            assert value == pytest.approx(values[name], abs=math.radians(0.2))
    for handle in ball.handles[:2]:
        handle.value = math.degrees(arm.balls[0].swing)  # both: beyond the cone
    positions = np.array([ball.get()[name] for name in arm.joint_names[:3]])
    q = np.append(positions, np.zeros(arm.n - 3))
    assert arm.ball_excess(q) < 1e-6
    swing_x, swing_y, _ = arm.balls[0].swing_twist(tuple(positions.tolist()))
    assert math.hypot(swing_x, swing_y) == pytest.approx(arm.balls[0].swing)


def test_other_arms_have_a_slider_for_each_joint(panel):
    arm = arm_of('seed_arm')
    panel.show([arm])
    assert [slider.joints for slider in panel._sliders] == [(name,) for name in arm.joint_names]
    panel.set(dict.fromkeys(arm.joint_names, 0.5))
    assert all(slider.get()[slider.joints[0]] == pytest.approx(0.5, abs=1e-3) for slider in panel._sliders)
