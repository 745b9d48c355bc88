# SPDX-License-Identifier: Apache-2.0
"""ik_inspect: describe an arm and the goals that it can meet."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ik_node.arguments import arm_parser, read_arm
from ik_node.checks import AXES
from ik_node.console import run, say, table
from ik_node.errors import MissingError
from ik_node.model.arm import Arm
from ik_node.model.collision import large_meshes
from ik_node.model.meshes import mesh_folder
from ik_node.model.plausibility import MAX_TURNS, doubtful_limits
from ik_node.model.urdf.description import load_description
from ik_node.solver.elimination import EliminationForm
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

POSES = 20_000  # configurations sampled for the reach
GOALS_BY_ALGEBRA, GOALS_BY_SEARCH = 500, 20  # goals whose solutions are counted


def main(given: Sequence[str] | None = None) -> int:
    """Print joints, limits, reach, effective DoF per tool axis, closed form and number of solutions."""
    return run(_inspect, arm_parser('ik_inspect').parse_args(given))


def _inspect(arguments: argparse.Namespace) -> int:
    arm = read_arm(arguments)
    doubts = _meshes(arguments.description_file, arguments.xacro_args)
    say('\n'.join(_joints(arm) + _remarks(arm, doubts) + _reach(arm) + _tool_axes(arm)))
    say('\n'.join(_solutions(arm)))
    return 0


def _joints(arm: Arm) -> list[str]:
    rows = [['joint', 'type', 'lower', 'upper', 'velocity']]
    for i, name in enumerate(arm.joint_names):
        unit = 'm' if arm.prismatic[i] else 'rad'
        kind = 'prismatic' if arm.prismatic[i] else 'continuous' if arm.continuous[i] else 'revolute'
        rows.append(
            [
                name,
                kind,
                f'{arm.lower[i]:.4g} {unit}',
                f'{arm.upper[i]:.4g} {unit}',
                f'{arm.velocity[i]:.3g} {unit}/s',
            ]
        )
    return [f'{arm.name}: {arm.base_link} -> {arm.tip_link}', '', *table(rows)]


def _meshes(path: str, xacro_args: Mapping[str, str]) -> list[str]:
    """Return questions about meshes that are too large; none without the packages that read them."""
    try:
        text = load_description(path, xacro_args)
        return list(large_meshes(text, str(mesh_folder(path, text) or '')))
    except MissingError:
        return []


def _remarks(arm: Arm, doubts: Sequence[str]) -> list[str]:
    remarks, questioned = [*arm.warnings, *doubts], bool(doubtful_limits(arm.spans))
    for name, low, high, turns in zip(arm.joint_names, arm.lower, arm.upper, arm.period, strict=True):
        if low == high:
            remarks.append(f'joint "{name}" is locked at {low:.4g}')
        elif turns and 2 * math.pi + 1e-6 < high - low < (MAX_TURNS if questioned else math.inf):
            remarks.append(
                f'joint "{name}" has a range of {math.degrees(high - low):.0f} deg: '
                'more than a turn, or a placeholder for the limits of the real joint'
            )
        if not low <= 0.0 <= high:
            remarks.append(f'joint "{name}": zero is outside its limits')
    return ['', *(f'note: {remark}' for remark in remarks)] if remarks else []


def _reach(arm: Arm) -> list[str]:
    shoulder = arm.joints[0, 3:6]
    points = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(0), POSES)])
    distances = np.linalg.norm(points - shoulder, axis=1)
    return [
        '',
        f'reach: {distances.min():.3f} to {distances.max():.3f} m from the first joint '
        f'({POSES} random configurations; upper bound {arm.reach:.3f} m)',
        f'height: {points[:, 2].min():.3f} to {points[:, 2].max():.3f} m in {arm.base_link}',
    ]


FAR, ALONG = 0.005, 0.99  # least distance [m] of the tip from the last joint, and its share along one axis


def along_tip(arm: Arm) -> str:
    """Return the axis of the tip link along which the tip lies before the link of the last joint, '' if none does."""
    poses = arm.robot.link_poses({})
    last = poses[arm.robot.joints[arm.joint_names[-1]].child][:3, 3]
    tip = poses[arm.tip_link]
    way = tip[:3, :3].T @ (tip[:3, 3] - last)
    far = float(np.linalg.norm(way))
    return next((name for name, axis in AXES.items() if way @ axis > ALONG * far), '') if far > FAR else ''


def _tool_axis(arm: Arm) -> list[str]:
    """Return which axis of the tip link counts as the direction of the tool, and another one if that is likelier."""
    used = next((name for name, axis in AXES.items() if np.array_equal(axis, arm.tool_axis)), str(arm.tool_axis))
    lines = [f'tool axis: {used} of {arm.tip_link}{" (default)" if used == "z" else ""}']
    likelier = along_tip(arm)
    if used == 'z' and likelier not in ('', used):
        option = f'--tool-axis={likelier}' if likelier.startswith('-') else f'--tool-axis {likelier}'
        lines.append(f'note: the tip lies before the last joint along {likelier}; if the tool points there: {option}')
    return lines


def _tool_axes(arm: Arm) -> list[str]:
    lines = [
        '',
        *_tool_axis(arm),
        arm.describe(),
        'effective DoF for each axis of the tool (5: many directions at one position, 4: few):',
    ]
    tools = {name: Arm(arm.robot, arm.tip_link, AXES[name], arm.tool_point, arm.base_link) for name in 'xyz'}
    for name, tool in tools.items():
        slim = tool.practical_dof < tool.effective_dof
        remark = f' (in practice 4: condition number {tool.condition:.0f})' if slim else ''
        lines.append(f'  {name}  {tool.effective_dof}{remark}')
    if arm.practical_dof < 5:
        lines.append('use position goals, or accept the closest direction (on_unreachable: closest)')
        free = [name for name, tool in tools.items() if tool.practical_dof >= 5]
        if free:
            lines.append(f'tool axes with 5 effective DoF: {", ".join(free)}')
    return lines


def _name(form: EliminationForm) -> str:
    return form.name if form.exact else f'{form.name} (nearly)'


def _spare(arm: Arm, solver: IkSolver) -> list[str]:
    """Return what is complete where joints are to spare for goals with a direction."""
    counting = int(np.count_nonzero(~arm.idle))
    spare = counting - arm.effective_dof
    if spare < 1:
        return []
    number = f'{spare} of {counting} joints {"is" if spare == 1 else "are"} spare'
    lines = [f'{number}: ik_solve --lock locks that many and finds all solutions of the others']
    if solver.self_motions is not None:
        lines.append(
            f'joint motions that leave the tool in place (self-motions): followed from values of "{arm.joint_names[0]}"'
        )
    return lines


def _solutions(arm: Arm) -> list[str]:
    solver = IkSolver(arm)
    form = solver.closed_form
    forms = () if solver.elimination is None else solver.elimination.forms(np.zeros(9))
    by_algebra = bool(forms) or (form is not None and form.exact)
    count = GOALS_BY_ALGEBRA if by_algebra else GOALS_BY_SEARCH
    counts = []
    for q in arm.sample(np.random.default_rng(1), count):
        counts.append(len(solver.solve_all(Goal(*arm.fk(q)), q)))
    if form is not None and form.exact:
        family = [f'solved by a formula (closed form: {form.family.value})']
    elif forms:
        family = [f'solved by polynomials (elimination: {", else ".join(map(_name, forms))}']
        family += [f'  not used: {why}' for each in forms for why in each.rejected]
    elif form is not None:
        family = [f'solved nearly by a formula (closed form: {form.family.value}), then on the true model']
    else:
        family = ['solved by iteration with restarts: this geometry has no formula']
    family += _spare(arm, solver)
    few, many = min(counts), max(counts)
    spread = f'{few} to {many}, median {int(np.median(counts))}' if few < many else f'{few}'
    return ['', *family, f'solutions within the limits: {spread} ({count} random reachable goals)']
