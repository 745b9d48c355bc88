"""What controllers receive: trajectories of whole moves, and lists of positions with a gripper in them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from control_harness import PERIOD, SETTINGS, Rig
from small_arm import ARM_JOINTS, arm_urdf

from ik_node.control.arm_model import ArmModel
from ik_node.control.controller import ArmController
from ik_node.control.controller_trajectories import JOIN, LAG, WINDOW, JointTrajectory, Trajectories
from ik_node.control.outputs import Output, Plan, Sample
from ik_node.control.states import State
from ik_node.control.tool_path import ToolPath
from ik_node.errors import InputError

SHARED = (*ARM_JOINTS[::-1], 'finger')


class Controller(Output):
    """Keeps the trajectories that a controller is sent, with their times."""

    runs_plans = True

    def __init__(self) -> None:
        self.trajectories = Trajectories()
        self.sent: list[tuple[float, JointTrajectory]] = []
        self.samples: list[Sample] = []

    def planned(self, plan: Plan) -> None:
        self.trajectories.planned(plan)

    def sampled(self, sample: Sample) -> None:
        self.samples.append(sample)
        self._keep(self.trajectories.sampled(sample))

    def halted(self, measured) -> None:
        self._keep(self.trajectories.halted(measured))

    def _keep(self, trajectory: JointTrajectory | None) -> None:
        if trajectory is not None:
            self.sent.append((self.samples[-1].time, trajectory))


class Driven(Rig):
    """A measured arm behind a controller that carries out trajectories."""

    def __init__(self, model: ArmModel, **settings: object) -> None:
        super().__init__(model, measured=True)
        self.output = Controller()
        self.settings = replace(SETTINGS, **settings)
        self.controller = ArmController(self.reports.append, [self.output])
        self.controller.expect_measured(True)
        self.controller.activate()
        assert self.controller.configure(model, self.settings)

    def tick(self, count: int = 1, dt: float = PERIOD) -> Sample | None:
        """Let time pass for an arm that is where it was commanded to."""
        sample = None
        for _ in range(count):
            sample = super().tick(1, dt)
            if sample is not None:
                self.measure(**dict(zip(sample.names, sample.positions.tolist(), strict=True)))
        return sample


@pytest.fixture
def rig(model: ArmModel) -> Driven:
    rig = Driven(model)
    rig.measure_all(yaw=0.2)
    rig.tick(2)
    return rig


def cubic(trajectory: JointTrajectory, start: tuple[np.ndarray, ...], count: int = 40) -> np.ndarray:
    """Positions, velocities and accelerations (N, 3, n) of a controller that starts at start."""
    rows = []
    times = [0.0, *trajectory.times]
    states = [start, *zip(trajectory.positions, trajectory.velocities, strict=True)]
    for (begin, end), ((p0, v0), (p1, v1)) in zip(
        itertools.pairwise(times), itertools.pairwise(states), strict=True
    ):
        h = end - begin
        for s in np.linspace(0.0, 1.0, count):
            d = (p1 - p0) / h
            a, b = (v0 + v1 - 2 * d) / h**2, (3 * d - 2 * v0 - v1) / h
            t = s * h
            rows.append((p0 + v0 * t + b * t**2 + a * t**3, v0 + 2 * b * t + 3 * a * t**2, 2 * b + 6 * a * t))
    return np.array(rows)


def valid(trajectory: JointTrajectory) -> bool:
    """Whether a joint_trajectory_controller takes it."""
    increasing = trajectory.times[0] > 0.0 and (np.diff(trajectory.times) > 0.0).all()
    return bool(
        increasing and not trajectory.velocities[-1].any() and np.isfinite(trajectory.positions).all()
    )


def test_a_move_is_one_trajectory_within_the_limits_between_its_points_too(rig: Driven) -> None:
    rig.go(yaw=1.5, elbow=-0.3)
    start = rig.output.samples[-1].positions
    rig.tick(300)
    assert rig.state is State.HOLDING
    ((time, trajectory),) = rig.output.sent
    assert valid(trajectory)
    assert trajectory.names == ARM_JOINTS
    assert trajectory.positions[-1] == pytest.approx([1.5, 0.0, -0.3, 0.0, 0.0])
    assert len(trajectory.times) < 40
    path = cubic(trajectory, (start, np.zeros(5)))
    assert np.abs(path[:, 1]).max() <= 0.5 * 2.0 + 1e-3
    assert np.abs(path[:, 2]).max() <= 5.0 * 1.02
    for sample in rig.output.samples:  # the controller runs LAG behind the samples
        after = sample.time - time + LAG
        if 0.0 < after < trajectory.times[-1]:
            i = np.searchsorted(trajectory.times, after)
            piece = cubic(trajectory, (start, np.zeros(5)), 400)[400 * i : 400 * (i + 1), 0]
            assert np.abs(piece - sample.positions).max(axis=1).min() < 2e-3


def test_a_straight_line_is_straight_between_the_points_of_its_trajectory_too(rig: Driven) -> None:
    rig.go(yaw=0.3, shoulder=0.6, elbow=0.9, wrist=0.7)
    rig.tick(400)
    arm, start = rig.model.arm, rig.output.samples[-1].positions
    begin, direction = arm.fk(start)
    end = np.add(begin, [0.0, 0.06, 0.03])
    count = len(rig.output.sent)
    report = rig.ask(ToolPath([end], [direction]))
    assert report.phase == 'moving', report.message
    rig.tick(400)
    assert rig.state is State.HOLDING
    ((_, trajectory),) = rig.output.sent[count:]
    assert valid(trajectory)
    path = cubic(trajectory, (start, np.zeros(5)), 5)
    assert np.abs(path[:, 2]).max() <= 5.0 * 1.02
    points = np.array([arm.fk(q)[0] for q in path[:, 0]])
    share = np.clip((points - begin) @ (end - begin) / ((end - begin) @ (end - begin)), 0.0, 1.0)
    assert np.linalg.norm(points - begin - share[:, None] * (end - begin), axis=1).max() <= 2e-4
    assert points[-1] == pytest.approx(end, abs=1e-5)


def test_moving_goals_replace_the_trajectory_at_a_bounded_rate(rig: Driven) -> None:
    for k in range(60):
        rig.go(yaw=0.21 + 0.01 * k)
        rig.tick()
    rig.settle()
    times = [time for time, _ in rig.output.sent]
    assert 8 <= len(times) <= 60 * PERIOD / WINDOW + 2
    assert all(b - a >= WINDOW - 1e-9 for a, b in itertools.pairwise(times))
    assert all(valid(trajectory) for _, trajectory in rig.output.sent)
    assert all(trajectory.times[0] >= JOIN for _, trajectory in rig.output.sent[1:])
    assert rig.output.sent[-1][1].positions[-1] == pytest.approx([0.8, 0.0, 0.0, 0.0, 0.0])


def test_a_stop_is_sent_at_once(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(40)
    rig.go(yaw=1.6)
    rig.tick(1)
    rig.controller.stop()
    rig.tick(1)
    (_, (before, _), (time, trajectory)) = rig.output.sent
    assert time - before == pytest.approx(PERIOD)
    assert valid(trajectory)
    rig.tick(100)
    assert rig.state is State.STOPPED
    assert trajectory.positions[-1, 0] == pytest.approx(rig.position('yaw'))
    assert trajectory.positions[-1, 0] < 1.0


def test_a_following_error_halts_the_controller_where_the_arm_is(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(100)
    rig.measure_all(yaw=0.3)
    assert rig.state is State.FAULTED
    rig.tick(1)
    _, trajectory = rig.output.sent[-1]
    assert trajectory.positions == pytest.approx(np.array([[0.3, 0.0, 0.0, 0.0, 0.0]]))
    assert not trajectory.velocities.any()
    count = len(rig.output.sent), len(rig.output.samples)
    rig.tick(50)
    assert count == (len(rig.output.sent), len(rig.output.samples))


def test_a_node_that_was_suspended_goes_on_where_the_controller_is(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(40)
    at = rig.position('yaw')
    rig.tick(1, dt=0.3)
    assert rig.position('yaw') - at > 0.25  # at 1 rad/s
    assert rig.state is State.MOVING
    rig.tick(1, dt=0.9)
    assert rig.position('yaw') == pytest.approx(1.5, abs=1e-3)
    assert len(rig.output.sent) == 1
    rig.go(yaw=0.0)
    rig.tick(40)
    rig.tick(1, dt=30.0)  # so long that the measurements are stale: the controller has arrived
    assert rig.state is State.FAULTED
    assert rig.output.sent[-1][1].positions[-1, 0] == pytest.approx(0.0)


def test_an_output_that_fails_stops_the_arm_and_says_why(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(40)
    rig.controller.fail('the controller has gone')
    rig.tick(100)
    assert rig.reports[-1].message == 'the controller has gone; call ~/resume to continue'
    assert rig.state is State.FAULTED
    assert rig.position('yaw') < 1.0


def test_a_gripper_of_the_same_controller_is_held_where_it_was_measured_until_a_goal_moves_it(
    model: ArmModel,
) -> None:
    rig = Driven(model, controller_joints=SHARED)
    rig.measure_all()
    rig.tick(3)
    assert not rig.output.samples
    assert rig.controller.condition()[1] == 'waiting for measured joints: finger'
    rig.measure(finger=0.01)
    rig.tick(1)
    rig.measure(finger=0.012)  # it sags: its command must not follow
    rig.tick(1)
    assert rig.output.samples[-1].listed() == [0.0, 0.0, 0.0, 0.0, 0.0, 0.01]
    rig.go(yaw=0.5)
    rig.tick(1)
    assert rig.output.sent[-1][1].names == SHARED
    assert (rig.output.sent[-1][1].positions[:, 5] == 0.01).all()
    rig.go(finger=0.03)
    rig.tick(20)
    assert rig.output.sent[-1][1].positions[-1, 5] == pytest.approx(0.03)
    assert rig.output.sent[-1][1].positions[-1, 4] == pytest.approx(0.5)
    assert rig.output.samples[-1].listed()[5] > 0.01


def test_a_gripper_that_no_description_has_is_held_too(model: ArmModel) -> None:
    rig = Driven(model, controller_joints=(*ARM_JOINTS, 'jaw'))
    rig.measure_all(yaw=0.1)
    rig.tick(1)
    assert not rig.output.samples
    rig.measure(jaw=0.7)
    rig.tick(1)
    rig.measure(jaw=0.8)
    rig.tick(1)
    assert rig.output.samples[-1].listed() == [0.1, 0.0, 0.0, 0.0, 0.0, 0.7]


def test_the_joints_of_the_controller_are_checked() -> None:
    with pytest.raises(InputError, match='different names'):
        replace(SETTINGS, controller_joints=('yaw', 'yaw'))
    with pytest.raises(InputError, match='must have every joint of the arm, missing: "shoulder", "elbow"'):
        ArmModel.check(arm_urdf(), replace(SETTINGS, controller_joints=('yaw', 'roll', 'wrist')))


def test_a_bad_sample_halts_the_controller(rig: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.go(yaw=1.5)
    rig.tick(40)
    rig.measure_all(yaw=0.35)
    monkeypatch.setattr(type(rig.controller._joints.arm), 'step', lambda *_: 'made up')
    rig.tick(1)
    assert rig.state is State.FAULTED
    assert rig.output.sent[-1][1].positions[-1, 0] == pytest.approx(0.35)
