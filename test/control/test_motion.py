# SPDX-License-Identifier: Apache-2.0
"""JointMotion and its gate: no sample breaks a limit, whatever is asked; every target is reached."""

from __future__ import annotations

import math

import numpy as np
import pytest
from control_harness import reject
from hypothesis import example, given, settings
from hypothesis import strategies as st
from limit_judge import Judge

from ik_node.control.arm_motion import JointGroup
from ik_node.control.checks import JointGate, States
from ik_node.control.motion import RETURN_SPEED, JointMotion
from ik_node.control.paths import MotionLimits
from ik_node.control.trajectory import MotionState
from ik_node.errors import InputError

INF = math.inf


def one_joint(lower=-1.0, upper=1.0, position=0.0, velocity=2.0, acceleration=5.0, jerk=50.0) -> JointMotion:
    motion = JointMotion([lower], [upper], [position])
    motion.set_limits([velocity], [acceleration], [jerk])
    return motion


def run(motion: JointMotion, dt: float = 0.01, seconds: float = 60.0) -> np.ndarray:
    """Positions until rest, (m, n)."""
    samples = [motion.position]
    for _ in range(int(seconds / dt)):
        if not motion.moving:
            return np.array(samples)
        samples.append(motion.step(dt)[0])
    raise AssertionError(f'still moving after {seconds} s at {motion.position}')


def random_motion(rng: np.random.Generator, n: int):
    """A motion with random limits at a random place, and those limits."""
    lower, upper = -rng.uniform(0.01, 3.0, n), rng.uniform(0.01, 3.0, n)
    if rng.random() < 0.5:  # many joints cannot be at 0
        lower, upper = np.array([lower, upper]) + rng.uniform(-4.0, 4.0, n)
    limits = [rng.uniform(0.2, 5.0, n), rng.uniform(0.5, 30.0, n)]
    limits.append(limits[1] * rng.uniform(0.3, 30.0, n))
    motion = JointMotion(lower, upper, rng.uniform(lower, upper))
    motion.set_limits(*limits)
    return motion, lower, upper, limits


def random_target(rng, lower, upper):
    kind = rng.integers(3)
    if kind == 0:
        return rng.uniform(lower, upper)
    if kind == 1:
        return np.where(rng.random(lower.size) < 0.5, lower, upper)  # where overshoots would show
    return rng.uniform(-10.0, 10.0, lower.size)  # outside: clipped


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.booleans())
@example(69, 1, True)
def test_limits_hold_on_every_sample_whatever_is_asked(seed, n, follows):
    """Targets inside, at and beyond the limits, moving or not, stops, other limits; the gate agrees."""
    rng = np.random.default_rng(seed)
    _, lower, upper, (velocity, acceleration, jerk) = random_motion(rng, n)
    if follows:
        jerk = 10.0 * acceleration
    limits = MotionLimits(lower, upper, velocity, acceleration, jerk)
    group = JointGroup(tuple(map(str, range(n))), np.arange(n), limits, rng.uniform(lower, upper))
    changes = not follows and rng.random() < 0.5  # of limits: then jerk may be exceeded
    motion = group.motion
    judge = Judge(lower, upper, velocity, acceleration, INF if changes else jerk)
    amplitude, rate, phase = rng.uniform(0.0, 3.0), rng.uniform(0.1, 12.0), rng.uniform(0.0, 6.0)
    judge(0.0, motion.position, motion.velocity, motion.acceleration)
    time = 0.0
    for _ in range(200):
        dt = 0.01 if follows else rng.uniform(0.001, 0.02)  # what follows is blended with regular periods
        if follows and rng.random() < 0.95:
            turn = rate * time + phase
            rows = np.sin(turn), rate * np.cos(turn), -(rate**2) * np.sin(turn)
            target = [np.full(n, amplitude * row) for row in rows]
            target[0] += 0.01 * rng.normal(size=n) + 2.0 * (time > 3.0)
            motion.track(MotionState(*target), 0.04)
        elif rng.random() < 0.1:
            group.go_to(np.where(rng.random(n) < 0.1, np.nan, random_target(rng, lower, upper)))
        if rng.random() < 0.01:
            motion.stop()
        if changes and rng.random() < 0.03:
            scale = rng.uniform(0.1, 1.0, (3, 1))
            group.limit(MotionLimits(lower, upper, *(scale * np.array([velocity, acceleration, jerk]))))
        assert group.step(dt) is None
        judge(dt, motion.position, motion.velocity, motion.acceleration)
        time += dt
    motion.stop()
    for _ in range(1000):
        group.step(0.02)
    assert not motion.moving


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_the_newest_target_is_reached_and_kept(seed, n):
    rng = np.random.default_rng(seed)
    motion, lower, upper, _ = random_motion(rng, n)
    for _ in range(rng.integers(1, 5)):
        target = rng.uniform(lower, upper)
        motion.go_to(target)
        for _ in range(rng.integers(0, 50)):
            motion.step(0.01)
    motion.go_to(target)
    run(motion, seconds=200.0)
    assert motion.position == pytest.approx(target, abs=1e-8)
    assert not motion.velocity.any()
    assert not motion.step(0.01)[1].any()


