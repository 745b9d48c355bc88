# SPDX-License-Identifier: Apache-2.0
"""Robot, Arm, IkSolver and Goal can be copied and sent to other processes, and answer the same bits there."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ik_node import Arm, Goal, IkSolver

URDF = Path(__file__).resolve().parents[2] / 'urdf'
ARM = Arm.from_file(
    URDF / 'xarm5_like.urdf.xacro', tool_axis=(0.6, 0.0, 0.8003), tool_point=(0.01, 0.02, 0.03)
)
COPIES: dict[str, Callable[[Any], Any]] = {
    'pickle': lambda thing: pickle.loads(pickle.dumps(thing)),
    'oldest pickle': lambda thing: pickle.loads(pickle.dumps(thing, protocol=2)),
    'copy': copy.copy,
    'deepcopy': copy.deepcopy,
}
copies = pytest.mark.parametrize('way', COPIES)


def arrays(thing: Any) -> dict[str, np.ndarray]:
    return {name: value for name, value in vars(thing).items() if isinstance(value, np.ndarray)}


@copies
def test_an_arm_is_the_same_bits_and_read_only(way: str) -> None:
    _ = ARM.middle, ARM.reach, ARM.effective_dof, ARM.idle  # what is computed once goes along
    other = COPIES[way](ARM)
    assert arrays(other).keys() == arrays(ARM).keys()
    assert len(arrays(ARM)) > 10
    for name, array in arrays(ARM).items():
        found = arrays(other)[name]
        assert found.tobytes() == array.tobytes(), name
        assert (found.dtype, found.shape, found.flags.c_contiguous) == (array.dtype, array.shape, True)
        assert not found.flags.writeable, name
    assert (other.joint_names, other.tip_link, other.warnings) == (
        ARM.joint_names,
        ARM.tip_link,
        ARM.warnings,
    )
    assert other.fk(other.middle)[0].tobytes() == ARM.fk(ARM.middle)[0].tobytes()


@copies
def test_a_robot_is_the_same_and_read_only(way: str) -> None:
    robot = ARM.robot
    other = COPIES[way](robot)
    assert (other.name, other.root, other.links, other.warnings) == (
        *(robot.name, robot.root, robot.links, robot.warnings),
    )
    assert list(other.joints) == list(robot.joints)
    assert dict(other.faults) == dict(robot.faults)
    values = {joint.name: 0.1 for joint in robot.movable}
    for link in robot.links:
        assert other.link_pose(link, values).tobytes() == robot.link_pose(link, values).tobytes()
    for joint in other.joints.values():
        assert robot.driver(joint.name) == other.driver(joint.name)
        assert not joint.origin.flags.writeable
        assert not joint.axis.flags.writeable
    with pytest.raises(TypeError):
        other.joints['new'] = None


@copies
def test_a_goal_is_the_same_and_read_only(way: str) -> None:
    goal = Goal((0.1, 0.2, 0.3), (0.6, 0.0, 0.8003), (0.0, 1.0, 0.0))
    other = COPIES[way](goal)
    assert other.packed.tobytes() == goal.packed.tobytes()
    assert not other.position.flags.writeable


OPTIONS = {'position_tolerance': 1e-5, 'restarts': 20, 'random_seed': 7}


def goals() -> list[Goal]:
    rng = np.random.default_rng(5)
    reached = [Goal(*ARM.fk(q)) for q in ARM.sample(rng, 10)]
    return [*reached, Goal((5.0, 0.0, 0.0)), Goal((0.3, 0.1, 0.2), (0.0, 0.6, 0.8))]


def answers(solver: IkSolver) -> list[tuple[bytes, Any, float, float]]:
    found = [solver.solve(goal) for goal in goals()]
    return [(each.q.tobytes(), each.status, each.position_error, each.direction_error) for each in found]


@copies
def test_a_solver_answers_the_same_bits(way: str) -> None:
    solver = IkSolver(ARM, **OPTIONS)
    assert answers(COPIES[way](solver)) == answers(solver)


class Named(IkSolver):
    """A solver of a user, with arguments of its own."""

    def __init__(self, arm: Arm, name: str) -> None:
        super().__init__(arm, **OPTIONS)
        self.name = name


@copies
def test_a_subclass_with_other_arguments_locks_joints_and_is_copied_as_its_base(way: str) -> None:
    solver = Named(ARM, 'left')
    goal, lock = Goal(*ARM.fk(ARM.middle)), ARM.joint_names[:1]
    found = solver.solve_all(goal, ARM.middle, lock)
    assert [one.q.tobytes() for one in found] == [
        one.q.tobytes() for one in IkSolver(ARM, **OPTIONS).solve_all(goal, ARM.middle, lock)
    ]
    other = COPIES[way](solver)
    assert type(other) is IkSolver
    assert answers(other) == answers(solver)


@pytest.mark.slow
def test_a_pool_of_fresh_processes_answers_the_same_bits() -> None:
    solver = IkSolver(ARM, **OPTIONS)
    expected = [solver.solve(goal).q.tobytes() for goal in goals()]
    with multiprocessing.get_context('spawn').Pool(2) as pool:
        found = pool.map(solver.solve, goals())
        assert [solution.q.tobytes() for solution in found] == expected
        points = pool.map(ARM.fk, [ARM.middle])
    assert points[0][0].tobytes() == ARM.fk(ARM.middle)[0].tobytes()
