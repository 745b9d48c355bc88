# SPDX-License-Identifier: Apache-2.0
"""What a calibration keeps: touches, which stay so that it can go on another day, and the description that it makes."""

from __future__ import annotations

import csv
import datetime
import hashlib
import math
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lxml import etree
from transforms3d.euler import mat2euler

from ik_node.checks import Array
from ik_node.errors import InputError, join_names, path_text, quoted
from ik_node.files import fields, list_of, mapping_of, number, one_of, read_file, switch, text, whole_number, write_file
from ik_node.kernels.arrays import AXIS, OFFSET
from ik_node.model.rotations import turned_by
from ik_node.model.urdf.elements import Reading, named, parse_xml

from .estimator import Calibration, Touches, TouchModel
from .sheet import BAR, PAPERS, Sheet

SHEET, TOOL = 'sheet', 'calibrated_tool'  # links that a calibrated description has besides
HEADER = '# Touches of the crosses of a sheet, by ik_calibrate. Remove this file to begin again.\n'
CHECKED = {'': False, '0': False, 'false': False, '1': True, 'true': True}  # in a table
ONE = fields({'cross': whole_number(1), 'joints': mapping_of(number()), 'check': switch}, required=('cross', 'joints'))
PRINTED = {
    'paper': one_of(*PAPERS),
    'crosses': list_of(list_of(number(), 2)),
    'position': list_of(number(), 3),
    'yaw': number(),
    'outlined': switch,
}
REST = {'description': text, 'bar': number(), 'date': text, 'zeros': mapping_of(number()), 'touches': list_of(ONE)}
RECORD = fields({'sheet': fields(PRINTED, required=PRINTED), **REST}, required=('sheet', *REST))


@dataclass(frozen=True)
class Touch:
    """Where the joints were [rad or m] while the tool was at a cross, from 1; check: it is only compared."""

    cross: int
    joints: dict[str, float]
    check: bool = False


@dataclass
class Record:
    """The touches of one arm.

    description: a digest of its URDF. sheet: as it was printed, and what its bar measures [m]. zeros [rad or m]: by
    joint, what its driver adds to its positions since a calibration; the touches are as if it had done so before.
    """

    path: Path
    description: str
    sheet: Sheet
    bar: float = BAR
    touches: list[Touch] = field(default_factory=list)
    zeros: dict[str, float] = field(default_factory=dict)

    def of(self, joint_names: tuple[str, ...], check: bool | None = None) -> Touches:
        """Return the touches, the checks, or both (None). Raises InputError for joints that are missing."""
        chosen = [touch for touch in self.touches if check in (None, touch.check)]
        for touch in chosen:
            if missing := [name for name in joint_names if name not in touch.joints]:
                raise InputError(f'{path_text(self.path)}: a touch has no joint {join_names(missing)}')
        rows = [[touch.joints[name] for name in joint_names] for touch in chosen]
        crosses = np.array([touch.cross - 1 for touch in chosen], dtype=np.int64)
        return Touches(np.array(rows).reshape(-1, len(joint_names)), crosses)

    def store(self) -> None:
        """Write the file. Raises InputError."""
        entries = [
            {'cross': touch.cross, 'joints': touch.joints, **({'check': True} if touch.check else {})}
            for touch in self.touches
        ]
        date = datetime.datetime.now().astimezone().isoformat(timespec='minutes')
        pose = self.sheet.pose
        printed = {
            'paper': self.sheet.paper,
            'crosses': np.round(self.sheet.places[:, :2], 6).tolist(),
            'position': np.round(pose[:3, 3], 6).tolist(),
            'yaw': math.atan2(pose[1, 0], pose[0, 0]),
            'outlined': self.sheet.outlined,
        }
        content = {
            'description': self.description,
            'bar': self.bar,
            'date': date,
            'zeros': self.zeros,
            'sheet': printed,
        }
        write_file(self.path, HEADER + yaml.safe_dump({**content, 'touches': entries}, sort_keys=False))

    def move_zeros(self, zeros: dict[str, float]) -> None:
        """Note that the driver adds zeros to its positions from now on, and store that."""
        self.touches = [
            replace(touch, joints={name: value + zeros.get(name, 0.0) for name, value in touch.joints.items()})
            for touch in self.touches
        ]
        total = {name: self.zeros.get(name, 0.0) + zero for name, zero in zeros.items()}
        self.zeros = total if max(map(abs, total.values()), default=0.0) > 1e-9 else {}
        self.store()


def digest(description: str) -> str:
    """Return what tells descriptions apart, but for comments: in one, xacro notes how its file was named."""
    return hashlib.sha256(ET.canonicalize(description, strip_text=True).encode()).hexdigest()[:16]


def record_path(arm: str) -> Path:
    """Return the file of the touches of an arm by its name."""
    home = Path(os.environ.get('XDG_CONFIG_HOME') or '~/.config').expanduser()
    name = re.sub(r'[^\w.-]+', '_', arm) or 'arm'
    return home / 'ik_node' / 'calibration' / f'{name}.yaml'


def load_record(path: Path, description: str) -> Record | None:
    """Return the touches in a YAML file, None if there is no such file.

    Raises InputError for a file that is damaged, or whose touches are of another description.
    """
    try:
        found = read_file(path, 'touches', RECORD)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    touches = [Touch(**entry) for entry in found['touches']]
    if found['description'] != digest(description):
        raise InputError(
            f'the {len(touches)} touches in {path_text(path)} were made with another description: remove the file to '
            'begin again'
        )
    printed, pose = found['sheet'], np.eye(4)
    pose[:3, :3] = turned_by(np.array([0.0, 0.0, printed['yaw']]))
    pose[:3, 3] = printed['position']
    places = np.array([[*place, 0.0] for place in printed['crosses']])
    sheet = Sheet(places, pose, printed['paper'], printed['outlined'])
    _check_crosses(path, touches, len(places))
    return Record(path, found['description'], sheet, found['bar'], touches, found['zeros'])