@pytest.mark.parametrize(('hard', 'jerk', 'soonest', 'latest'), [(False, 50.0, 0.29, 0.35), (True, 200.0, 0.12, 0.15)])
def test_a_hard_stop_exceeds_the_jerk_limit_alone_and_rests_sooner(hard, jerk, soonest, latest):
    motion = one_joint(-9.0, 9.0)
    motion.go_to([5.0])
    for _ in range(12):  # it speeds up
        motion.step(0.01)
    judge = Judge(velocity=2.0, acceleration=5.0, jerk=jerk)
    judge(0.0, *motion.state)
    motion.stop(hard)
    time = 0.0
    while motion.moving:
        motion.step(0.001)
        judge(0.001, *motion.state)
        time += 0.001
    assert soonest < time < latest
    motion.go_to([0.0])
    motion.step(0.01)
    assert not motion.hard


@pytest.mark.parametrize('guarded', [False, True])
def test_joints_rest_together_after_a_hard_stop_unless_that_takes_them_where_they_must_not_go(guarded: bool):
    motion = JointMotion([-9.0] * 2, [9.0] * 2, [0.0] * 2)
    motion.set_limits([2.0] * 2, [5.0] * 2, [50.0] * 2)
    motion.go_to([5.0, 1.0])
    for _ in range(80):
        motion.step(0.01)
    ratio = motion.velocity[1] / motion.velocity[0]
    motion.guard = (lambda *_: False) if guarded else None
    motion.stop(hard=True)
    ratios = []
    while motion.moving:
        motion.step(0.01)
        if motion.velocity[0] > 0.01:
            ratios.append(motion.velocity[1] / motion.velocity[0])
    assert (abs(min(ratios)) < 1e-9) if guarded else (np.ptp([ratio, *ratios]) < 0.01)


def stopping_hard(velocity: float, count: int) -> JointGroup:
    """A joint at a velocity, count samples after the begin of a hard stop."""
    limits = MotionLimits(*(np.array([x]) for x in (-9.0, 9.0, velocity, 5.0, 50.0)))
    group = JointGroup(('a',), np.arange(1), limits, np.zeros(1))
    group.go_to(np.array([5.0]))
    for k in range(30 + count):
        if k == 30:
            group.stop(hard=True)
        assert stepped(group) is None
    return group


def stepped(group: JointGroup) -> str | None:
    """Why the next setpoint is rejected."""
    group.step(0.01)
    return reject(group.gate, group.motion.position, group.motion.velocity, 0.01)


@pytest.mark.parametrize('jerk', [10.0, 400.0])
def test_another_jerk_limit_in_a_hard_stop_holds_from_then_on(jerk):
    group = stopping_hard(2.0, 3)
    group.limit(MotionLimits(*(np.array([x]) for x in (-9.0, 9.0, 2.0, 5.0, jerk))))
    while group.motion.moving:
        assert stepped(group) is None


@pytest.mark.parametrize('count', range(1, 10))
def test_a_target_that_moves_back_in_a_hard_stop_makes_a_slow_joint_no_faster(count):
    group, speed = stopping_hard(0.15, count), -0.13
    begin = group.motion.position
    for k in range(1, 60):
        group.motion.track(MotionState(begin + 0.01 * k * speed, np.array([speed]), np.zeros(1)), 0.05)
        assert stepped(group) is None
    assert group.motion.tracking


