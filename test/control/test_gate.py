# SPDX-License-Identifier: Apache-2.0
"""The gate: a sample that breaks a limit never passes; that those of motions do is in test_motion."""

import numpy as np
import pytest

from ik_node.control.checks.joint_gate import Gate
from ik_node.control.robot.motion_limits import MotionLimits

NAMES = ('a', 'b', 'c')
LIMITS = MotionLimits(*(np.full(3, value) for value in (-1.0, 1.0, 2.0, 5.0, 50.0)))
DT = 0.01


def at_rest() -> Gate:
    gate = Gate(NAMES, LIMITS.lower, LIMITS.upper)
    gate.set_limits(LIMITS.velocity, LIMITS.acceleration, LIMITS.jerk)
    for _ in range(2):
        assert gate.reject(np.zeros(3), np.zeros(3), DT) is None
    return gate


def test_the_quick_comparison_lets_nothing_pass_that_the_full_one_rejects():
    rng, rejected = np.random.default_rng(4), 0
    for _ in range(1000):
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
    assert 150 < rejected < 970


def one(value: float) -> np.ndarray:
    return np.array([0.0, value, 0.0])


@pytest.mark.parametrize(
    ('position', 'velocity', 'words'),
    [
        (np.nan, 0.0, 'not finite'),
        (0.0, np.inf, 'not finite'),
        (1.1, 0.0, '"b": position 1.1, allowed: -1 to 1'),
        (0.0, 2.1, '"b": velocity 2.1, allowed: -2 to 2'),
        (0.021, 0.0, '"b": step 0.021, allowed: -0.02 to 0.02'),
        (0.0, -0.06, '"b": change of velocity -0.06, allowed: -0.05 to 0.05'),
        (0.0, 0.01, '"b": change of acceleration 1, allowed: -0.5 to 0.5'),
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