def read_csv(path: Path, joint_names: tuple[str, ...], description: str, sheet: Sheet) -> Record:
    """Return the touches in a CSV file: columns cross, the joints [rad or m], and check (1: only compared).

    Raises InputError.
    """
    record = Record(path, digest(description), sheet)
    try:
        with path.open(newline='', encoding='utf-8') as stream:
            rows = csv.DictReader(stream)
            if missing := [name for name in ('cross', *joint_names) if name not in (rows.fieldnames or ())]:
                raise InputError(f'{path_text(path)} has no column {join_names(missing)}')
            for line, row in enumerate(rows, 2):
                try:
                    joints = {name: float(row[name]) for name in joint_names}
                    touch = Touch(int(row['cross']), joints, CHECKED[(row.get('check') or '').strip().lower()])
                except (TypeError, ValueError):
                    raise InputError(f'{path_text(path)}, line {line}: not all its columns are numbers') from None
                except KeyError:
                    raise InputError(
                        f'{path_text(path)}, line {line}: check must be 0 or 1, got {quoted(row["check"])}'
                    ) from None
                if not all(map(math.isfinite, joints.values())):
                    raise InputError(f'{path_text(path)}, line {line}: a joint is not a finite number')
                record.touches.append(touch)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f'cannot read {path_text(path)}: {error}') from None
    _check_crosses(path, record.touches, len(sheet.places))
    return record


def _check_crosses(path: Path, touches: list[Touch], count: int) -> None:
    for touch in touches:
        if not 1 <= touch.cross <= count:
            raise InputError(f'{path_text(path)}: cross {touch.cross} is not on the sheet, it has 1 to {count}')


def calibrated_description(model: TouchModel, description: str, found: Calibration) -> str:
    """Return the URDF text with the frames of the joints as they are, and two more links.

    The links are SHEET, the frame of the sheet, fixed to the base link, and TOOL, at the tool point with the axes of
    the tip link. Raises InputError for a description that has them already.
    """
    arm, root = model.arm, parse_xml(description, Reading())
    if SHEET in arm.robot.links or TOOL in arm.robot.links:
        raise InputError(f'the description has a link {quoted(SHEET)} or {quoted(TOOL)}: give the one it was made from')
    errors = found.fit.parameters[: model.tool.start].reshape(-1, 7)
    rests = dict.fromkeys(arm.joint_names, 0.0)
    joints, elements = arm.robot.joints, named(root, 'joint')
    for row, error, name in zip(arm.joints, errors, arm.joint_names, strict=True):
        # The frames of the model have the axes of the base at the zero pose. There the link is turned by B, so
        # that a displacement t and a rotation E become B^T t and B^T E B in the frame of the joint.
        turned = arm.link_in_base(joints[name].child, rests)[:3, :3]
        change = np.eye(4)
        rotation = turned_by(error[3:6])
        shift = error[:3]
        if joints[name].type == 'prismatic':
            shift = shift + rotation @ (error[6] * row[AXIS])
        else:
            rotation = rotation @ turned_by(error[6] * row[AXIS])
        change[:3, :3], change[:3, 3] = turned.T @ rotation @ turned, turned.T @ shift
        _set_origin(elements[name], joints[name].origin @ change)
    tip = arm.link_in_base(arm.tip_link, rests)
    last = arm.joints[:, OFFSET].sum(axis=0)
    point = np.eye(4)
    point[:3, 3] = tip[:3, :3].T @ (last + arm.tool[:3] + found.fit.parameters[model.tool] - tip[:3, 3])
    _add_link(root, arm.tip_link, TOOL, point)
    _add_link(root, arm.base_link, SHEET, sheet_pose(model, found.fit.parameters))
    root.set('name', f'{arm.name}_calibrated_{datetime.date.today():%Y%m%d}')  # taught programs note it
    return str(etree.tostring(root, encoding='unicode', pretty_print=True))


def sheet_pose(model: TouchModel, parameters: Array) -> Array:
    """Return the estimated pose (4, 4) of the sheet's frame in that of the base."""
    pose = model.sheet.copy()
    shift, turn = parameters[model.pose][:3], parameters[model.pose][3:]
    pose[:3, :3] = turned_by(turn) @ pose[:3, :3]
    pose[:3, 3] += shift
    return pose


def _set_origin(joint: Any, pose: Array) -> None:
    origin = joint.find('origin')
    if origin is None:
        origin = etree.SubElement(joint, 'origin')
    angles = mat2euler(pose[:3, :3], 'sxyz')  # fixed axes: roll, pitch, yaw of a URDF
    for name, vector in (('xyz', pose[:3, 3]), ('rpy', angles)):
        origin.set(name, ' '.join(f'{value + 0.0:.9g}' for value in np.round(vector, 12)))


def _add_link(root: Any, parent: str, name: str, pose: Array) -> None:
    etree.SubElement(root, 'link', name=name)
    joint = etree.SubElement(root, 'joint', name=f'{name}_joint', type='fixed')
    _set_origin(joint, pose)
    etree.SubElement(joint, 'parent', link=parent)
    etree.SubElement(joint, 'child', link=name)