@pytest.mark.parametrize(('velocity', 'acceleration', 'jerk'), [(1.0, 5.0, 50.0), (0.5, 1.0, 10.0)])
def test_round_numbers_do_not_leave_a_joint_where_it_is(velocity, acceleration, jerk):
    """At these distances a time-optimal plan changes its shape."""
    for distance in (2.0 * acceleration**3 / jerk**2, velocity**2 / acceleration, 0.1, 0.2, 0.5):
        for start in (0.0, -1e-16, 1e-16, 0.1, -0.3):
            motion = one_joint(-9.0, 9.0, start, velocity, acceleration, jerk)
            motion.go_to([start + distance])
            assert run(motion)[-1, 0] == pytest.approx(start + distance, abs=1e-9)


def test_a_weaker_brake_asked_for_in_mid_motion_does_not_carry_a_joint_past_its_limit():
    motion = one_joint(position=-1.0, velocity=4.0, acceleration=7.5, jerk=28.0)
    motion.go_to([1.0])
    for _ in range(78):
        motion.step(0.01)
    motion.set_limits([1.5], [2.5], [28.0])  # with these alone it would come to rest 0.9 rad beyond
    motion.go_to([-0.6])
    path = run(motion)
    assert path.max() <= 1.0
    assert path[-1, 0] == pytest.approx(-0.6)


def test_joints_arrive_together():
    motion = JointMotion([-3.0] * 2, [3.0] * 2, [0.0] * 2)
    motion.set_limits([1.0] * 2, [5.0] * 2, [50.0] * 2)
    motion.go_to([2.0, 0.2])
    path = run(motion)
    assert (path[path[:, 0] < 1.9][:, 1] < 0.199).all()
    assert (path[path[:, 1] < 0.19][:, 0] < 1.99).all()


@pytest.mark.parametrize(('limit', 'end'), [(INF, 2.0 * math.pi - 3.0), (3.1, -3.0)])
def test_only_a_joint_without_limits_goes_the_short_way_round(limit, end):
    motion = one_joint(-limit, limit, position=3.0)
    motion.go_to([-3.0])
    path = run(motion)[:, 0]
    assert path[-1] == pytest.approx(end)
    assert (np.diff(path) * (end - 3.0) >= -1e-12).all()


@pytest.mark.parametrize('low', [-1.0, 0.1])  # a joint that cannot be at 0, too
def test_stop_rests_soon_and_forgets_the_target(low):
    motion = JointMotion([low, -1.0], [1.8, 1.0], [0.2, 0.3])
    motion.set_limits([2.0] * 2, [5.0] * 2, [50.0] * 2)
    motion.go_to([1.8, 0.3])
    for _ in range(30):
        motion.step(0.01)
    assert motion.velocity[0] > 0.5
    motion.stop()
    path = run(motion, seconds=1.0)
    assert (np.diff(path[:, 0]) >= 0.0).all()
    assert 0.01 < path[-1, 0] - path[0, 0] < 0.6
    assert (path[:, 1] == 0.3).all()
    assert motion.step(0.01)[0] == pytest.approx(path[-1])


@pytest.mark.parametrize(('start', 'limit'), [(1.3, 1.0), (-1.3, -1.0)])
def test_a_joint_outside_its_limits_comes_back_slowly(start, limit):
    motion = JointMotion([-1.0, -1.0], [1.0, 1.0], [start, 0.5])
    motion.set_limits([2.0, 2.0], [5.0, 5.0], [50.0, 50.0])
    for _ in range(10):
        motion.step(0.01)
    assert motion.position[0] == start  # without a target nothing moves
    assert motion.outside.tolist() == [True, False]
    motion.go_to([0.0, 0.0])
    path = run(motion)
    assert path[-1] == pytest.approx([0.0, 0.0], abs=1e-8)
    distance = np.abs(path[:, 0])
    assert (np.diff(distance) <= 1e-12).all()  # never further out, never back out
    back = distance > 1.0 + 1e-6
    assert back.sum() > 100
    assert np.abs(np.diff(path[:, 0]))[back[1:]].max() <= RETURN_SPEED * 2.0 * 0.01 + 1e-12
    assert (path[back][:, 1] == 0.5).all()  # the others wait
    assert abs(limit) == 1.0


def test_a_joint_outside_can_be_stopped_and_sent_on():
    motion = one_joint(position=1.5)
    motion.go_to([0.0])
    for _ in range(50):
        motion.step(0.01)
    motion.stop()
    rest = run(motion)[-1, 0]
    assert 1.0 < rest < 1.5
    motion.go_to([0.2])
    motion.go_to([0.3])
    assert run(motion)[-1, 0] == pytest.approx(0.3)


