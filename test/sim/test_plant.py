# SPDX-License-Identifier: Apache-2.0
"""The simulated arm: what its controllers take and reject, and how a real arm differs from an ideal one."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from rclpy.parameter import Parameter
from shared_files import shared_path
from small_arm import ARM_JOINTS, arm_urdf
from stepped import world

from ik_node.errors import InputError
from ik_node.model.inertia import link_inertias
from ik_node.model.urdf.description import load_description
from ik_node.model.urdf.reader import read_urdf
from ik_node.sim.node import PlantNode
from ik_node.sim.plant import Controllers, Plant, PlantSettings

pytest.importorskip('mujoco')
ROOT = Path(__file__).resolve().parents[2]
SEED = load_description(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
NAMES = (*ARM_JOINTS, 'finger')


def plant(**settings: object) -> Plant:
    return Plant(arm_urdf(), PlantSettings(**settings), 0.0)


def send(plant: Plant, time: float, *positions: float) -> None:
    plant.command(lambda controllers, _: controllers.forward(positions), time)


def run(plant: Plant, begin: float, end: float) -> np.ndarray:
    """Measured positions (N, m) every 10 ms."""
    rows = []
    for time in np.arange(begin, end, 0.01) + 0.01:
        assert plant.advance(time) == []
        rows.append(plant.measured()[0])
    return np.array(rows)


def test_servos_reach_their_targets_and_mimic_joints_follow():
    arm = plant()
    assert arm.names == (*ARM_JOINTS, 'finger', 'other_finger')
    send(arm, 0.0, 0.5, -0.3, 0.2, 1.0, -1.0, 0.03)
    assert run(arm, 0.0, 2.0)[-1] == pytest.approx([0.5, -0.3, 0.2, 1.0, -1.0, 0.03, -0.03], abs=1e-4)


def test_a_trajectory_is_followed_by_cubics_from_where_the_command_is():
    controllers = Controllers(['a', 'b'], ['a', 'b'], np.array([1.0, 0.0]), 0.005)
    controllers.follow(5.0, ['a'], [1.0, 2.0], [[2.0], [2.5]], [[1.0], [0.0]])
    times = 5.0 + 0.005 * np.arange(401)
    rows = np.array([controllers.targets(time) for time in times])
    assert (rows[:, 1] == 0.0).all()
    assert rows[[0, 199, 400], 0] == pytest.approx([1.0, 2.0, 2.5], abs=1e-3)  # a period ahead
    velocity = np.gradient(rows[:, 0], times)
    assert velocity[[1, 199, 398]] == pytest.approx([0.0, 1.0, 0.0], abs=0.1)
    controllers.follow(7.0, ['b', 'a'], [1.0], [[1.0, 2.5]], [[0.0, 0.0]])
    assert controllers.targets(8.01) == pytest.approx([2.5, 1.0])


def line(speed: float, end: float, step: float = 0.1) -> tuple[list[float], ...]:
    """Times, positions, velocities and accelerations of a joint that moves at a speed, then stops."""
    times = [*np.arange(0.0, end, step).tolist(), end, end + 1.0]
    places = [[speed * min(time, end)] for time in times]
    speeds = [[speed if time < end else 0.0] for time in times]
    return times, places, speeds, [[0.0]] * len(times)


def largest_step(controllers: Controllers, begin: float, end: float) -> float:
    rows = [controllers.targets(time)[0] for time in np.arange(begin, end, 0.01)]
    return float(np.abs(np.diff(rows)).max())


def test_a_controller_remembers_the_time_of_its_last_command_a_period_early():
    """As the real one: what it joins from its last command is a step of two periods."""
    controllers = Controllers(['a'], ['a'], np.zeros(1))
    times, *rows = line(1.0, 3.0)
    controllers.follow(0.0, ['a'], times, *rows)
    largest_step(controllers, 0.0, 0.5)
    assert largest_step(controllers, 0.5, 1.0) == pytest.approx(0.01)
    ahead = [[place[0] + 1.0 + 0.009] for place in rows[0]]
    controllers.follow(0.999, ['a'], [time + 0.05 for time in times], [[x + 0.05] for (x,) in ahead], *rows[1:])
    assert largest_step(controllers, 0.99, 1.02) > 0.018


def test_a_trajectory_with_a_stamp_in_the_past_is_joined_without_a_step():
    controllers = Controllers(['a'], ['a'], np.zeros(1))
    times, *rows = line(1.0, 3.0)
    controllers.follow(0.0, ['a'], times, *rows, stamp=0.0)
    largest_step(controllers, 0.0, 1.0)
    controllers.follow(0.997, ['a'], times, *rows, stamp=0.0)
    assert largest_step(controllers, 0.99, 1.2) == pytest.approx(0.01)
    with pytest.raises(InputError, match='in the past'):
        controllers.follow(9.0, ['a'], times, *rows, stamp=0.5)


def test_positions_are_taken_in_the_next_period_and_the_newest_counts():
    controllers = Controllers(['a'], ['a'], np.zeros(1))
    assert controllers.targets(1.0) == [0.0]
    controllers.forward([0.1])
    controllers.forward([0.2])
    assert controllers.targets(1.009) == [0.0]
    assert controllers.targets(1.0101) == [0.2]


@pytest.mark.parametrize(
    ('names', 'times', 'positions', 'velocities', 'said'),
    [
        (['a'], [], [], [], 'needs points'),
        (['c'], [1.0], [[0.0]], [[0.0]], 'got "c"'),
        (['a', 'a'], [1.0], [[0.0, 0.0]], [[0.0, 0.0]], 'different'),
        (['a'], [-0.1], [[0.0]], [[0.0]], 'must increase'),
        (['a'], [1.0, 1.0], [[0.0], [0.0]], [[0.0], [0.0]], 'must increase'),
        (['a'], [1.0], [[0.0]], [[0.1]], 'last velocity'),
        (['a'], [1.0], [[0.0]], [[1.2e-7]], 'last velocity'),
        (['a'], [1.0], [[math.nan]], [[0.0]], 'finite'),
        (['a'], [1.0], [[0.0, 1.0]], [[0.0]], '1 numbers'),
    ],
)
def test_what_a_trajectory_controller_rejects(names, times, positions, velocities, said):
    controllers = Controllers(['a', 'b'], ['a', 'b'], np.zeros(2))
    with pytest.raises(InputError, match=said):
        controllers.follow(0.0, names, times, positions, velocities)
    assert not controllers.targets(2.0).any()


def test_lists_of_positions_have_one_for_each_joint_of_the_controller():
    controllers = Controllers(['a', 'b', 'c'], ['c', 'a'], np.zeros(3))
    controllers.forward([0.3, 0.1])
    assert controllers.targets(0.0) == pytest.approx([0.1, 0.0, 0.3])
    for positions in ([0.3], [0.3, math.inf]):
        with pytest.raises(InputError):
            controllers.forward(positions)
    controllers.drive(['b', 'camera'], [0.2, 7.0])
    assert controllers.targets(0.0) == pytest.approx([0.1, 0.2, 0.3])
    with pytest.raises(InputError, match='do not exist'):
        Controllers(['a'], ['b'], np.zeros(1))


@pytest.mark.slow
def test_the_most_loaded_joint_sags_by_the_droop():
    arm = Plant(SEED, PlantSettings(droop=0.05), 0.0)
    run(arm, 0.0, 2.0)
    # Stretched out, the load of the shoulder is near its worst.
    positions = np.zeros(len(arm.names))
    positions[1] = np.pi / 2
    send(arm, 2.0, *positions)
    sag = run(arm, 2.0, 5.0)[-1] - positions
    assert 0.03 < np.abs(sag).max() < 0.06
    ideal = Plant(SEED, PlantSettings(), 0.0)
    assert run(ideal, 0.0, 1.0)[-1] == pytest.approx(np.zeros(len(arm.names)), abs=1e-9)


def test_backlash_leaves_the_joint_short_of_its_target_on_either_side():
    arm = plant(backlash=0.02)
    send(arm, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert run(arm, 0.0, 2.0)[-1, 0] == pytest.approx(0.49, abs=1e-4)
    send(arm, 2.0, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert run(arm, 2.0, 4.0)[-1, 0] == pytest.approx(-0.49, abs=1e-4)


def test_commands_and_measurements_are_late_by_the_latency():
    moves = []
    for latency in (0.0, 0.1):
        arm = plant(latency=latency)
        send(arm, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
        moves.append(int((np.abs(run(arm, 0.0, 1.0)[:, 0]) > 0.1).argmax()))
    assert moves[1] - moves[0] == pytest.approx(20, abs=1)


def test_measurements_are_noisy_but_the_arm_is_not():
    arm = plant(noise=0.001)
    rows = run(arm, 0.0, 2.0)
    assert rows.std(axis=0) == pytest.approx(np.full(7, 0.001), rel=0.3)
    assert np.abs(arm.position).max() < 1e-9


def test_a_stall_of_the_simulation_is_no_leap_of_the_arm():
    arm = plant()
    send(arm, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    arm.advance(0.02)
    before = arm.position[0]
    arm.advance(100.0)
    assert abs(arm.position[0] - before) < 0.1
    arm.advance(50.0)
    assert run(arm, 50.0, 52.0)[-1, 0] == pytest.approx(0.5, abs=1e-4)


def test_a_command_before_the_clock_was_set_back_does_not_keep_later_ones_waiting():
    arm = plant(latency=0.05)
    arm.advance(100.0)
    send(arm, 100.0, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0)
    arm.advance(50.0)
    send(arm, 50.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert run(arm, 50.0, 52.0)[-1, 0] == pytest.approx(0.5, abs=1e-4)


def test_numbers_that_would_overflow_are_rejected():
    arm = plant()
    send(arm, 0.0, 1.7e308, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert arm.advance(0.1) == ['numbers must be finite, up to 1e+09']
    send(arm, 0.1, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert run(arm, 0.1, 2.0)[-1, 0] == pytest.approx(0.5, abs=1e-4)


def test_links_without_a_possible_inertia_get_one():
    bad = '<inertial><mass value="{}"/><inertia ixx="{}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    for values in (('0', '1'), ('nan', '1'), ('1', 'inf'), ('x', '1'), ('-1', '1')):
        text = arm_urdf().replace('<link name="l2"/>', f'<link name="l2">{bad.format(*values)}</link>')
        inertia = link_inertias(read_urdf(text), text)['l2']
        assert inertia.mass == pytest.approx(1.5 * 0.3)  # as long as the way to the elbow
        assert (np.linalg.eigvalsh(inertia.tensor) > 0.0).all()
    good = bad.format('2', '1')
    text = arm_urdf().replace('<link name="l2"/>', f'<link name="l2">{good}</link>')
    assert link_inertias(read_urdf(text), text)['l2'].mass == 2.0


def test_the_start_is_checked():
    assert plant(start=(0.1,)).position[:6] == pytest.approx([0.1] * 6)
    with pytest.raises(InputError, match='start must be one number or 6'):
        plant(start=(0.1, 0.2))


@pytest.mark.slow
def test_every_real_arm_can_be_simulated():
    for path in sorted(shared_path('arms').glob('*.urdf')):
        arm = Plant(load_description(path), PlantSettings(droop=0.01), 0.0)
        position = run(arm, 0.0, 1.0)[-1]
        assert np.isfinite(position).all()
        assert np.abs(position).max() < 0.05, path


@pytest.mark.slow
@pytest.mark.parametrize(('tools', 'topics'), [('', {'/joint_trajectory'}), ('left', {'/left/joint_trajectory'})])
def test_each_tool_has_a_trajectory_controller(tools: str, topics: set[str]) -> None:
    with world() as here:
        given = [Parameter('tools', value=[tools]), Parameter('robot_description', value=arm_urdf())]
        with closing(PlantNode(context=here.context, parameter_overrides=given)) as node:
            found = {one.topic_name for one in node.subscriptions}
    assert topics == {name for name in found if name.endswith('joint_trajectory')}
