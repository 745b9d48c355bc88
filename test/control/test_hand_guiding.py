"""Hand guiding: commands follow the measured joints, slowly, and only while that was asked for."""

from __future__ import annotations

import pytest
from control_harness import PERIOD, largest_step

from ik_node.control.state.states import State
from ik_node.errors import InputError


def test_hand_guiding_follows_slowly_and_ends_by_itself(real):
    real.controller.guide(True, real.time)
    for _ in range(200):
        real.measure_all(yaw=0.3)
        real.tick()
    assert real.position('yaw') == pytest.approx(0.3)
    assert largest_step(real.output.samples) <= 0.25 * 0.5 * 2.0 * PERIOD + 1e-9
    assert real.state is State.HAND_GUIDED
    for _ in range(6000):
        real.measure_all(yaw=0.3)
        real.tick()
    assert real.state is State.HOLDING


def test_hand_guiding_needs_a_measured_arm(picture):
    with pytest.raises(InputError, match='hand guiding needs a measured arm at rest'):
        picture.controller.guide(True, picture.time)


def test_hand_guiding_ends_when_nobody_measures_any_more(real):
    real.controller.guide(True, real.time)
    real.controller.expect_measured(False)
    real.settle()
    assert real.state is State.HOLDING


def test_hand_guiding_ends_when_the_arm_has_to_be_measured_anew(real):
    real.controller.guide(True, real.time)
    real.controller.expect_measured(False)
    real.controller.expect_measured(True)
    assert real.state is State.WAITING
    assert real.tick(200) is None
    real.measure_all(yaw=0.01)
    real.tick()
    assert real.state is State.HOLDING