def test_a_locked_joint_stays():
    motion = JointMotion([0.3, -1.0], [0.3, 1.0], [0.3, 0.0])
    motion.set_limits([1.0] * 2, [5.0] * 2, [50.0] * 2)
    motion.go_to([0.9, 0.5])
    path = run(motion)
    assert (path[:, 0] == 0.3).all()
    assert path[-1, 1] == pytest.approx(0.5)


@pytest.mark.parametrize('bad', [[math.nan], [0.0, 0.0], 'x', None])
def test_nonsense_is_rejected_and_changes_nothing(bad):
    motion = one_joint()
    motion.go_to([0.5])
    motion.step(0.01)
    before = motion.position.copy()
    for call in (motion.go_to, motion.reset, lambda x: motion.set_limits(x, [1.0], [1.0])):
        with pytest.raises(InputError):
            call(bad)
    assert motion.position == before
    for wrong in (lambda: JointMotion([1.0], [0.0], [0.5]), lambda: one_joint(velocity=0.0)):
        with pytest.raises(InputError):
            wrong()


NAMES = ('a', 'b', 'c')
GATED = MotionLimits(*(np.full(3, value) for value in (-1.0, 1.0, 2.0, 5.0, 50.0)))
DT = 0.01


def new_gate() -> JointGate:
    return JointGate(NAMES, np.arange(3), GATED)


def at_rest() -> JointGate:
    gate = new_gate()
    for _ in range(2):
        assert reject(gate, np.zeros(3), np.zeros(3), DT) is None
    return gate


@pytest.mark.slow
def test_the_quick_comparison_lets_nothing_pass_that_the_full_one_rejects():
    rng, rejected = np.random.default_rng(4), 0
    for _ in range(400):
        quick, full = at_rest(), at_rest()
        full._passes = lambda *_: False
        loose = np.where(np.arange(3) == rng.integers(4), 1.0, 1e3)  # so that each limit comes to count
        for gate in (quick, full):
            rates = GATED.velocity, GATED.acceleration, GATED.jerk
            gate.set_limits(*(rate * scale for rate, scale in zip(rates, loose, strict=True)))
        velocity, position = np.zeros(3), np.zeros(3)
        for _ in range(3):
            dt = rng.uniform(0.2, 2.0) * DT
            velocity = velocity + rng.uniform(-1.0, 1.0, 3) * rng.choice([0.0005, 0.002, 0.005, 0.06, 3.0]) * dt / DT
            position = position + velocity * dt * (3.0 if rng.random() < 0.05 else 1.0)
            if rng.random() < 0.1:
                position[rng.integers(3)] = rng.choice([np.nan, np.inf, -1.0, 1.0, 1.00001])
            reasons = [reject(gate, position, velocity, dt) for gate in (quick, full)]
            assert reasons[0] == reasons[1]
            if reasons[0] is not None:
                rejected += 1
                break
    assert 60 < rejected < 390


def second(value: float) -> np.ndarray:
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
    reason = reject(at_rest(), second(position), second(velocity), DT)
    assert reason is not None
    assert words in reason


def test_a_joint_outside_its_limits_may_come_back_only():
    gate = new_gate()
    assert reject(gate, second(1.2), np.zeros(3), DT) is None
    assert reject(gate, second(1.199), np.zeros(3), DT) is None
    assert 'position 1.2' in str(reject(gate, second(1.2), np.zeros(3), DT))


@pytest.mark.parametrize(
    ('speed', 'acceleration', 'words'),
    [
        (2.03, 5.9, ''),
        (2.05, 0.0, 'velocity 2.05, allowed: -2.04 to 2.04'),
        (0.0, 6.1, 'acceleration 6.1, allowed: -6 to 6'),
        (11.0, 0.0, 'position 1.045, allowed: -1.001 to 1.001'),
    ],
)
def test_until_a_controller_joins_a_trajectory_its_states_may_exceed_limits_by_little(speed, acceleration, words):
    times = 0.005 * np.arange(21)
    rows = np.array([[second(speed * time), second(speed), second(acceleration)] for time in times])
    if speed > 3.0:
        rows[:, 1] = 0.0
    states = States(times, rows[:, 0], rows[:, 1], 0.1, rows[:, 2])
    found = new_gate().violation(states)
    assert found is None if not words else words in found.sentence
