# SPDX-License-Identifier: Apache-2.0
"""An arm under any sequence of events: no sample that is not allowed, and always a way out.

Measurements may be in degrees, off by turns, swapped, stuck or late: no sample is outside the limits, or away
from a place that was measured and can be true. Arms, outputs and limits of the tool are drawn, too.

Hypothesis makes the sequences; IK_NODE_SEQUENCES says how many. The judge here shares nothing with the gates.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from control_harness import AFTER, PERIOD, SETTINGS, Asked, Controller, Kept, arm_model
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from small_arm import FOLDING, arm_urdf, folding_urdf

from ik_node import Goal
from ik_node.control.controller import ArmController
from ik_node.control.models import ArmModel
from ik_node.control.paths import ToolPath
from ik_node.control.requests import HomeRequest
from ik_node.control.settings import ArmSettings
from ik_node.control.states import COMMANDING, State
from ik_node.control.trajectory import Setpoint
from ik_node.errors import InputError
from ik_node.model.plausibility import FAR, FAR_LINEAR
from ik_node.model.urdf.description import load_description
from ik_node.share import share_path

SEQUENCES = int(os.environ.get('IK_NODE_SEQUENCES', '20'))
SLIGHTLY = 1e-3  # [m, rad] outside between the places at which plans are compared with the surroundings
SHARES = st.floats(-1.04, 1.04)  # of the way from the middle of the limits to a limit
PLACES = st.tuples(st.floats(-1.1, 1.1), st.floats(-1.1, 1.1), st.floats(-0.5, 1.4))  # [reaches]
JOINTS = st.sets(st.sampled_from([0, 1, 2, 3, 4, 'finger', 'camera']))
WRONG: dict[str, Callable[[float], float]] = {
    'degrees': math.degrees,
    'millimetres': lambda value: 1000.0 * value,
    'a turn more': lambda value: value + 2.0 * math.pi,
    'a turn less': lambda value: value - 2.0 * math.pi,
    'glitch': lambda value: value - math.copysign(1.9, value),
    'zero': lambda _: 0.0,
}
PLAIN = ArmSettings(tip_link='tool0', self_collision='false')
FOLDED = replace(FOLDING, home=(1.5, 0.0, 2.7, 0.0))  # shortly before a collision
ARMS: dict[str, tuple[Callable[[], str], ArmSettings]] = {
    'small': (arm_urdf, SETTINGS),  # with a gripper
    'jaw': (lambda: arm_urdf().replace('finger', 'jaw'), SETTINGS),
    'rail': (lambda: load_description(share_path('urdf', 'prismatic_arm.urdf.xacro')), PLAIN),
    'ball': (lambda: load_description(share_path('urdf', 'ball_joint_arm.urdf.xacro')), PLAIN),
    **({'folding': (folding_urdf, FOLDED)} if find_spec('coal') else {}),  # its parts can collide
}
TOOL_LIMITS: dict[str, dict[str, object]] = {
    'none': {},
    'slow': {'max_tool_speed': 0.15, 'max_tool_turn_rate': 0.8},
    'box': {'workspace': (-0.5, -0.5, -0.5, 0.5, 0.5, 0.5)},
}


@cache
def model_of(arm: str) -> ArmModel:
    text, given = ARMS[arm]
    return arm_model(text(), given)


class Sequences(RuleBasedStateMachine):
    """One controller and whatever may happen to it."""

    @initialize(
        arm=st.sampled_from([name for name in ARMS if name != 'jaw']),
        measured=st.booleans(),
        plans=st.booleans(),
        tool=st.sampled_from(list(TOOL_LIMITS)),
    )
    def begin(self, arm: str, measured: bool, plans: bool, tool: str) -> None:
        self.output: Kept | Controller = Controller() if plans else Kept()
        self.reports: list = []
        self.controller = ArmController(self.reports.append, [self.output])
        self.time = 0.0
        self.named, self.model = arm, model_of(arm)
        self.settings = replace(ARMS[arm][1], **TOOL_LIMITS[tool])
        self.names = self.model.first.arm.joint_names
        self.measured = measured
        self.controller.expect_measured(measured)
        self.controller.activate()
        self.controller.configure(self.model, self.settings)
        self.last: Setpoint | None = None  # None: the arm may be placed anew
        self.seen: dict[str, list[float]] = {}  # where joints were measured since the arm lost its place
        self.newest: dict[str, float] = {}  # when they were measured last [s]
        self.fastest = self.hardest = np.zeros(len(self.names))  # limits since the last rest
        self.relax()

    def relax(self) -> None:
        given, arm = self.settings, self.model.first.arm
        hardest = np.where(arm.prismatic, given.max_linear_acceleration, given.max_acceleration)
        self.fastest = np.maximum(self.fastest, given.speed_scaling * arm.velocity)
        self.hardest = np.maximum(self.hardest, hardest)

    def lose(self) -> None:
        """The arm has to be placed anew."""
        self.last = None
        self.seen = {}

    def joint(self, one: int | str) -> str:
        return self.names[one % len(self.names)] if isinstance(one, int) else one

    def place(self, share: float) -> dict[str, float]:
        """Where joints are, by name."""
        arm = self.model.first.arm
        low, high = np.maximum(arm.lower, -3.0), np.minimum(arm.upper, 3.0)
        places = ((1.0 - share) * low + (1.0 + share) * high) / 2.0
        return dict(zip(self.names, places.tolist(), strict=True)) | {'finger': 0.02 + 0.02 * share}

    # What may happen

    @rule(place=PLACES, directed=st.booleans())
    def goal(self, place, directed):
        place = np.multiply(self.model.first.arm.reach, place)
        self.controller.submit(Asked(Goal(place, (0.0, 0.0, -1.0)) if directed else Goal(place)))

    @rule(move=PLACES)
    def path(self, move):
        """A straight line from where the tool is."""
        point, axis = self.model.first.arm.fk(self.controller.snapshot().position)
        self.controller.submit(Asked(ToolPath([np.add(point, np.multiply(0.1, move))], [axis])))

    @rule(names=JOINTS, share=SHARES)
    def joints(self, names, share):
        places = self.place(share)
        self.controller.submit(Asked({self.joint(one): places[self.joint(one)] for one in names - {'camera'}}))

    @rule(place=PLACES, speed=PLACES, count=st.integers(1, 40), every=st.integers(1, 3))
    def stream(self, place, speed, count, every):
        """A goal moves."""
        for k in range(count):
            if k % every == 0:
                goal = Goal(self.model.first.arm.reach * np.add(place, np.multiply(speed, k * PERIOD)))
                request = Asked(goal, arrival=AFTER + self.time, received=self.time, goal_time=self.time)
                self.controller.submit(request)
            self.tick(1, PERIOD)

    @rule()
    def home(self):
        self.controller.submit(HomeRequest())

    @rule(names=JOINTS, off=st.sampled_from([0.0, 0.001, -0.06, 0.2, 1.0, -3.0]))
    def measure(self, names, off):
        """Joints are measured near or far from where they were sent."""
        self.measure_at(map(self.joint, names), off)

    @rule(off=st.sampled_from([0.0, 0.01]), count=st.integers(1, 60))
    def follow(self, off, count):
        """All joints are measured for a while."""
        for _ in range(count):
            self.measure_at(self.names, off)
            self.tick(1, PERIOD)

    @rule(wrong=st.sampled_from(list(WRONG)), names=JOINTS, count=st.integers(1, 80))
    def wrong(self, wrong, names, count):
        """Some joints are measured wrongly for a while, the others where they were sent."""
        names = set(map(self.joint, names))
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
        return {name: values[name] for name in self.names}

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
            self.measure_at(self.names, 0.0)
            self.tick(1, PERIOD)

    @rule(speed=st.sampled_from([0.05, 0.5, 1.0]), acceleration=st.sampled_from([0.5, 5.0, 50.0]))
    def limits(self, speed, acceleration):
        self.settings = replace(self.settings, speed_scaling=speed, max_acceleration=acceleration)
        self.relax()
        self.controller.set_limits(self.settings)

    @precondition(lambda self: self.named == 'small')
    @rule(name=st.sampled_from(['small', 'jaw']))
    def description(self, name):
        """The finger has another name."""
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
        state, arm = self.controller.state, self.model.first.arm
        assert state in COMMANDING or state in (State.FAULTED, State.INACTIVE)
        assert set(self.names) <= set(sample.names)
        assert np.isfinite(sample.positions).all()
        assert np.isfinite(sample.velocities).all()
        far = np.where(arm.prismatic, FAR_LINEAR, FAR)  # outside its limits where no joint can be
        if self.measured:
            assert set(self.names) <= self.seen.keys()
            newest = np.array([self.seen[name][-1] for name in self.names])
            # It brakes from what was believed, and rests as inactive if it was deactivated meanwhile.
            may = state in (State.FAULTED, State.INACTIVE)
            assert may or (self.outside(newest) <= far).all(), 'only a fault moves it'
        if sample.trajectory is not None:
            order = [sample.trajectory.names.index(name) for name in self.names]
            assert (self.outside(sample.trajectory.positions[:, order]) <= far).all()
        before, self.last, excess = self.last, sample, self.excesses(sample)
        q, speed = self.rows_of(sample)
        assert (np.abs(speed) <= self.fastest + 1e-6).all()
        if self.settings.max_tool_speed:
            motion = arm.jacobian(q)[:3] @ speed
            assert np.linalg.norm(motion) <= self.settings.max_tool_speed + 1e-6
        if before is None:
            assert (self.outside(q) <= far + 1e-6).all()
            for i, name in enumerate(self.names if self.measured else ()):
                nearest = min(abs(q[i] - seen) for seen in self.seen[name])
                assert nearest <= self.fastest[i] * self.gap + 1e-6, 'it starts where it was measured'
        else:
            old, rate = self.rows_of(before)
            assert (self.outside(q) <= np.maximum(self.outside(old), 0.0) + 1e-6).all()
            for was, now in zip(self.excess, excess, strict=True):
                assert was > 0.0 or now <= SLIGHTLY, 'in the box, in the cone and free of collisions'
            if not self.output.runs_plans:  # a controller goes on without samples
                time = max(dt, self.gap)
                assert (np.abs(q - old) <= self.fastest * time + 1e-6).all()
                assert (np.abs(speed - rate) <= self.hardest * time + 1e-6).all()
        self.excess = excess
        if not sample.velocities.any():
            self.fastest = self.hardest = np.zeros(len(self.names))
            self.relax()

    def rows_of(self, sample: Setpoint) -> tuple[np.ndarray, np.ndarray]:
        """The joints of the arm: beside it a joint may be shown where it is measured."""
        order = [sample.names.index(name) for name in self.names]
        return sample.positions[order], sample.velocities[order]

    def outside(self, q: np.ndarray) -> np.ndarray:
        return np.maximum(self.model.first.arm.lower - q, q - self.model.first.arm.upper)

    def excesses(self, sample: Setpoint) -> tuple[float, float, float]:
        """How far the tool is outside the workspace, a ball joint outside its cone, parts in each other."""
        q, corners = self.rows_of(sample)[0], np.array(self.settings.workspace)
        box = cone = depth = -1.0
        if corners.any():
            point = self.model.first.arm.fk(q)[0]
            box = float(np.max([corners[:3] - point, point - corners[3:]]))
        if self.model.first.arm.balls:
            cone = self.model.first.arm.ball_excess(q)
        if self.model.collision is not None:
            named = dict(zip(sample.names, sample.positions.tolist(), strict=True))
            depth = -self.model.collision.distance(self.model.joints.filled(named))[0]
        return box, cone, depth

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
            self.measure_at(self.names, 0.0)
            self.tick(1, PERIOD)
        assert stops <= 3
        assert self.controller.state is State.HOLDING, self.controller.condition()
        if self.named == 'small':  # others may be in a collision, or outside the workspace
            self.controller.submit(Asked({'yaw': 0.123}))
            boxed = any(self.settings.workspace)
            assert self.reports[-1].status == 'solved' or boxed, self.reports[-1].message


@pytest.mark.slow
def test_no_sequence_of_events_leads_to_a_forbidden_sample():
    explore = 'IK_NODE_EXPLORE' in os.environ  # else there is no time to look for a shorter sequence
    run_state_machine_as_test(
        Sequences,
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=20,
            phases=tuple(Phase) if explore else (Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )
