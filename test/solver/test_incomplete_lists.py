# SPDX-License-Identifier: Apache-2.0
"""Lists of solutions that are not complete: a joint is free, time runs out, or there is no end of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_arms import make_arm
from oracles.arms import TOLERANCE, solver_for
from oracles.random_arms import random_task
from oracles.special_arms import made_arm

from ik_node import Arm, Goal, IkSolver, kernels

URDF = Path(__file__).resolve().parents[2] / 'urdf'


def wrist_arm_that_locks() -> Arm:
    """Axes 2, 3 parallel, 4, 5 and the tool axis in one point: at q5 = 0 axis 4 is the tool axis."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0.1, 0, 0), (0.2, 0, 0)]
    return make_arm(axes, offsets, [(-3, 3)] * 5, tool_axis=(1, 0, 0), tool_point=(0.1, 0, 0))


def test_a_list_is_not_complete_where_a_joint_is_free_at_a_solution():
    arm = wrist_arm_that_locks()
    solver, q = IkSolver(arm), np.array([0.4, 0.3, -1.2, 1.0, 0.0])
    found = solver.solve_all(Goal(*arm.fk(q)))
    assert not found.complete
    free = [solution.q for solution in found if solution.self_motion]
    assert free
    for row in free:
        assert np.abs(arm.jacobian(row)[:, 3]).max() < 1e-6
    q[4] = 0.7
    found = solver.solve_all(Goal(*arm.fk(q)))
    assert found.complete
    assert not any(solution.self_motion for solution in found)


def test_a_roll_that_moves_nothing_is_named_and_the_list_is_complete():
    arm = Arm.from_file(URDF / 'so101_like.urdf.xacro')
    found = IkSolver(arm).solve_all(Goal(*arm.fk(arm.middle + 0.1)))
    assert found.complete
    assert found
    assert all(solution.self_motion for solution in found)


class Clock:
    """A clock of which every look takes 10 ms."""

    def __init__(self) -> None:
        self.looks = 0

    def perf_counter(self) -> float:
        """Return the time [s]."""
        self.looks += 1
        return 0.01 * self.looks


def test_no_part_of_the_search_is_long_between_two_looks_at_the_clock(monkeypatch):
    """Solutions led along their self-motions take milliseconds each: one at a time."""
    clock, descents = Clock(), []
    explore = kernels.explore
    monkeypatch.setattr('ik_node.solver.all_solutions.time', clock)
    monkeypatch.setattr(kernels, 'explore', lambda *given: descents.append(given[6]) or explore(*given))
    arm = wrist_arm_that_locks()
    found = IkSolver(arm).solve_all(Goal(*arm.fk([0.4, 0.3, -1.2, 1.0, 0.0])))
    assert not found.complete
    assert set(descents) == {1}
    assert len(descents) <= 11


def test_whole_turns_without_number_are_listed_around_the_seed_only():
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0, 0, 0.3), (0.1, 0, 0)]
    arm = make_arm(axes, offsets, [(-900, 900)] * 5, tool_axis=(0.6, 0.8, 0), tool_point=(0.1, 0.02, 0))
    q = np.array([0.4, 0.3, -1.2, 1.0, 0.5])
    found = IkSolver(arm).solve_all(Goal(*arm.fk(q)), q)
    assert not found.complete
    assert 100 < len(found) <= 20_000
    assert np.abs(found[0].q - q).max() < 1e-6


def test_a_list_is_not_empty_and_complete_where_elimination_loses_a_double_root():
    """Solutions of both signs of a square root that has just become zero: none is found by elimination."""
    task = made_arm('slides15')
    solver = IkSolver(task.arm, direction_tolerance=1e-6)
    for position, direction in (
        (
            (0.21912188029873972, -0.14627130464298965, 0.4720534385706074),
            (-0.0002912452910809487, -0.16868082526796432, -0.9856706825117093),
        ),
        (
            (0.21912176451172521, -0.14627292057803704, 0.47205356727283354),
            (-0.00029087033314461355, -0.16868081390068335, -0.9856706845677476),
        ),
    ):
        goal = Goal(position, direction)
        assert solver.solve(goal).solved
        found = solver.solve_all(goal)
        assert found
        assert not found.complete


def test_a_list_is_not_complete_where_the_last_form_of_elimination_has_lost_what_another_found():
    """Axes 4, 5 and the tool axis meet but for 1e-6, and solutions nearly coincide: q is not listed."""
    task = made_arm('meet45t_1e-06_1')
    solver = IkSolver(task.arm, direction_tolerance=1e-6)
    goal = Goal(
        (0.5610472966656406, 0.13273171248951968, 0.14199572598503166),
        (-0.4174047563714182, -0.36525389239195616, 0.8320834474083969),
    )
    q = [
        0.48991212706541626,
        -0.9410126484056894,
        -0.7774557101643488,
        -0.25962630829292443,
        -1.564457392213368,
    ]
    assert solver.evaluate(goal, np.array(q)).solved
    assert not solver.solve_all(goal).complete


@pytest.mark.parametrize(
    ('seed', 'position', 'direction'),
    [
        (
            62,
            (-0.264955594120898, 0.022503086109074637, 0.27551340358868076),
            (-0.8321548305393769, 0.5544770395237363, -0.008576167615760445),
        ),
        (
            92,
            (0.14840026301467296, 0.3309731170738832, 0.16606717706965993),
            (-0.5203449290119714, -0.3799543857904989, -0.764771743443814),
        ),
    ],
)
def test_where_two_solutions_have_just_become_one_the_list_is_neither_empty_nor_complete(
    seed, position, direction
):
    """The smallest singular value there is 4e-11, so the formula loses both."""
    goal, solver = Goal(position, direction), solver_for(random_task(seed).arm)
    found = solver.solve_all(goal)
    assert found[0].solved
    assert max(solver.errors(goal, found[0].q)) <= TOLERANCE
    assert not found.complete
