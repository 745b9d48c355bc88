# SPDX-License-Identifier: Apache-2.0
"""ik_solve: one goal for one arm, all solutions, as text or JSON."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ik_node.arguments import add_goal, arm_parser, read_arm, warn
from ik_node.checks import unit_vector
from ik_node.console import run, say, table
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal, Solution, Solutions, Status
from ik_node.solver.solver import IkSolver

if TYPE_CHECKING:
    from ik_node.solver.proof import Proof


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 if the goal was solved, 1 if not, 2 for an invalid file or argument."""
    parser = arm_parser('ik_solve')
    add_goal(parser)
    parser.add_argument(
        '--cone',
        type=float,
        default=0.0,
        metavar='ANGLE',
        help='the tool axis may be off --direction by up to this [rad]',
    )
    parser.add_argument('--tolerance', type=float, metavar='LENGTH', help='of the position [m] (default: 1e-6)')
    parser.add_argument(
        '--seed',
        type=float,
        nargs='+',
        help='joint positions to stay close to [rad or m] (default: mid-range)',
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        '--lock', nargs='+', default=(), metavar='JOINT', help='joints that keep their positions in the seed'
    )
    either.add_argument(
        '--prove', action='store_true', help='prove by interval arithmetic that there are no other solutions'
    )
    parser.add_argument('--json', action='store_true', help='print JSON')
    return run(_solve, parser.parse_args(given))


def _solve(arguments: argparse.Namespace) -> int:
    arm = read_arm(arguments)
    warn(arm)
    direction = None if arguments.direction is None else unit_vector('--direction', arguments.direction)
    if arguments.seed is not None and (doubt := arm.doubt(arguments.seed, 'seed')):
        raise InputError(f'--seed: {doubt}')
    position = arguments.x, arguments.y, arguments.z
    goal = Goal(position, direction, cone=arguments.cone, tolerance=arguments.tolerance)
    solver = IkSolver(arm)
    solution, every = _answers(solver, goal, arguments.seed, arguments.lock)
    if arguments.json:
        data = _as_data(arm, solution, every, goal.direction is not None)
        if arguments.prove:
            data['proof'] = _proof_as_data(solver.prove(goal, arguments.seed))
        say(json.dumps(data, indent=2))
    else:
        say('\n'.join(_as_text(arm, solution, every, goal.direction is not None, arguments.lock)))
        if arguments.prove:  # the first proof of an arm takes seconds
            say(_proof_as_text(solver.prove(goal, arguments.seed)))
    return 0 if solution.solved else 1


def _answers(
    solver: IkSolver, goal: Goal, seed: Sequence[float] | None, locked: Sequence[str]
) -> tuple[Solution, Solutions]:
    """Return the solution near seed and all solutions; with locked joints the best of all, or the seed."""
    if locked:
        every = solver.solve_all(goal, seed, locked)
        if every:
            return every[0], every
        solution = solver.evaluate(goal, solver.arm.middle if seed is None else seed)
        status = Status.UNREACHABLE if every.complete else Status.NOT_FOUND
        return replace(solution, status=status), every
    solution = solver.solve(goal, seed)
    if solution.solved:
        return solution, solver.solve_all(goal, seed)
    return solution, Solutions((), complete=solution.status is Status.UNREACHABLE)


def _as_data(arm: Arm, solution: Solution, every: Solutions, directed: bool) -> dict[str, Any]:
    def one(answer: Solution) -> dict[str, Any]:
        return {
            'q': answer.q.tolist(),
            'position_error': answer.position_error,
            'direction_error': answer.direction_error if directed else None,
            'self_motion': answer.self_motion,
        }

    reason = solution.reason
    return {
        'arm': arm.name,
        'joint_names': list(arm.joint_names),
        'status': solution.status.value,
        'reason': reason
        and {
            'cause': reason.cause.value,
            'amount': reason.amount,
            'joint': reason.joint,
            'sentence': str(reason),
        },
        **one(solution),
        'solutions': [one(answer) for answer in every],
        'complete': every.complete,
    }


def _proof_as_data(proof: Proof) -> dict[str, Any]:
    return {
        'proven': proof.proven,
        'reason': proof.reason,
        'enclosed': proof.enclosed,
        'bound': proof.bound,
        'solutions': [
            {'q': q, 'radius': radius} for q, radius in zip(proof.q.tolist(), proof.radius.tolist(), strict=True)
        ],
    }


def _proof_as_text(proof: Proof) -> str:
    if not proof.proven:
        return f'Not proven: {proof.reason}.'
    count = len(proof.q)
    found = 'no solution' if not count else 'exactly 1 solution' if count == 1 else f'exactly {count} solutions'
    return f'Proven: {found} within the limits ({proof.enclosed} complex ones enclosed, no more can exist).'


def _as_text(
    arm: Arm, solution: Solution, every: Sequence[Solution], directed: bool, locked: Sequence[str]
) -> list[str]:
    head = '' if every or solution.solved else 'seed' if locked else 'closest'
    reason = 'there is no solution while these joints are locked' if locked and not every else solution.reason
    lines = [
        arm.describe(),
        f'status           {solution.status.value}',
        *([f'reason           {reason}'] if reason else []),
        *([f'joints locked    {", ".join(locked)}'] if locked else []),
        f'position error   {solution.position_error:.3g} m',
        f'direction error  {f"{solution.direction_error:.3g} rad" if directed else "direction is free"}',
        '',
        *_table(arm, every or [solution], head),
    ]
    if any(answer.self_motion for answer in every):
        lines.append(
            'There are infinitely many solutions: the joints can move without moving the tool (a self-motion).'
        )
    return lines


def _table(arm: Arm, answers: Sequence[Solution], head: str = '') -> list[str]:
    """Return a column of joint positions per answer, rad with degrees, m for prismatic joints.

    head: of the only answer, '' for solutions.
    """
    shown = answers[:8]
    heads = [head] if head else [f'solution {k + 1}' for k in range(len(shown))]
    rows = [['joint', *heads]]
    for i, name in enumerate(arm.joint_names):
        values = [answer.q[i] for answer in shown]
        unit = '{:.5f} m' if arm.prismatic[i] else '{:.5f} ({:.1f} deg)'
        rows.append([name, *(unit.format(value, math.degrees(value)) for value in values)])
    lines = table(rows)
    if len(answers) > len(shown):
        lines.append(f'... and {len(answers) - len(shown)} more; --json lists all')
    return lines
