# SPDX-License-Identifier: Apache-2.0
"""ik_calibrate: find out how an arm differs from its description, by touches of crosses on a printed sheet."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ik_node.arguments import add_overwrite, arm_parser, check_outputs, read_arm, warn
from ik_node.checks import Array
from ik_node.console import run, say, without_ros
from ik_node.errors import InputError, path_text
from ik_node.files import write_file
from ik_node.model.arm import Arm
from ik_node.model.meshes import mesh_folder
from ik_node.model.urdf.description import load_description
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

from .estimator import BETTER, MODELS, Calibration, Touches, TouchModel
from .files import SHEET, TOOL, Record, calibrated_description, digest, load_record, read_csv, record_path
from .session import CHECKS, TOUCHES, Session, report, still
from .sheet import MM, PAPERS, Sheet

if TYPE_CHECKING:
    from .live import LiveArm

TOOL_TOUCHES = 4
NO_TILT = 1e-3  # rad: the default direction_tolerance
LARGEST_TILT = 0.2  # rad
TILTED = 100  # goals
KEYS = 'Enter: touch, u: undo the last touch, q: go on another day'
STEPS = """Print it at 100 %, without "fit to page", and measure the bar: if it is not 200.0 mm long, say so by --bar.
Put the arm on its outline, tape the sheet and clamp the base. Clamp a pencil or a screw with a sharp tip in the jaws.
Then start the arm, and in another terminal: {program} {description}"""


def main(given: Sequence[str] | None = None) -> int:
    """Print a sheet, or guide through touches and write a calibrated description."""
    parser = arm_parser('ik_calibrate')
    group = parser.add_argument_group('calibration')
    group.add_argument('--sheet', type=Path, metavar='PDF', help='write the sheet to print, and end')
    group.add_argument('--paper', choices=list(PAPERS), default='A4', help='size of the sheet (default: A4)')
    group.add_argument('--bar', type=float, metavar='MM', help='what the bar of the printed sheet measures [mm]')
    group.add_argument(
        '--touches',
        type=Path,
        metavar='FILE',
        help='where touches are kept (.yaml), or a table of them (.csv) with the columns cross, the joints [rad or m] '
        'and check (default: a file for the arm in ~/.config/ik_node/calibration)',
    )
    group.add_argument('--solve', action='store_true', help='estimate from the touches that are kept, without the arm')
    group.add_argument('--model', choices=MODELS, default='', help='what is estimated (default: what predicts better)')
    what = group.add_mutually_exclusive_group()
    what.add_argument('--check', action='store_true', help='compare three more touches with the calibration')
    what.add_argument('--tool', action='store_true', help='find the tip of another tool by four touches of a cross')
    what.add_argument('--undo', action='store_true', help='take the zeros back from ik_servos')
    group.add_argument(
        '--output', type=Path, metavar='URDF', help='the new description (default: NAME_calibrated.urdf)'
    )
    add_overwrite(group)  # type: ignore[arg-type]
    return run(_calibrate, parser.parse_args(without_ros(sys.argv[1:] if given is None else given)))


def _calibrate(arguments: argparse.Namespace) -> int:
    arm, source = read_arm(arguments), arguments.description_file
    text = load_description(source, arguments.xacro_args)
    output = arguments.output or Path(f'{Path(source).name.partition(".")[0]}_calibrated.urdf')
    meshes = os.fspath(mesh_folder(source, text) or '')
    table = arguments.touches and arguments.touches.suffix.lower() == '.csv'
    path = record_path(arm.name) if table or arguments.touches is None else arguments.touches
    record = load_record(path, text)
    if arguments.sheet:
        check_outputs([arguments.sheet], [source], arguments.overwrite)
        if record is not None and record.touches:
            raise InputError(
                f'{path_text(path)} has touches of a sheet that was printed before: remove it to begin again'
            )
        sheet = Sheet.of(arm, text, meshes, arguments.paper)
        sheet.draw(arguments.sheet, f'{arm.name}: {Path(source).name}')
        Record(path, digest(text), sheet).store()
        say(f'{path_text(arguments.sheet)} is written. {STEPS.format(program="ik_calibrate", description=source)}')
        return 0
    warn(arm)
    if not (arguments.undo or arguments.check):
        check_outputs([output], [source], arguments.overwrite)
    if table:
        sheet = Sheet.of(arm, text, meshes, arguments.paper) if record is None else record.sheet
        record = read_csv(arguments.touches, arm.joint_names, text, sheet)
    elif record is None:
        raise InputError(f'no sheet of {arm.name} was printed: ik_calibrate {source} --sheet sheet.pdf')
    bar = record.bar if arguments.bar is None else arguments.bar * MM
    model = record.sheet.model(arm, bar)
    if bar != record.bar:
        _measured(record, bar, keep=not table)
    if table or arguments.solve:
        return _conclude(model, record, arguments, text, output, None)
    from .live import LiveArm  # needs ROS

    with LiveArm(arm.joint_names) as live:
        if arguments.undo:
            return _undo(model, record, live)
        if arguments.check or arguments.tool:
            found = model.calibrate(record.of(arm.joint_names, check=False), arguments.model)
            return _check(model, found, live) if arguments.check else _tool(model, found, live, text, output)
        if not _touched(Session(model, record), live):
            say(f'{len(record.touches)} touches are kept in {path_text(record.path)}: start again to go on')
            return 0
        return _conclude(model, record, arguments, text, output, live)


def _measured(record: Record, bar: float, keep: bool) -> None:
    """Note what the bar of the print measures [m]. Raises InputError if touches that are kept are of another one."""
    if keep and record.touches:
        raise InputError(
            f'the touches in {path_text(record.path)} were made with a bar of {record.bar / MM:g} mm: remove the file '
            'and print the sheet again'
        )
    record.bar = bar
    if keep:
        record.store()  # for the page, too


def _touched(session: Session, live: LiveArm) -> bool:
    """Guide through all touches; whether all are there."""
    say(f'{TOUCHES} touches and {CHECKS} that are only compared. {live.advice}\n{KEYS}')
    while not session.done:
        todo = session.next()
        number = len(session.record.touches) + 1
        if (key := _ask(session.model, todo.cross, todo.q, f'touch {number} of {TOUCHES + CHECKS}')) == 'q':
            return False
        try:
            if key == 'u':
                last = session.undo()
                say(f'touch {number - 1} is forgotten' if last else 'there is no touch')
            else:
                session.touch(todo.cross, live.read())
        except InputError as error:
            say(f'not taken: {error}')
    return True


def _ask(model: TouchModel, cross: int, q: Array, what: str) -> str:
    """Say where to put the tip and how to hold the arm there; return a key."""
    words = ', '.join(
        f'{name} {value / MM:.0f} mm' if slides else f'{name} {math.degrees(value):.0f}°'
        for name, value, slides in zip(model.arm.joint_names, q, model.slides, strict=True)
    )
    say(f'{what}: put the tip on cross {cross}, about like this: {words}')
    return _key('> ')


def _key(prompt: str) -> str:
    """Return what the user types in small letters, q at the end of the input."""
    try:
        return input(prompt).strip().lower()
    except EOFError:
        return 'q'


def _few(model: TouchModel, live: LiveArm, crosses: Sequence[int]) -> Touches | None:
    """Return a touch of each of crosses, from 1, that is not kept; None if the user stops."""
    say(live.advice)
    rows: list[Array] = []
    while len(rows) < len(crosses):
        cross = crosses[len(rows)]
        say(f'touch {len(rows) + 1} of {len(crosses)}: put the tip on cross {cross}, each time from another side')
        if _key('> ') == 'q':
            return None
        try:
            rows.append(still(model, live.read()))
        except InputError as error:
            say(f'not taken: {error}')
    return Touches(np.array(rows), np.array(crosses) - 1)


def _check(model: TouchModel, found: Calibration, live: LiveArm) -> int:
    touches = _few(model, live, (1, len(model.places) // 2 + 1, len(model.places)))
    if touches is not None:
        misses = np.linalg.norm(model.misses(touches, found.fit.parameters), axis=1) / MM
        say(f'the crosses are missed by {", ".join(f"{miss:.1f}" for miss in misses)} mm')
        say(f'when it was calibrated they were missed by {found.left_out / MM:.1f} mm')
    return 0


def _tool(model: TouchModel, found: Calibration, live: LiveArm, text: str, output: Path) -> int:
    touches = _few(model, live, (len(model.places) // 2 + 1,) * TOOL_TOUCHES)
    if touches is None:
        return 0
    parameters = found.fit.parameters.copy()
    slopes = model.points(touches.q, parameters)[1][:, :, model.tool].reshape(-1, 3)
    # The tool point enters linearly: one step is the solution.
    parameters[model.tool] -= np.linalg.lstsq(slopes, model.misses(touches, parameters).ravel(), rcond=None)[0]
    miss = np.linalg.norm(model.misses(touches, parameters), axis=1).max() / MM
    say(f'the tip of the tool is found; its {TOOL_TOUCHES} touches miss the cross by {miss:.1f} mm at most')
    _write(model, replace(found, fit=replace(found.fit, parameters=parameters)), text, output)
    return 0


def _conclude(
    model: TouchModel, record: Record, arguments: argparse.Namespace, text: str, output: Path, live: LiveArm | None
) -> int:
    """Estimate, say what was found, and write what the user wants."""
    found = model.calibrate(record.of(model.arm.joint_names, check=False), arguments.model)
    say('\n'.join(report(model, record, found)))
    if found.left_out > BETTER * found.before and not record.zeros:
        say(
            f'nothing is better by this calibration ({found.before / MM:.1f} -> {found.left_out / MM:.1f} mm): '
            'nothing was written'
        )
        return 1
    if live is not None and live.has_driver and not record.zeros:
        say('ik_servos can keep the zeros. Limits, taught programs and LeRobot mappings move with them.')
        if _key('Store them in ik_servos? [y/n] ').startswith('y'):
            zeros = dict(zip(model.arm.joint_names, found.fit.parameters[model.zeros].tolist(), strict=True))
            answer = live.move_zeros(model, zeros)
            record.move_zeros(zeros)
            say(answer)
            found = model.calibrate(record.of(model.arm.joint_names, check=False), found.model)
    _write(model, found, text, output)
    return 0


def _undo(model: TouchModel, record: Record, live: LiveArm) -> int:
    if not record.zeros:
        raise InputError(f'no zeros of {path_text(record.path)} are in ik_servos')
    back = {name: -zero for name, zero in record.zeros.items()}
    answer = live.move_zeros(model, back)
    record.move_zeros(back)
    say(answer)
    say('remove the calibrated description, too')
    return 0


def _write(model: TouchModel, found: Calibration, text: str, output: Path) -> None:
    """Write the calibrated description, and say how to use it."""
    description = calibrated_description(model, text, found)
    write_file(output, description)
    axis = ','.join(f'{value:.4g}' for value in model.arm.tool_axis)
    say(
        f'{path_text(output)} is written, with the links {TOOL} at the tip and {SHEET} in the middle of '
        'the paper. Use it:\n'
        f'  ik_demo --description-file {output} --tip-link {TOOL} --tool-axis={axis}\n'
        f'  ros2 launch ik_node arm.launch.py description_file:={output} tip_link:={TOOL} tool_axis:={axis}'
    )
    if (tilt := _tilt(model, description)) > NO_TILT:
        say(
            'The axes of the real arm are tilted, so that at most places it can point only nearly in the direction '
            f'that you want: set the parameter direction_tolerance to {math.ceil(tilt / 0.005) * 0.005:.3f} rad.'
        )


def _tilt(model: TouchModel, description: str) -> float:
    """Return how far [rad] the real arm points off, 19 times in 20, where the arm of the model points exactly."""
    arm = Arm.from_urdf(description, TOOL, tool_axis=model.arm.tool_axis, base_link=model.arm.base_link)
    solver, errors = IkSolver(arm, direction_tolerance=NO_TILT), list[float]()
    for q in model.arm.sample(np.random.default_rng(0), TILTED):
        found = solver.solve(Goal(*model.arm.fk(q)), q)
        if found.position_error < 0.1 * MM and found.direction_error < LARGEST_TILT:  # else it is another posture
            errors.append(found.direction_error)
    return float(np.percentile(errors, 95.0)) if errors else 0.0
