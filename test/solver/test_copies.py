# SPDX-License-Identifier: Apache-2.0
"""Copies of arms, goals and solvers, what threads share, and what is freed."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import threading
import weakref

import numpy as np
import pytest
from cases import arm_of
from small_arm import arm_urdf

from ik_node import Arm, Goal, IkSolver
from ik_node.solver import elimination

pytestmark = pytest.mark.slow

XARM = arm_of('xarm5_like')
ARM = Arm(XARM.robot, tool_axis=(0.6, 0.0, 0.8003), tool_point=(0.01, 0.02, 0.03))
OPTIONS = {'position_tolerance': 1e-5, 'restarts': 20, 'random_seed': 7}
COPIES = {
    'pickle': lambda thing: pickle.loads(pickle.dumps(thing)),
    'oldest pickle': lambda thing: pickle.loads(pickle.dumps(thing, protocol=2)),
    'copy': copy.copy,
    'deepcopy': copy.deepcopy,
}
copies = pytest.mark.parametrize('way', COPIES)


def goals():
    reached = [Goal(*ARM.fk(q)) for q in ARM.sample(np.random.default_rng(5), 10)]
    return [*reached, Goal((5.0, 0.0, 0.0)), Goal((0.3, 0.1, 0.2), (0.0, 0.6, 0.8))]


def answers(solver):
    found = [solver.solve(goal) for goal in goals()]
    return [(each.q.tobytes(), each.status, each.position_error, each.direction_error) for each in found]


@copies
def test_arms_and_goals_are_the_same_bits_and_read_only(way):
    _ = ARM.middle, ARM.reach, ARM.effective_dof, ARM.idle  # what is computed once goes along
    other = COPIES[way](ARM)
    arrays = {name: value for name, value in vars(ARM).items() if isinstance(value, np.ndarray)}
    assert len(arrays) > 10
    for name, array in arrays.items():
        found = getattr(other, name)
        assert found.tobytes() == array.tobytes(), name
        assert (found.dtype, found.shape, found.flags.c_contiguous) == (array.dtype, array.shape, True)
        assert not found.flags.writeable, name
    for name in ('joint_names', 'tip_link', 'warnings'):
        assert getattr(other, name) == getattr(ARM, name)
    assert other.fk(other.middle)[0].tobytes() == ARM.fk(ARM.middle)[0].tobytes()
    goal = Goal((0.1, 0.2, 0.3), (0.6, 0.0, 0.8003), (0.0, 1.0, 0.0))
    assert COPIES[way](goal).packed.tobytes() == goal.packed.tobytes()
    assert not COPIES[way](goal).position.flags.writeable


@copies
def test_a_robot_is_the_same_and_read_only(way):
    robot = ARM.robot
    other = COPIES[way](robot)
    for name in ('name', 'root', 'links', 'warnings', 'faults'):
        assert getattr(other, name) == getattr(robot, name)
    assert list(other.joints) == list(robot.joints)
    values = {joint.name: 0.1 for joint in robot.movable}
    for link in robot.links:
        assert other.link_pose(link, values).tobytes() == robot.link_pose(link, values).tobytes()
    for joint in other.joints.values():
        assert robot.driver(joint.name) == other.driver(joint.name)
        assert not joint.origin.flags.writeable
        assert not joint.axis.flags.writeable
    with pytest.raises(TypeError):
        other.joints['new'] = None


class Named(IkSolver):
    """A solver of a user, with arguments of its own."""

    def __init__(self, arm: Arm, name: str) -> None:
        super().__init__(arm, **OPTIONS)
        self.name = name


@copies
def test_a_solver_answers_the_same_bits_and_a_subclass_is_copied_as_its_base(way):
    solver, named = IkSolver(ARM, **OPTIONS), Named(ARM, 'left')
    expected = answers(solver)
    assert answers(COPIES[way](solver)) == expected
    goal, lock = Goal(*ARM.fk(ARM.middle)), ARM.joint_names[:1]
    lists = [[one.q.tobytes() for one in each.solve_all(goal, ARM.middle, lock)] for each in (solver, named)]
    assert lists[0] == lists[1]
    other = COPIES[way](named)
    assert type(other) is IkSolver
    assert answers(other) == expected


def test_a_pool_of_fresh_processes_answers_the_same_bits():
    solver = IkSolver(ARM, **OPTIONS)
    expected = [solver.solve(goal).q.tobytes() for goal in goals()]
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        assert [solution.q.tobytes() for solution in pool.map(solver.solve, goals())] == expected
        ((point, _),) = pool.map(ARM.fk, [ARM.middle])
    assert point.tobytes() == ARM.fk(ARM.middle)[0].tobytes()


def test_a_solver_and_its_arm_are_freed_at_once_without_the_garbage_collector():
    arm = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')
    solver, goal, names = IkSolver(arm), Goal(*arm.fk(arm.middle)), arm.joint_names
    assert solver.solve_all(goal, arm.middle, locked_joints=[names[0]])
    assert solver.solve_all(goal, arm.middle, locked_joints=[names[2]]) is not None
    solver.track(goal, arm.middle)
    gone = [weakref.ref(one) for one in (solver, arm, solver._locked)]
    gc.disable()
    try:
        del solver, arm
        assert [one() for one in gone] == [None, None, None]
    finally:
        gc.enable()


def test_two_threads_that_need_an_elimination_make_it_once(monkeypatch):
    inside, go_on, made = threading.Event(), threading.Event(), []

    def forms_of(*arguments):
        made.append(arguments)
        inside.set()
        go_on.wait(0.5)  # where the other thread has to wait for this one, nobody sets it
        return ()

    monkeypatch.setattr(elimination, 'forms_of', forms_of)
    found = elimination.elimination_of(ARM, np.zeros(1))
    goal = Goal(*ARM.fk(ARM.middle)).packed
    first = threading.Thread(target=found.forms, args=(goal,))
    second = threading.Thread(target=lambda: (found.forms(goal), go_on.set()))
    first.start()
    assert inside.wait(10.0)
    second.start()
    first.join(10.0)
    second.join(10.0)
    assert len(made) == 1


def test_an_error_inside_a_goal_is_not_taken_for_an_argument_of_another_kind():
    class Broken(Goal):
        made = False

        @property
        def packed(self):
            if self.made:
                raise AttributeError('made up')
            return self._packed

        @packed.setter
        def packed(self, packed):
            self._packed = packed

        def __repr__(self):
            return 'broken'

    goal = Broken([0.2, 0.0, 0.2])
    goal.made = True
    with pytest.raises(AttributeError, match='made up'):
        IkSolver(ARM).solve(goal)
