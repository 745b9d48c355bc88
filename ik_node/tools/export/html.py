# SPDX-License-Identifier: Apache-2.0
"""One arm as a page: a file that a browser opens without a server, Python or network."""

from __future__ import annotations

import argparse
import base64
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ik_node.checks import Array
from ik_node.console import say
from ik_node.kernels import page
from ik_node.kernels.arrays import VARIABLE
from ik_node.kernels.methods.ccd import SPLIT_SWEEPS
from ik_node.model.arm import Arm
from ik_node.model.meshes import mesh_folder
from ik_node.model.urdf.description import load_description

from .shapes import shapes_of
from .wasm import TOLERANCES, PageSource, compile_wasm

HERE = Path(__file__).parent
# By the cause that answer reports: what is told, as IkSolver does, in mm and degrees. {}: the amount.
SENTENCES = {
    page.TOO_FAR: ('Out of reach', 'the position is {} beyond the workspace'),
    page.TOO_NEAR: ('Out of reach', 'the position is {} inside the inner boundary of the workspace'),
    page.DIRECTION_CONSTRAINED: (
        'Direction out of reach',
        'the tool cannot point that way here: the closest direction found is {} off',
    ),
    page.JOINT_LIMIT: ('Joint limit', 'joint "{joint}" would exceed its limit by {}'),
    page.SEARCH_ENDED: ('Not found', 'no solution found from here and {} random restarts'),
}
STARTS = 400  # configurations, of which the page shows a good one first


def page_of(arm: Arm, text: str, mesh_path: str) -> tuple[str, list[str]]:
    """Return the page of an arm as HTML, and sentences on shapes that are left out.

    text: the URDF. mesh_path: as for find_mesh. Raises ExportError without a compiler.
    """
    source = PageSource(arm)
    module = compile_wasm(source.text())
    shapes, notes = shapes_of(arm, text, mesh_path)
    note = ''
    if arm.effective_dof < 5:
        note = (
            'At one position the tool of this arm can point in few directions '
            f'({arm.effective_dof} effective degrees of freedom). The position comes first.'
        )
    rows = arm.joints[:, VARIABLE].astype(int).tolist()
    chain = [joint for joint in arm.robot.chain(arm.tip_link, arm.base_link) if joint.movable]
    spans = arm.upper - arm.lower
    data: dict[str, Any] = {
        'title': arm.name,
        'note': note,
        'reach': arm.reach,
        'start': first_joints(arm).tolist(),
        'joints': [_joint(arm, i) for i in range(arm.n)],
        'rows': rows,
        'names': [joint.name for joint in chain],
        'split': SPLIT_SWEEPS,
        'near': TOLERANCES,
        'quick': source.exact,
        # Of goals without and with a direction: whether joints are left to move, so that solutions are curves.
        'endless': [arm.n > arm.position_dof, bool((~arm.idle).sum() > arm.effective_dof)],
        'turns': bool(((arm.turning_period > 0.0) & (spans >= arm.turning_period) & np.isfinite(spans)).any()),
        'sentences': [SENTENCES[cause] for cause in sorted(SENTENCES)],
        'angles': [page.DIRECTION_CONSTRAINED],
        'shapes': shapes,
        'layout': source.layout,
        'wasm': base64.b64encode(module).decode(),
    }
    encoded = json.dumps(data, separators=(',', ':')).replace('</', '<\\/')
    script = '\n'.join((HERE / name).read_text(encoding='utf-8').strip() for name in ('view.js', 'page.js'))
    template = (HERE / 'page.html').read_text(encoding='utf-8')
    title = arm.name.replace('&', '&amp;').replace('<', '&lt;')
    for mark, content in (('TITLE', title), ('DATA', encoded), ('SCRIPT', script)):
        before, _, after = template.partition(mark)
        template = before + content + after
    return template, notes


def _joint(arm: Arm, i: int) -> dict[str, Any]:
    slides = bool(arm.prismatic[i])
    most = arm.reach if slides else math.pi
    low, high = (max(float(arm.lower[i]), -2.0 * most), min(float(arm.upper[i]), 2.0 * most))
    if not math.isfinite(arm.lower[i]) or not math.isfinite(arm.upper[i]):
        low, high = max(low, -most), min(high, most)
    return {'name': arm.joint_names[i], 'slides': slides, 'low': low, 'high': high}


def first_joints(arm: Arm) -> Array:
    """Return joints (n,) in which the arm can move all ways, above the ground, and points ahead or down."""
    best, most = arm.middle, -1.0
    for q in arm.sample(np.random.default_rng(1), STARTS):
        point, axis = arm.fk(q)
        points = arm.skeleton(q)
        if (
            points[:, 2].min() < -1e-6
            or point[0] < 0.2 * arm.reach
            or abs(point[1]) > 0.35 * arm.reach
            or axis[2] > 0.3
        ):
            continue
        rows = arm.jacobian(q) / np.repeat([arm.reach, 1.0], 3)[:, None]
        values = np.linalg.svd(rows, compute_uv=False)
        freedom = float(values[min(arm.effective_dof, len(values)) - 1])
        if freedom > most:
            best, most = q, freedom
    return best


def add_html(group: argparse._ArgumentGroup) -> None:
    """Add the options of this output."""
    group.add_argument('--html', metavar='FILE', help='write a page of the arm, which opens without a server or Python')


def html_files(arm: Arm, name: str, arguments: argparse.Namespace) -> dict[Path, str]:  # noqa: ARG001
    """Return the page by its path. Raises ExportError without a compiler."""
    text = load_description(arguments.description_file, arguments.xacro_args)
    content, notes = page_of(arm, text, str(mesh_folder(arguments.description_file, text) or ''))
    for note in notes:
        say(f'note: {note}', sys.stderr)
    return {arguments.html: content}
