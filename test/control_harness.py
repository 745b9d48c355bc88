# SPDX-License-Identifier: Apache-2.0
"""What the control tests share: a controller of a small arm, its clock, and what it said and sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_arm import ARM_JOINTS, PARAMETERS, folding_urdf

from ik_node.control.checks import Gate, States
from ik_node.control.controller import ArmController
from ik_node.control.feedback import CALM
from ik_node.control.models import ArmModel, build_models
from ik_node.control.outputs import Output
from ik_node.control.requests import Report, Snapshot
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.control.states import State
from ik_node.control.trajectory import JointTrajectory, Setpoint
from ik_node.model.urdf.description import load_description
from ik_node.share import share_path
from ik_node.steady import steady

SETTINGS = ArmSettings(**PARAMETERS)
PERIOD = 1.0 / SETTINGS.publish_rate
AFTER = 1e9  # [s] added to a made-up arrival: on the real clock it is later than all stops of a test


def arm_model(text: str, settings: ArmSettings = SETTINGS, before: ArmModel | None = None) -> ArmModel:
    """Return the model of an arm with one tool. before: the one that there was."""
    models = {} if before is None else {'': before}
    return build_models(text, RobotSettings(settings, {}), models)['']


@dataclass
class Asked:
    """A request for something fixed."""

    what: object
    tool: str = ''
    source: str = 'test'
    moves: bool = True
    arrival: float = field(default_factory=steady)
    received: float = 0.0
    goal_time: float | None = None
    stamp: str = ''
    frame: str = ''

    def resolve(self, _: Snapshot) -> object:
        return self.what


class Kept(Output):
    """An output that keeps all that it is given."""

    def __init__(self) -> None:
        self.samples: list[Setpoint] = []

    def take(self, sample: Setpoint) -> None:
        self.samples.append(sample)


def reject(gate: Gate, values: object, rates: object = 0.0, dt: float = PERIOD, moving: bool = True) -> str | None:
    """Why a gate alone rejects a setpoint dt [s] after the last one; it continues from one that passes."""
    values = np.array(values, dtype=np.float64)
    states = States.setpoint(dt, values, np.broadcast_to(rates, values.shape), moving)
    violation = gate.violation(states)
    if violation is not None:
        return violation.sentence
    gate.accept(states)
    return None


class Rig:
    """A controller with a clock that only tick() moves."""

    def __init__(
        self,
        model: ArmModel,
        settings: ArmSettings = SETTINGS,
        *,
        measured: bool = False,
        active: bool = True,
    ) -> None:
        self.reports: list[Report] = []
        self.output = Kept()
        self.controller = ArmController(self.reports.append, [self.output])
        self.model, self._measured = model, measured
        self.time = 100.0
        self.settings = settings
        self.controller.expect_measured(measured)
        if active:
            self.controller.activate()
        assert self.controller.configure(model, settings)

    @property
    def state(self) -> State:
        return self.controller.state

    def tick(self, count: int = 1, dt: float = PERIOD) -> Setpoint | None:
        """Let time pass; return the last sample."""
        sample = None
        for _ in range(count):
            self.time += dt
            sample = self.controller.tick(self.time)
        return sample

    def settle(self) -> None:
        """Let time pass until the arm is at rest; if it is measured, it follows its commands."""
        for _ in range(5000):
            sample = self.tick()
            if sample is not None and self._measured:
                self.measure(**{name: place for name, place in positions(sample).items() if name in ARM_JOINTS})
            if self.state not in (State.MOVING, State.STOPPING):
                return
        raise AssertionError('the arm never comes to rest')

    def measure(self, **positions: float) -> None:
        self.controller.on_measured(positions, self.time)

    def measure_all(self, **positions: float) -> None:
        self.measure(**{**dict.fromkeys(ARM_JOINTS, 0.0), **positions})

    def rest_at(self, **positions: float) -> Setpoint | None:
        """Measure the arm at rest for long enough to be believed after a jump; return the last sample."""
        sample = None
        for _ in range(round(CALM / PERIOD) + 2):
            self.measure_all(**positions)
            sample = self.tick()
        return sample

    def ask(self, what: object) -> Report:
        """Submit a request; return the report on it."""
        before = len(self.reports)
        self.controller.submit(Asked(what))
        return next(report for report in self.reports[before:] if report.request is not None)

    def go(self, **positions: float) -> Report:
        return self.ask(positions)

    def position(self, name: str) -> float:
        """The commanded position of a joint."""
        snapshot = self.controller.snapshot()
        return float(snapshot.values[self.model.joints.variables.index(name)])


class Controller(Output):
    """Keeps the trajectories that a controller is sent, with their times."""

    runs_plans = only_listed = True

    def __init__(self) -> None:
        self.sent: list[tuple[float, JointTrajectory]] = []
        self.samples: list[Setpoint] = []
        self.delay = 0.0  # [s] of this computer, which is busy
        self.lost = 0  # how many of the next trajectories do not arrive
        self.error: Exception | None = None  # raised by the next command

    def late(self, _: float) -> float:
        return self.delay

    def take(self, sample: Setpoint) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.samples.append(sample)
        self._keep(sample.trajectory)

    def halted(self, hold_trajectory: JointTrajectory | None) -> None:
        self._keep(hold_trajectory)

    def _keep(self, trajectory: JointTrajectory | None) -> None:
        if trajectory is not None and self.lost:
            self.lost -= 1
        elif trajectory is not None:
            self.sent.append((self.samples[-1].time, trajectory))


class Driven(Rig):
    """A measured arm behind a controller that carries out trajectories."""

    def __init__(self, model: ArmModel, base: ArmSettings = SETTINGS, **settings: object) -> None:
        super().__init__(model, measured=True)
        self.output = Controller()
        self.settings = replace(base, **settings)
        self.controller = ArmController(self.reports.append, [self.output])
        self.controller.expect_measured(True)
        self.controller.activate()
        assert self.controller.configure(model, self.settings)

    def tick(self, count: int = 1, dt: float = PERIOD) -> Setpoint | None:
        """Let time pass for an arm that is where it was commanded to."""
        sample = None
        for _ in range(count):
            sample = super().tick(1, dt)
            if sample is not None:
                self.measure(**dict(zip(sample.names, sample.positions.tolist(), strict=True)))
        return sample


def positions(sample: Setpoint) -> Mapping[str, float]:
    return dict(zip(sample.names, sample.positions.tolist(), strict=True))


def largest_step(samples: list[Setpoint]) -> float:
    rows = np.array([sample.positions for sample in samples])
    return float(np.abs(np.diff(rows, axis=0)).max(initial=0.0))


# Settings by which a node forbids goals

TOOL = {'tip_link': 'hand', 'tool_axis': (1.0, 0.0, 0.0), 'tool_point': (0.05, 0.0, 0.0)}
RULES = ['limits file', 'margins', 'workspace', 'collision', 'cone']
LIMITS = """
joint_limits:
  joint1: {has_position_limits: true, min_position: -0.4, max_position: 0.4}
  joint2: {has_velocity_limits: true, max_velocity: 0.3}
"""


def node_rules(name: str, folder: Path) -> tuple[str, dict[str, Any], str]:
    """Return a description, settings of a node, and a word of the rejections that they cause."""
    if name == 'collision':
        pytest.importorskip('coal')
        return folding_urdf(), TOOL, 'link "'
    if name == 'cone':
        return load_description(share_path('urdf', 'ball_joint_arm.urdf.xacro')), {}, 'ball joint'
    seed = load_description(share_path('urdf', 'seed_arm.urdf.xacro'))
    if name == 'limits file':
        (folder / 'limits.yaml').write_text(LIMITS)
        return seed, {'joint_limits_file': str(folder / 'limits.yaml')}, 'limits are -0.4 to 0.4'
    if name == 'margins':
        return seed, {'joint_limit_margins': (0.6,)}, 'cannot move to'
    return seed, {'workspace': (-0.3, -0.5, 0.0, 0.8, 0.5, 0.9)}, 'workspace'
