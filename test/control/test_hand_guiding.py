# SPDX-License-Identifier: Apache-2.0
"""Hand guiding: commands follow the measured joints, slowly, and only while that was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_harness import PERIOD, Rig, largest_step
from small_arm import ARM_JOINTS

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


def test_hand_guiding_that_has_not_begun_does_not_end(real):
    with pytest.raises(InputError, match='not guided by hand; state: holding'):
        real.controller.guide(False, real.time)
    real.controller.guide(True, real.time)
    real.controller.guide(False, real.time)


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


def speed(real, ahead: float = 0.3) -> float:
    """The largest speed [rad/s] of yaw while it is measured ahead [rad] of its command, as by a hand."""
    first = len(real.output.samples)
    for _ in range(150):
        real.measure_all(yaw=real.position('yaw') + ahead)
        real.tick()
    return largest_step(real.output.samples[first:]) / PERIOD


def test_a_parameter_that_changes_meanwhile_makes_hand_guiding_no_faster(real):
    real.controller.guide(True, real.time)
    slow = speed(real)
    assert real.controller.configure(real.model, replace(real.settings, restarts=7))
    assert speed(real) == pytest.approx(slow)
    real.controller.set_limits(real.settings)
    assert speed(real) == pytest.approx(slow)


def test_after_hand_guiding_the_arm_has_its_own_speed_however_it_ended(real):
    real.controller.guide(True, real.time)
    slow = speed(real)
    real.controller.stop()
    real.settle()
    real.controller.resume()
    real.measure_all(yaw=real.position('yaw'))
    real.go(yaw=-1.5)
    assert speed(real, ahead=0.0) == pytest.approx(4.0 * slow, rel=0.01)


def test_a_copy_of_a_measurement_that_comes_late_does_not_decide_the_first_command(model):
    real = Rig(model, measured=True)
    for name in ARM_JOINTS[:-1]:
        real.controller.on_measured({name: 0.3}, real.time)
    real.controller.on_measured({'yaw': 0.0}, real.time, real.time - 0.9)
    real.controller.on_measured({ARM_JOINTS[-1]: 0.3}, real.time)
    real.tick()
    assert real.state is State.HOLDING
    assert real.position('yaw') == pytest.approx(0.3)
