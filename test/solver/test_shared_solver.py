# SPDX-License-Identifier: Apache-2.0
"""What a solver shares: between calls, with other threads, and with the program that lets go of it."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from small_arm import arm_urdf

from ik_node import Arm, Goal, IkSolver
from ik_node.solver.elimination import elimination
from ik_node.solver.goal import Cause

LONG = 10.0  # [s] in which a thread ends that nothing holds up


@pytest.fixture
def arm() -> Arm:
    return Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')


def test_a_call_may_have_a_time_budget_of_its_own(arm):
    solver = IkSolver(arm, closed_form=False, restarts=10**6)
    point, axis = arm.fk(arm.middle)
    goal = Goal(point, -axis)
    found = solver.solve(goal, time_budget=1e-6)
    assert (found.reason.cause, found.reason.amount) == (Cause.TIME, 1e-6)
    for budget in (0.0, -1.0, float('nan'), 'soon'):
        with pytest.raises(ValueError, match='time_budget'):
            solver.solve(goal, time_budget=budget)


def test_a_solver_and_its_arm_are_freed_at_once_without_the_garbage_collector(arm):
    solver = IkSolver(Arm(arm.robot, arm.tip_link, base_link=arm.base_link))
    goal = Goal(*arm.fk(arm.middle))
    assert solver.solve_all(goal, arm.middle, locked_joints=[arm.joint_names[0]])
    assert solver.solve_all(goal, arm.middle, locked_joints=[arm.joint_names[2]]) is not None
    solver.track(goal, arm.middle)
    gone = [weakref.ref(one) for one in (solver, solver.arm, solver._parts.locked)]
    gc.disable()
    try:
        del solver
        assert [one() for one in gone] == [None, None, None]
    finally:
        gc.enable()


def test_two_threads_that_need_an_elimination_make_it_once(arm, monkeypatch):
    inside, go_on, made = threading.Event(), threading.Event(), []

    def forms_of(*arguments):
        made.append(arguments)
        inside.set()
        go_on.wait(0.5)  # where the other thread has to wait for this one, nobody sets it
        return ()

    monkeypatch.setattr(elimination, 'forms_of', forms_of)
    found = elimination.elimination_of(arm, np.zeros(1))
    goal = Goal(*arm.fk(arm.middle)).packed
    first = threading.Thread(target=found.forms, args=(goal,))
    second = threading.Thread(target=lambda: (found.forms(goal), go_on.set()))
    first.start()
    assert inside.wait(LONG)
    second.start()
    first.join(LONG)
    second.join(LONG)
    assert len(made) == 1


def test_an_error_inside_a_goal_is_not_taken_for_an_argument_of_another_kind(arm):
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

    solver, goal = IkSolver(arm), Broken([0.2, 0.0, 0.2])
    goal.made = True
    with pytest.raises(AttributeError, match='made up'):
        solver.solve(goal)
