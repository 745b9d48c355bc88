# SPDX-License-Identifier: Apache-2.0
"""The gate: every sample of every motion passes, and one that breaks a limit never does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ik_node.control.checks.joint_gate import Gate
from ik_node.control.joints.joint_group import JointGroup
from ik_node.control.robot.motion_limits import MotionLimits

NAMES = ('a', 'b', 'c')
LIMITS = MotionLimits(*(np.full(3, value) for value in (-1.0, 1.0, 2.0, 5.0, 50.0)))
DT = 0.01


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_sample_passes_whatever_is_asked_and_whenever_limits_change(seed):
    rng = np.random.default_rng(seed)
    group = JointGroup(NAMES, np.arange(3), LIMITS, rng.uniform(-1.2, 1.2, 3))
    for _ in range(400):
        if rng.random() < 0.1:
            group.go_to(np.where(rng.random(3) < 0.1, np.nan, rng.uniform(-1.5, 1.5, 3)))
        if rng.random() < 0.02:
            group.motion.stop()
        if rng.random() < 0.03:
            scale = rng.uniform(0.1, 3.0, (3, 1))
            rates = scale * np.array([LIMITS.velocity, LIMITS.acceleration, LIMITS.jerk])
            group.limit(MotionLimits(LIMITS.lower, LIMITS.upper, *rates))
        assert group.step(rng.choice([0.0, rng.uniform(1e-4, 0.02)])) is None


def at_rest() -> Gate:
    gate = Gate(NAMES, LIMITS.lower, LIMITS.upper)
    gate.set_limits(LIMITS.velocity, LIMITS.acceleration, LIMITS.jerk)
    for _ in range(2):
        assert gate.reject(np.zeros(3), np.zeros(3), DT) is None
    return gate


def test_the_quick_comparison_lets_nothing_pass_that_the_full_one_rejects():
    rng, rejected = np.random.default_rng(4), 0
    for _ in range(3000):
        quick, full = at_rest(), at_rest()
        full._passed = lambda *_: None
        loose = np.where(np.arange(3) == rng.integers(4), 1.0, 1e3)  # so that each limit comes to count
        for gate in (quick, full):
            rates = LIMITS.velocity, LIMITS.acceleration, LIMITS.jerk
            gate.set_limits(*(rate * scale for rate, scale in zip(rates, loose, strict=True)))
        velocity, position = np.zeros(3), np.zeros(3)
        for _ in range(3):
            dt = rng.uniform(0.2, 2.0) * DT
            velocity = (
                velocity + rng.uniform(-1.0, 1.0, 3) * rng.choice([0.0005, 0.002, 0.005, 0.06, 3.0]) * dt / DT
            )
            position = position + velocity * dt * (3.0 if rng.random() < 0.05 else 1.0)
            if rng.random() < 0.1:
                position[rng.integers(3)] = rng.choice([np.nan, np.inf, -1.0, 1.0, 1.00001])
            reasons = [gate.reject(position, velocity, dt) for gate in (quick, full)]
            assert reasons[0] == reasons[1]
            if reasons[0] is not None:
                rejected += 1
                break
    assert 500 < rejected < 2900


def one(value: float) -> np.ndarray:
    return np.array([0.0, value, 0.0])


@pytest.mark.parametrize(
    ('position', 'velocity', 'words'),
    [
        (np.nan, 0.0, 'not finite'),
        (0.0, np.inf, 'not finite'),
        (1.1, 0.0, 'joint "b": position 1.1, allowed: -1 to 1'),
        (0.0, 2.1, 'joint "b": velocity 2.1, allowed: -2 to 2'),
        (0.021, 0.0, 'joint "b": step 0.021, allowed: -0.02 to 0.02'),
        (0.0, -0.06, 'joint "b": change of velocity -0.06, allowed: -0.05 to 0.05'),
        (0.0, 0.01, 'joint "b": change of acceleration 1, allowed: -0.5 to 0.5'),
    ],
)
def test_what_breaks_a_limit_is_rejected_with_joint_value_and_what_is_allowed(position, velocity, words):
    reason = at_rest().reject(one(position), one(velocity), DT)
    assert reason is not None
    assert words in reason


def test_a_hair_within_the_jerk_limit_passes():
    # 50 rad/s^3 for 0.01 s: 0.5 rad/s^2 more from one period to the next, half of it in the first.
    gate = at_rest()
    for k in range(1, 8):
        time = k * DT
        assert gate.reject(one(50 * time**3 / 6), one(50 * time**2 / 2), DT) is None


def test_a_joint_outside_its_limits_may_come_back_only():
    gate = Gate(NAMES, LIMITS.lower, LIMITS.upper)
    gate.set_limits(LIMITS.velocity, LIMITS.acceleration, LIMITS.jerk)
    assert gate.reject(one(1.2), np.zeros(3), DT) is None
    assert gate.reject(one(1.199), np.zeros(3), DT) is None
    assert 'position 1.2' in str(gate.reject(one(1.2), np.zeros(3), DT))
