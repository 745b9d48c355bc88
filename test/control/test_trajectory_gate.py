# SPDX-License-Identifier: Apache-2.0
"""Trajectories that are sent whole pass the gate too: one that breaks a limit never goes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from control_harness import SETTINGS
from driven_rig import Driven
from folding_arm import folding_urdf
from limit_judge import Judge

from ik_node.control.joints import arm_joints
from ik_node.control.motion.motion_ahead import Plan, motion_ahead
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.states import State

Broken = Callable[[float, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]
FOLDING = ArmSettings(tip_link='hand', tool_axis=(1.0, 0.0, 0.0), tool_point=(0.05, 0.0, 0.0))
YAW = np.array([1.0, 0.0, 0.0, 0.0, 0.0])


def break_plans(monkeypatch: pytest.MonkeyPatch, broken: Broken, braking: bool = False) -> None:
    """Spoil all plans from now on, those that brake only on request."""

    def spoilt(groups: object) -> Plan:
        plan = motion_ahead(groups)
        if plan.braking and not braking:
            return plan
        return replace(plan, at=lambda t: broken(t, *plan.at(t)))

    monkeypatch.setattr(arm_joints, 'motion_ahead', spoilt)


def too_far(t: float, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
    return p + 3.0 * YAW * (t > 1.2), v, a


def too_fast(_: float, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
    return p, 1.2 * v, a


def too_hard(_: float, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
    return p, v, 1.3 * a


def unknown(_: float, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
    return p, v * np.nan, a


@pytest.mark.parametrize(
    ('broken', 'words'),
    [
        (too_far, 's after its start, joint "yaw": '),
        (too_fast, 's after its start, joint "yaw": '),
        (too_hard, 's after its start, joint "yaw": '),
        (unknown, 'its points are not finite'),
    ],
)
def test_a_plan_that_breaks_a_limit_is_not_sent_and_stops_the_arm(
    rig: Driven, monkeypatch: pytest.MonkeyPatch, broken: Broken, words: str
) -> None:
    rig.go(yaw=0.8)
    rig.tick(20)
    break_plans(monkeypatch, broken)
    rig.go(yaw=1.9)
    rig.tick(1)
    assert rig.state is State.FAULTED
    message = rig.reports[-1].message
    assert message.startswith('trajectory dropped: ')
    assert words in message
    rig.tick(100)
    (_, brake) = rig.output.sent[1]
    assert brake.braking
    assert brake.positions[-1, 0] == pytest.approx(rig.position('yaw'))
    assert rig.position('yaw') < 0.6


def test_where_the_trajectory_that_brakes_breaks_a_limit_too_the_joints_are_halted_where_they_are(
    rig: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.go(yaw=0.8)
    rig.tick(20)
    break_plans(monkeypatch, unknown, braking=True)
    rig.go(yaw=1.9)
    rig.tick(1)
    at = rig.position('yaw')
    rig.tick(1)
    assert rig.state is State.FAULTED
    _, (_, halt) = rig.output.sent
    assert np.isfinite(halt.positions).all()
    assert halt.positions[-1, 0] == pytest.approx(at, abs=0.05)
    count = len(rig.output.samples)
    rig.tick(20)
    assert len(rig.output.samples) == count


def test_a_plan_on_which_the_tool_is_too_fast_is_not_sent(model: ArmModel) -> None:
    rig = Driven(model, replace(SETTINGS, max_tool_speed=0.2))
    rig.measure_all()
    rig.tick(2)
    rig.controller._joints.arm.motion._pace = None
    rig.go(yaw=1.5)
    rig.tick(1)
    assert rig.state is State.FAULTED
    assert ' s after its start, tool speed 0.2' in rig.reports[-1].message
    assert not rig.output.sent


def test_a_plan_on_which_the_arm_would_collide_is_not_sent() -> None:
    pytest.importorskip('coal')
    model = ArmModel.build(folding_urdf(), FOLDING)
    rig = Driven(model, FOLDING)
    rig.measure(**{**dict.fromkeys(model.arm.joint_names, 0.0), 'yaw': 0.8})
    rig.tick(3)
    assert rig.state is State.HOLDING
    rig.controller._joints.motion_check.choose = lambda plan, *_: (
        plan
    )  # or the goal is rejected before it starts
    rig.go(yaw=-0.8)
    rig.tick(1)
    assert rig.state is State.FAULTED
    assert 'trajectory dropped: ' in rig.reports[-1].message
    assert 'link "base" and link ' in rig.reports[-1].message
    assert not rig.output.sent


def test_an_arm_beyond_a_limit_that_overlaps_there_comes_back() -> None:
    """The way back to the limit ends where parts still overlap, but less."""
    pytest.importorskip('coal')
    model = ArmModel.build(folding_urdf(), FOLDING)
    rig = Driven(model, FOLDING)
    rig.measure(**{**dict.fromkeys(model.arm.joint_names, 0.0), 'yaw': 1.5, 'elbow': 3.14})
    rig.tick(3)
    report = rig.go(elbow=1.0)
    assert report.phase == 'moving', report.message
    rig.settle()
    assert rig.state is State.HOLDING, rig.reports[-1].message
    assert rig.position('elbow') == pytest.approx(1.0)


def test_goals_that_come_as_a_stream_are_sent_within_all_limits(rig: Driven) -> None:
    rng = np.random.default_rng(4)
    yaw = 0.2
    for _ in range(400):
        if rng.random() < 0.05:
            yaw = rng.uniform(-1.5, 1.5)
        yaw += rng.uniform(0.0, 0.02)
        rig.go(yaw=yaw, elbow=rng.uniform(0.0, 0.02))
        rig.tick()
        assert rig.state is State.MOVING, rig.reports[-1].message
    rig.settle()
    for _, sent in rig.output.sent:
        states = sent.motion.sampled(np.arange(0.0, sent.joined, 2e-3))
        Judge(velocity=1.01, acceleration=5.25).all(2e-3, *states[:3])
