# SPDX-License-Identifier: Apache-2.0
"""ArmController under any sequence of events: no sample that is not allowed, and always a way out.

Measurements may be in degrees, off by turns, swapped, stuck or late: no sample is outside the limits, or away
from a place that was measured and can be true.

Hypothesis makes the sequences; IK_NODE_SEQUENCES says how many. The judge here shares nothing with gate.py.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import numpy as np
import pytest
from control_harness import AFTER, PERIOD, SETTINGS, Asked, Kept
from driven_rig import Controller
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from small_arm import ARM_JOINTS, arm_urdf

from ik_node import Goal
from ik_node.control.controller.controller import ArmController
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.requests import HomeRequest
from ik_node.control.state.states import COMMANDING, State
from ik_node.errors import InputError

SEQUENCES = int(os.environ.get('IK_NODE_SEQUENCES', '40'))
LIMIT, FINGER = 2.5, 0.04
SPEED = 2.0  # [rad/s, m/s] in the URDF
FAR = 0.5  # [rad] outside its limits where no joint can be
ANGLES = st.floats(-2.6, 2.6)
PLACES = st.tuples(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8), st.floats(-0.3, 1.0))
SUBSETS = st.sets(st.sampled_from([*ARM_JOINTS, 'finger', 'camera']))
WRONG: dict[str, Callable[[float], float]] = {
    'degrees': math.degrees,
    'millimetres': lambda value: 1000.0 * value,
    'a turn more': lambda value: value + 2.0 * math.pi,
    'a turn less': lambda value: value - 2.0 * math.pi,
    'glitch': lambda value: value - math.copysign(1.9, value),
    'zero': lambda _: 0.0,
}

MODELS: dict[str, ArmModel] = {}


def model_of(name: str) -> ArmModel:
    """The small arm, or one whose finger has another name."""
    if name not in MODELS:
        MODELS[name] = ArmModel.build(arm_urdf().replace('finger', name), SETTINGS)
    return MODELS[name]


class Sequences(RuleBasedStateMachine):
    """One controller and whatever may happen to it."""

    @initialize(measured=st.booleans(), plans=st.booleans())
    def begin(self, measured: bool, plans: bool) -> None:
        self.output: Kept | Controller = Controller() if plans else Kept()
        self.reports: list = []
        self.controller = ArmController(self.reports.append, [self.output])
        self.time = 0.0
        self.settings = SETTINGS
        self.model = model_of('finger')
        self.measured = measured
        self.controller.expect_measured(measured)
        self.controller.activate()
        self.controller.configure(self.model, SETTINGS)
        self.last: Setpoint | None = None  # None: the arm may be placed anew
        self.seen: dict[str, list[float]] = {}  # where joints were measured since the arm lost its place
        self.newest: dict[str, float] = {}  # when they were measured last [s]
        self.fastest = self.hardest = 0.0  # limits since the last rest
        self.relax()

    def relax(self) -> None:
        self.fastest = max(self.fastest, SPEED * self.settings.speed_scaling)
        self.hardest = max(self.hardest, self.settings.max_acceleration)

    def lose(self) -> None:
        """The arm has to be placed anew."""
        self.last = None
        self.seen = {}

    # What may happen

    @rule(place=PLACES, directed=st.booleans())
    def goal(self, place, directed):
        self.controller.submit(Asked(Goal(place, (0.0, 0.0, -1.0)) if directed else Goal(place)))

    @rule(names=SUBSETS, value=ANGLES)
    def joints(self, names, value):
        targets = {name: value / 60.0 if name == 'finger' else value for name in names - {'camera'}}
        self.controller.submit(Asked(targets))

    @rule(place=PLACES, speed=PLACES, count=st.integers(1, 40), every=st.integers(1, 3))
    def stream(self, place, speed, count, every):
        """A goal moves."""
        for k in range(count):
            if k % every == 0:
                goal = Goal(np.add(place, np.multiply(speed, k * PERIOD)))
                request = Asked(goal, arrival=AFTER + self.time, received=self.time, goal_time=self.time)
                self.controller.submit(request)
            self.tick(1, PERIOD)

    @rule()
    def home(self):
        self.controller.submit(HomeRequest())

    @rule(names=SUBSETS, off=st.sampled_from([0.0, 0.001, -0.06, 0.2, 1.0, -3.0]))
    def measure(self, names, off):
        """Joints are measured near or far from where they were sent."""
        self.measure_at(names, off)

    @rule(off=st.sampled_from([0.0, 0.01]), count=st.integers(1, 60))
    def follow(self, off, count):
        """All joints are measured for a while."""
        for _ in range(count):
            self.measure_at(ARM_JOINTS, off)
            self.tick(1, PERIOD)

    @rule(wrong=st.sampled_from(list(WRONG)), names=SUBSETS, count=st.integers(1, 80))
    def wrong(self, wrong, names, count):
        """Some joints are measured wrongly for a while, the others where they were sent."""
        for _ in range(count):
            true = self.commanded()
            self.measured_at({name: WRONG[wrong](x) if name in names else x for name, x in true.items()})
            self.tick(1, PERIOD)

    @rule(count=st.integers(1, 80), by=st.sampled_from([0, 1, 3]), delay=st.sampled_from([0.0, 0.05, 0.5]))
    def mixed_up(self, count, by, delay):
        """The joints are swapped, or stuck where they were, and measurements are late."""
        stuck = self.commanded()
        for _ in range(count):
            values = list((self.commanded() if by else stuck).values())
            self.measured_at(dict(zip(stuck, values[by:] + values[:by], strict=True)), delay)
            self.tick(1, PERIOD)

    def commanded(self) -> dict[str, float]:
        snapshot = self.controller.snapshot()
        values = dict(zip(snapshot.model.joints.variables, snapshot.values.tolist(), strict=True))
        return {name: values[name] for name in ARM_JOINTS}

    def measure_at(self, names, off):
        snapshot = self.controller.snapshot()
        values = dict(zip(snapshot.model.joints.variables, snapshot.values, strict=True))
        self.measured_at({name: values.get(name, 0.0) + off for name in names})

    def measured_at(self, positions: dict[str, float], delay: float = 0.0) -> None:
        waiting = self.controller.state
        self.controller.on_measured(positions, self.time, self.time - delay)
        for name, position in positions.items():
            if self.time - delay >= self.newest.get(name, -math.inf):  # older ones are ignored
                self.newest[name] = self.time - delay
                self.seen.setdefault(name, []).append(position)
        if waiting is State.WAITING:
            self.last = None

    @rule(count=st.integers(1, 100), period=st.sampled_from([PERIOD, 0.0, 0.001, 0.5]))
    def pass_time(self, count, period):
        self.tick(count, period)

    @rule(by=st.sampled_from([-1000.0, -0.05, 5.0, 1e6]))
    def jump(self, by):
        """The clock is set."""
        self.time += by

    @rule()
    def stop(self):
        self.controller.stop()

    @rule()
    def resume(self):
        faulted = self.controller.state is State.FAULTED
        try:
            self.controller.resume()
        except InputError:
            return
        if faulted and self.measured:
            self.lose()

    @rule(begin=st.booleans())
    def guide(self, begin):
        try:
            self.controller.guide(begin, self.time)
        except InputError:
            assert begin or self.controller.state is not State.HAND_GUIDED

    @rule(by=st.floats(-0.5, 0.5), count=st.integers(1, 20))
    def teleoperate(self, by, count):
        for _ in range(count):
            self.controller.steer(np.array(list(self.commanded().values())) + by, self.time)
            self.measure_at(ARM_JOINTS, 0.0)
            self.tick(1, PERIOD)

    @rule(speed=st.sampled_from([0.05, 0.5, 1.0]), acceleration=st.sampled_from([0.5, 5.0, 50.0]))
    def limits(self, speed, acceleration):
        self.settings = ArmSettings(**{**vars(self.settings), 'speed_scaling': speed})
        self.settings = ArmSettings(**{**vars(self.settings), 'max_acceleration': acceleration})
        self.relax()
        self.controller.set_limits(self.settings)

    @rule(name=st.sampled_from(['finger', 'jaw']))
    def description(self, name):
        model = model_of(name)
        if self.controller.configure(model, self.settings) and model is not self.model:
            self.model = model
            self.last = None

    @rule(measured=st.booleans(), alone=st.booleans())
    def expect(self, measured, alone):
        if measured and not self.measured:
            self.lose()
        self.measured = measured
        self.controller.expect_measured(measured, alone)

    @rule(active=st.booleans())
    def activate(self, active):
        if active:
            self.controller.activate()
        else:
            self.controller.deactivate()
        self.last = None if self.controller.state is State.WAITING else self.last

    # What must hold

    def tick(self, count: int, period: float) -> None:
        for _ in range(count):
            waited = self.controller.state is State.WAITING
            self.time += period
            sample = self.controller.tick(self.time)
            self.newest = {name: min(at, self.time) for name, at in self.newest.items()}
            if waited:
                self.last = None
            if sample is not None:
                self.judge(sample, min(period, 2.0 * PERIOD))

    def judge(self, sample: Setpoint, dt: float) -> None:
        state = self.controller.state
        assert state in COMMANDING or state in (State.FAULTED, State.INACTIVE)
        assert set(ARM_JOINTS) <= set(sample.names)
        assert np.isfinite(sample.positions).all()
        assert np.isfinite(sample.velocities).all()
        if self.measured:
            assert set(ARM_JOINTS) <= self.seen.keys()
            impossible = any(abs(self.seen[name][-1]) > LIMIT + FAR for name in ARM_JOINTS)
            # It brakes from what was believed, and rests as inactive if it was deactivated meanwhile.
            assert not impossible or state in (State.FAULTED, State.INACTIVE), 'only a fault moves it'
        if sample.trajectory is not None:
            assert np.abs(sample.trajectory.positions[:, :5]).max() <= LIMIT + FAR
        before, self.last = self.last, sample
        old = {} if before is None else dict(zip(before.names, before.positions, strict=True))
        speeds = {} if before is None else dict(zip(before.names, before.velocities, strict=True))
        for name, position, velocity in zip(sample.names, sample.positions, sample.velocities, strict=True):
            if name not in ARM_JOINTS:
                continue  # beside the arm a joint may be shown where it is measured
            assert abs(position) <= max(LIMIT, abs(old.get(name, LIMIT + FAR))) + 1e-6
            if self.measured and name not in old:
                nearest = min(abs(position - seen) for seen in self.seen[name])
                assert nearest <= self.fastest * self.gap + 1e-6, 'it starts where it was measured'
            assert abs(velocity) <= self.fastest + 1e-6
            if name in old and not self.output.runs_plans:  # a controller goes on without samples
                assert abs(position - old[name]) <= self.fastest * max(dt, self.gap) + 1e-6
                assert abs(velocity - speeds[name]) <= self.hardest * max(dt, self.gap) + 1e-6
        if not sample.velocities.any():
            self.fastest = self.hardest = 0.0
            self.relax()

    gap = 2.0 * PERIOD  # the first tick after a jump of the clock moves for two periods at most

    @invariant()
    def is_in_a_state(self):
        assert isinstance(self.controller.state, State)
        level, message = self.controller.condition()
        assert message
        assert level

    def teardown(self):
        """Whatever has happened, the arm can be brought to work again."""
        if not hasattr(self, 'controller'):
            return
        self.controller.activate()
        stops = 0
        for _ in range(43_000):  # a finger may come back 3 m at 10 mm/s
            state = self.controller.state
            if state is State.HOLDING:
                break
            if state in (State.STOPPED, State.FAULTED):
                self.resume()  # rejected while a joint moves
                stops += self.controller.state is not state
            elif state is State.HAND_GUIDED:
                self.controller.guide(False, self.time)
            self.measure_at(ARM_JOINTS, 0.0)
            self.tick(1, PERIOD)
        assert stops <= 3
        assert self.controller.state is State.HOLDING, self.controller.condition()
        self.controller.submit(Asked({'yaw': 0.123}))
        assert self.reports[-1].status == 'solved', self.reports[-1].message


@pytest.mark.slow
def test_no_sequence_of_events_leads_to_a_forbidden_sample():
    run_state_machine_as_test(
        Sequences,
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
