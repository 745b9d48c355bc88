# SPDX-License-Identifier: Apache-2.0
"""Sheets, kept touches, tables and calibrated descriptions; ik_calibrate without an arm."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest
from programs import check_rejected, ran
from touched_arms import ARM, FILE, MODEL, SHEET, TEXT, errors, touched

from ik_node import Arm, InputError
from ik_node.calibration import program
from ik_node.calibration.estimator import FRAMES, ON_OUTLINE, Calibration, Fit, TouchModel
from ik_node.calibration.files import (
    Record,
    Touch,
    calibrated_description,
    digest,
    load_record,
    record_path,
    sheet_pose,
)
from ik_node.calibration.poses import Poses
from ik_node.calibration.session import CHECKS, TOUCHES, Session, still
from ik_node.calibration.sheet import PAPERS, Sheet, outline_of
from ik_node.model.urdf.description import load_description


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path / 'config'))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_calibrated_description_moves_as_the_arm_does():
    parameters = errors(0)
    parameters[MODEL.pose] = [1e-3, 2e-3, -1e-3, 0.01, -0.02, 0.03]
    fit = Fit(parameters, np.zeros((len(parameters),) * 2), 1e-3)
    text = calibrated_description(MODEL, TEXT, Calibration(FRAMES, fit, 0.0, 0.0, 0.0, {}))
    arm, pose = Arm.from_urdf(text, 'calibrated_tool', tool_axis='z'), sheet_pose(MODEL, parameters)
    for q in ARM.sample(np.random.default_rng(1), 10):
        point = (arm.fk(q)[0] - pose[:3, 3]) @ pose[:3, :3]
        np.testing.assert_allclose(point, MODEL.points(q[None], parameters)[0][0], atol=1e-8)
    assert arm.name.startswith(f'{ARM.name}_calibrated_20')
    rests = dict.fromkeys(ARM.joint_names, 0.0)
    np.testing.assert_allclose(arm.link_in_base('sheet', rests), pose, atol=1e-8)
    again = TouchModel(arm, SHEET.places, SHEET.pose)
    with pytest.raises(InputError, match='has a link "sheet"'):
        calibrated_description(again, text, Calibration(FRAMES, fit, 0.0, 0.0, 0.0, {}))


def test_a_sheet_has_the_outline_and_rejects_a_wrong_scale(tmp_path):
    assert SHEET.known == ON_OUTLINE
    corners = SHEET.outline @ SHEET.pose[:2, :2].T + SHEET.pose[:2, 3]
    assert np.ptp(corners, axis=0).min() > 0.03
    assert SHEET.model(ARM, 0.201).places == pytest.approx(1.005 * SHEET.places)
    for bar in (0.196, 0.2041, float('nan')):
        with pytest.raises(InputError, match=r'the bar measures .* mm instead of 200 mm'):
            SHEET.model(ARM, bar)
    # The outline grows with the paper: the edge at which the base stands stays where it is.
    edge = np.array([0.02 - 0.5 * PAPERS['A4'][0], 0.0, 0.0])
    for bar in (0.198, 0.202):
        pose = SHEET.model(ARM, bar).sheet
        scaled = pose[:3, :3] @ edge * (bar / 0.2) + pose[:3, 3]
        np.testing.assert_allclose(scaled, SHEET.pose[:3, :3] @ edge + SHEET.pose[:3, 3], atol=1e-12)
    assert Sheet.of(ARM).known[0] > 0.1
    for paper, (length, width) in PAPERS.items():
        SHEET.draw(tmp_path / 'sheet.pdf', 'title')
        Sheet.of(ARM, TEXT, paper=paper).draw(tmp_path / 'sheet.pdf', 'title')
        box = re.search(rb'/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]', (tmp_path / 'sheet.pdf').read_bytes())
        assert [float(number) / 72 * 0.0254 for number in box.groups()] == pytest.approx([width, length], abs=1e-4)


def test_touches_are_kept_and_go_on_another_day(tmp_path):
    path = tmp_path / 'touches.yaml'
    assert load_record(path, TEXT) is None
    session = Session(MODEL, Record(path, digest(TEXT), SHEET, 0.199))
    assert session.undo() is None
    for number in range(3):
        todo = session.next()
        assert not todo.check
        session.touch(todo.cross, [todo.q] * 5)
        assert len(load_record(path, TEXT).touches) == number + 1
    again = Session(MODEL, load_record(path, TEXT))
    np.testing.assert_allclose(again.record.sheet.places, SHEET.places, atol=1e-6)
    np.testing.assert_allclose(again.record.sheet.pose, SHEET.pose, atol=1e-6)
    assert (again.record.bar, again.record.sheet.known) == (0.199, SHEET.known)
    assert again.record.touches == session.record.touches
    assert again.undo() == session.record.touches[-1]
    assert len(load_record(path, TEXT).touches) == 2
    with pytest.raises(InputError, match='made with another description'):
        load_record(path, TEXT.replace('<link', '<link name="more"/><link', 1))
    path.write_text(path.read_text().replace('cross: ', 'cross: 7'))
    with pytest.raises(InputError, match='is not on the sheet, it has 1 to 6'):
        load_record(path, TEXT)
    path.write_text('touches: 5\n')
    with pytest.raises(InputError, match=r'touches\.yaml'):
        load_record(path, TEXT)


def test_touches_are_of_a_description_however_its_file_is_named():
    relative = os.path.relpath(FILE)
    assert digest(load_description(relative)) == digest(load_description(Path(FILE).resolve()))


def test_a_touch_that_cannot_be_stored_is_not_taken(tmp_path):
    session = Session(MODEL, Record(tmp_path / 'touches.yaml', digest(TEXT), SHEET))
    kept = session.touch(1, [ARM.middle] * 5)
    session.record.path = tmp_path / 'touches.yaml' / 'below_a_file.yaml'
    for act in (lambda: session.touch(2, [ARM.middle] * 5), session.undo):
        with pytest.raises(InputError):
            act()
        assert session.record.touches == [kept]


def test_another_arm_is_no_part_of_the_outline():
    other = (
        '<link name="other"><visual><geometry><box size="0.1 0.1 0.5"/></geometry></visual></link>'
        '<joint name="other_joint" type="revolute"><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" '
        f'velocity="1"/><parent link="{ARM.base_link}"/><child link="other"/></joint></robot>'
    )
    text = TEXT.replace('</robot>', other)
    outline, floor = outline_of(Arm.from_urdf(text, ARM.tip_link, tool_axis=ARM.tool_axis), text, '')
    known, table = outline_of(ARM, TEXT, '')
    np.testing.assert_allclose(outline, known)
    assert floor == table


def test_the_last_touches_are_only_compared(tmp_path):
    session = Session(MODEL, Record(tmp_path / 'touches.yaml', digest(TEXT), SHEET))
    while not session.done:
        todo = session.next()
        kept = session.touch(todo.cross, [todo.q] * 5)
        assert kept.check == todo.check
    assert [touch.check for touch in session.record.touches] == [False] * TOUCHES + [True] * CHECKS


@pytest.mark.parametrize(
    ('seen', 'named'),
    [
        ([ARM.middle] * 4, '4 joint_states came'),
        ([ARM.middle] * 9 + [ARM.middle + 0.004 * np.eye(5)[1]], 'joint "shoulder_lift" moved'),
        ([ARM.middle] * 9 + [np.full(5, np.nan)], 'not a number'),
        ([ARM.middle + 57.3] * 9, 'are the positions in degrees'),
    ],
)
def test_a_touch_is_refused_while_the_arm_moves(seen, named):
    with pytest.raises(InputError, match=named):
        still(MODEL, seen)


def test_zeros_in_the_driver_are_added_to_the_touches_that_are_kept(tmp_path):
    record = Record(tmp_path / 'touches.yaml', digest(TEXT), SHEET, touches=[Touch(1, {'a': 0.5, 'b': 1.0})])
    record.move_zeros({'a': 0.1})
    assert load_record(record.path, TEXT).zeros == {'a': 0.1}
    assert record.touches[0].joints == pytest.approx({'a': 0.6, 'b': 1.0})
    record.move_zeros({'a': -0.1})
    assert load_record(record.path, TEXT).zeros == {}
    assert record.touches[0].joints == pytest.approx({'a': 0.5, 'b': 1.0})


def table(path, crosses=None):
    """Write touches of an arm with errors as a table."""
    poses = Poses(MODEL)
    rows = [int(np.flatnonzero(poses.crosses == k % 6)[7 * (k // 6)]) for k in range(15)]
    touches = touched(errors(6), poses.q[rows], poses.crosses[rows])
    with path.open('w', newline='') as stream:
        write = csv.writer(stream)
        write.writerow(['cross', *ARM.joint_names, 'check'])
        for k, (cross, q) in enumerate(zip(touches.crosses, touches.q, strict=True)):
            write.writerow([(crosses or {}).get(k, cross + 1), *q, int(k >= 12)])


@pytest.mark.slow
def test_a_table_of_touches_becomes_a_description(tmp_path):
    table(tmp_path / 'touches.csv')
    ended = ran(program, FILE, '--touches', 'touches.csv', '--output', 'real.urdf')
    assert ended.code == 0, ended
    before, after = map(float, re.search(r'missed by ([\d.]+) mm, now by ([\d.]+) mm', ended.out).groups())
    assert before > 8.0
    assert after < 3.0
    assert float(re.search(r'3 checks: ([\d.]+) mm', ended.out)[1]) < 3.0
    assert 'real.urdf is written' in ended.out
    Arm.from_file(tmp_path / 'real.urdf', 'calibrated_tool')
    check_rejected(ran(program, FILE, '--touches', 'touches.csv', '--output', 'real.urdf'), 'exists already')


@pytest.mark.slow
def test_wrong_arguments_are_rejected_in_one_line(tmp_path):
    table(tmp_path / 'wrong.csv', {3: 9})
    (tmp_path / 'empty.csv').write_text('cross\n')
    (tmp_path / 'text.csv').write_text(f'cross,{",".join(ARM.joint_names)}\n1,a,0,0,0,0\n')
    for name, check in (('named', 'False'), ('odd', 'maybe')):
        (tmp_path / f'{name}.csv').write_text(f'cross,{",".join(ARM.joint_names)},check\n1,0,0,0,0,0,{check}\n')
    for given, named in (
        (['--touches', 'wrong.csv'], 'cross 9 is not on the sheet'),
        (['--touches', 'empty.csv'], 'has no column "shoulder_pan"'),
        (['--touches', 'text.csv'], 'line 2: not all its columns are numbers'),
        (['--touches', 'named.csv'], 'got 1 of 1'),
        (['--touches', 'odd.csv'], 'line 2: check must be 0 or 1, got "maybe"'),
        (['--touches', 'none.csv'], 'none.csv'),
        (['--solve'], 'no sheet of so101_like was printed'),
    ):
        check_rejected(ran(program, FILE, *given), named)
    assert ran(program, FILE, '--sheet', 'sheet.pdf').code == 0
    assert (tmp_path / 'sheet.pdf').stat().st_size > 1000
    for given, named in (
        (['--solve'], 'at least 8 touches of 4 crosses are needed, got 0'),
        (['--solve', '--bar', '190'], 'the bar measures 190 mm'),
        (['--sheet', 'sheet.pdf'], 'exists already'),
        (['--solve', '--bar', '199'], 'at least 8 touches'),
    ):
        check_rejected(ran(program, FILE, *given), named)
    assert load_record(record_path(ARM.name), TEXT).bar == 0.199


@pytest.mark.slow
def test_nothing_is_written_where_nothing_is_better(tmp_path):
    poses = Poses(MODEL)
    rows = [int(np.flatnonzero(poses.crosses == k % 6)[7 * (k // 6)]) for k in range(12)]
    record = Record(tmp_path / 'kept.yaml', digest(TEXT), SHEET)
    touches = touched(np.zeros(MODEL.pose.stop), poses.q[rows], poses.crosses[rows])
    for cross, q in zip(touches.crosses.tolist(), touches.q.tolist(), strict=True):
        record.touches.append(Touch(cross + 1, dict(zip(ARM.joint_names, q, strict=True))))
    record.store()
    ended = ran(program, FILE, '--touches', 'kept.yaml', '--solve', '--output', 'real.urdf')
    assert ended.code == 1
    assert 'nothing was written' in ended.out
    assert not (tmp_path / 'real.urdf').exists()
