# SPDX-License-Identifier: Apache-2.0
"""Teach: between the folder Teach of the panel, a program, its files, and its runs."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import viser
from rclpy.subscription import Subscription
from rclpy.task import Future
from std_srvs.srv import SetBool

from ik_node.checks import Array
from ik_node.control.preview import Previews
from ik_node.control.settings import ArmSettings
from ik_node.errors import IkError, InputError, quoted
from ik_node.model.arm import Arm, tool_at
from ik_node.model.gripper import Gripper
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.programs.player import Player
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.steady import steady
from ik_node.teach.check import CheckReport, check
from ik_node.teach.program import JOINT, LINE, LONGEST_WAIT, MIN_SPEED, MOTIONS, Point, Program
from ik_node.teach.runner import Runner, State

from . import panel
from .events import Event, Worker
from .panel import ALERT, GREEN, GREY, NONE, RED, SENTENCES, Colour, JointScale, at_page, capital, update
from .scene import extent_of, pose_of
from .section import Frame, Page, RobotView, Section
from .tool import ViewedTool

SIZE = 0.012  # radius of a point, as a share of the extent of the robot
SELECTED = 1.6  # times as large
THICKNESS = 3.0  # pixels
PLAIN: Colour = (28, 132, 128)
WRONG: Colour = (212, 60, 60)


class Mark(NamedTuple):
    """A point at position (3,) [m] in the base link's frame. straight: the tool comes in a line."""

    name: str
    position: Array
    straight: bool
    selected: bool
    wrong: bool


class TeachScene:
    """The points of a program, until the scene is cleared."""

    def __init__(self, server: viser.ViserServer, extent: float) -> None:
        """extent [m]: of the robot."""
        self._scene, self._radius = server.scene, SIZE * extent
        self._root: viser.FrameHandle | None = None

    def show(self, marks: Sequence[Mark], T_root_base: Array) -> None:
        """Show these points instead of the last ones."""
        if self._root is not None:
            self._root.remove()
        self._root = self._scene.add_frame('/teach', show_axes=False, **pose_of(T_root_base))
        for k, mark in enumerate(marks):
            radius = self._radius * (SELECTED if mark.selected else 1.0)
            colour = WRONG if mark.wrong else PLAIN
            self._scene.add_icosphere(f'/teach/{k}', radius, colour, subdivisions=2, position=mark.position)
            self._scene.add_label(f'/teach/{k}/name', mark.name, position=(0.0, 0.0, 2.0 * radius))
        lines = [(a.position, b.position) for a, b in pairwise(marks) if b.straight]
        if lines:
            self._scene.add_line_segments(
                '/teach/lines', np.array(lines), PLAIN, thickness=THICKNESS, thickness_units='screen'
            )


SUFFIX = '.yaml'
FILE_NAME = re.compile(r'\w[\w .-]{0,60}')
UNSAVED = 'unsaved'
DOUBLE_CLICK = 0.5  # [s] within which a second press is not another decision


class Files:
    """The files of programs: which one the shown program comes from, and whether it is saved there."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).expanduser().absolute()
        self._file: Path | None = None  # from which the program comes, or in which it was saved last
        self._saved: Program | None = None  # the program in that file
        self._replaces: Path | None = None  # another program that a second press of Save replaces
        self._refused_at = 0.0  # when the first one was (steady)

    def path(self, name: str) -> Path:
        """Return the path of a file. Raises InputError."""
        name = name.removesuffix(SUFFIX)
        if not FILE_NAME.fullmatch(name):
            raise InputError('a file name may contain letters, digits, spaces, ".", "-" and "_"')
        return self._at(name)

    def _at(self, name: str) -> Path:
        return self._folder / f'{name}{SUFFIX}'

    def names(self) -> list[str]:
        """Return the names of all programs."""
        try:
            return sorted(path.stem for path in self._folder.glob(f'*{SUFFIX}') if path.name[0] != '.')
        except OSError:
            return []

    def last_unsaved(self) -> str:
        """Return the name of the newest program if it was kept without being saved, else ''."""
        with suppress(OSError):
            newest = max(self._folder.glob(f'*{SUFFIX}'), key=lambda path: path.stat().st_mtime, default=Path())
            return newest.stem if re.fullmatch(rf'{UNSAVED}(_\d+)?', newest.stem) else ''
        return ''

    def load(self, name: str) -> Program:
        """Return a program. Raises InputError."""
        return Program.load(self._at(name))

    def save(self, program: Program, name: str) -> Path:
        """Save the program and return where; over another one only if asked twice. Raises InputError."""
        path = self.path(name)
        again = path == self._replaces and steady() > self._refused_at + DOUBLE_CLICK
        if path.exists() and path != self._file and not again:
            self._replaces, self._refused_at = path, steady()
            raise InputError(f'{path} is another program: press Save again to replace it')
        program.save(path)
        self._file, self._saved, self._replaces = path, program, None
        return path

    def keep_unsaved(self, program: Program) -> str:
        """Keep a program before another one is shown; return a sentence on that. Raises InputError."""
        if not program.points or program is self._saved:
            return ''
        names = (f'{UNSAVED}_{number}' if number > 1 else UNSAVED for number in count(1))
        name = next(name for name in names if not self._at(name).exists())
        program.save(self._at(name))
        return f'The previous program was not saved; it is kept as {name}.'

    def show(self, program: Program, name: str = '') -> None:
        """Note that a program is shown that was loaded by a name; '' if it is in no file."""
        self._file = self._at(name) if name else None
        self._saved = program if name else None
        self._replaces = None


ORDER = 0.95e6  # of the folder: below the solutions, above the methods
ROW_ORDER = 1e-5  # between two rows; viser counts the controls that have no order of their own
AT_GIZMO, AT_ARM = 'At the arrows', 'At the arm'
TO_GIZMO, TO_ARM = 'To the arrows', 'To the arm'
NO_RUN = 'No points', '1 point', '{} points'
UP, DOWN, DELETE = 'Up', 'Down', 'Delete'
CHECK, RUN, STEP, PAUSE, CONTINUE = 'Check', 'Run', 'Step', 'Pause', 'Continue'
GUIDING, GUIDE, HOLD = 'Measured arm', 'Guide by hand', 'Hold'
SAVE, DOWNLOAD, OPEN, UPLOAD, NEW = 'Save', 'Download', 'Open', 'Upload', 'New'
REOPEN = 'Open the last program'
TOOL, ROW, NAME, STORED, MOTION, SPEED, WAIT, GRIPS, GRIPPER = (
    'tool', 'row', 'name', 'stored', 'motion', 'speed', 'wait', 'grips', 'gripper',
)  # fmt: skip
KINDS = JOINTS, TOOL_ONLY = 'joints', 'tool'
COLOURS: dict[str, Colour] = {'': (100, 116, 139), 'selected': (20, 116, 112), 'wrong': ALERT}
PILLS = {'Running': GREEN, 'Finished': GREEN, 'Ready to run': GREEN, 'Ended': RED, 'Rejected': RED}


class TeachPanel:
    """The controls in the folder of a section."""

    def __init__(self, section: Section, tools: Sequence[str], act: Callable[[str, Event], object]) -> None:
        """tools: their names; a choice if there are several. act: called with what a user does."""
        self._section, self._gui, self._act = section, section.gui, act
        self._rows: list[viser.GuiButtonHandle] = []
        self._controls: list[Any] = []
        self._scale = JointScale.of(0.0, 1.0)  # of the gripper's slider
        self._tool: viser.GuiDropdownHandle[str] | None = None
        gui = self._gui
        with section.folder:
            if len(tools) > 1:
                self._tool = self._listen(gui.add_dropdown('Tool', tuple(tools)), TOOL)
            self._state = gui.add_html('')
            self._reopen = self._button(REOPEN, visible=False)
            self._guide = self._group(GUIDING, (GUIDE, HOLD))
            self._add = self._group('Add point', (AT_GIZMO, AT_ARM))
            self._run = self._button(RUN, icon=viser.Icon.PLAYER_PLAY)
            self._pause = self._button(PAUSE, icon=viser.Icon.PLAYER_PAUSE)
            self._single = self._group('Program', (CHECK, STEP, CONTINUE))
            self.loops = gui.add_number(
                'Loops', 1, min=0, max=1_000_000, step=1, hint='0 repeats the program until it is stopped.'
            )
            self._edit = gui.add_folder('Point', visible=False)
            with self._edit:
                self._add_editor()
            with gui.add_folder('Save and open', expand_by_default=False):
                self._name = gui.add_text('File name', 'program')
                self._save = self._button(SAVE)
                self._group('Program file', (NEW, DOWNLOAD))
                self.file = self._listen(gui.add_dropdown('Open', (NONE,)), OPEN)
                self._listen(gui.add_upload_button(UPLOAD, mime_type='.yaml,.yml'), UPLOAD)

    def _add_editor(self) -> None:
        gui = self._gui
        self._editor: dict[str, Any] = {
            NAME: gui.add_text('Name', ''),
            STORED: gui.add_dropdown(
                'Stored as',
                KINDS,
                hint='joints: for this arm only. tool: position and direction of the tool.',
            ),
            MOTION: gui.add_dropdown('Motion', MOTIONS),
            SPEED: gui.add_slider('Speed [%]', 100 * MIN_SPEED, 100, 1, 100),
            WAIT: gui.add_number('Wait [s]', 0.0, min=0.0, max=LONGEST_WAIT, step=0.1),
            GRIPS: gui.add_checkbox('Move the gripper', False, visible=False),
            GRIPPER: gui.add_slider('Gripper', 0.0, 1.0, 0.1, 0.0, visible=False),
        }
        for what, control in self._editor.items():
            self._listen(control, what)
        self._group('Set', (TO_GIZMO, TO_ARM))
        self._group('Order', (UP, DOWN, DELETE))

    def _group(self, label: str, names: Sequence[str]) -> Any:
        return self._listen(self._gui.add_button_group(label, names))

    def _button(self, name: str, **options: Any) -> Any:
        return self._listen(self._gui.add_button(name, disabled=True, **options), name)

    def _listen(self, control: Any, what: str = '') -> Any:
        """Have users act at a control; what: its value by default, such as a button of a group."""
        self._controls.append(control)
        return self._section.listen(
            control,
            lambda event: self._act(what or event.value, event),
            always=(True,) if what == PAUSE else () if what else (HOLD,),
        )

    def _add_row(self) -> None:
        with self._section.folder:
            row = self._gui.add_button('', order=self._add.order + ROW_ORDER * (len(self._rows) + 1))

        def clicked(event: Event) -> None:
            if row in self._rows:
                self._act(ROW, event._replace(value=self._rows.index(row)))

        self._section.listen(row, clicked)
        self._rows.append(row)

    @property
    def pending(self) -> bool:
        """Whether users did something that has not been processed."""
        return self._section.events.pending(*self._controls, *self._rows)

    @property
    def file_name(self) -> str:
        """The name of the file that users gave."""
        return self._name.value.strip()

    def set_file_name(self, name: str) -> None:
        """Show the name of a file that was opened. The same one can be chosen again."""
        self._name.value = name  # type: ignore[misc]
        update(self.file, value=NONE)

    def set_gripper(self, gripper: Gripper | None) -> None:
        """Offer a slider for the gripper joint, or none."""
        slider, joint = self._editor[GRIPPER], None if gripper is None else gripper.joint
        self._editor[GRIPS].visible = slider.visible = joint is not None
        if joint is not None:
            assert gripper is not None
            low, high = sorted(gripper.ends[joint.name])
            self._scale = JointScale.of(low, high, joint.type == 'prismatic')
            slider.label = f'{joint.name} [{self._scale.sign}]'
            slider.min, slider.max = self._scale.low, self._scale.high

    def gripper_value(self) -> float:
        """Return the value of the gripper's slider [rad or m]."""
        return float(self._editor[GRIPPER].value) * self._scale.unit

    def show_tool(self, name: str) -> None:
        """Show which tool the program is for."""
        if self._tool is not None:
            update(self._tool, value=name)

    def show_program(self, program: Program, selected: int, wrong: Sequence[str], following: int) -> None:
        """Show the points; selected, following: numbers of that to edit and the next one. wrong: names."""
        while len(self._rows) < len(program.points):
            self._add_row()
        while len(self._rows) > len(program.points):
            self._rows.pop().remove()
        for k, (row, point) in enumerate(zip(self._rows, program.points, strict=True)):
            look = 'wrong' if point.name in wrong else 'selected' if k == selected else ''
            update(row, label=_row_label(k, point, k == following and following > 0), color=COLOURS[look])

    def show_point(self, point: Point | None) -> None:
        """Show a point in the editor."""
        update(self._edit, visible=point is not None)
        if point is None:
            return
        values = {
            NAME: point.name,
            STORED: JOINTS if point.joints is not None else TOOL_ONLY,
            MOTION: point.motion,
            SPEED: round(100 * point.speed),
            WAIT: point.wait,
            GRIPS: point.gripper is not None,
        }
        for what, value in values.items():
            update(self._editor[what], value=value)
        if point.gripper is not None:
            update(self._editor[GRIPPER], value=self._scale.shown(point.gripper))

    def offer(self, points: bool, active: bool, stopped: bool, measured: bool) -> None:
        """Enable what can be done now; rows of buttons, which viser cannot disable, are hidden.

        points: there are some. active: a run goes on. stopped: the arm needs a resume. measured: it can be guided.
        """
        update(self._run, disabled=not points or active or stopped)
        update(self._pause, disabled=not active)
        update(self._save, disabled=not points)
        update(self._single, visible=points)  # also in a run: what is below must not move
        update(self._guide, visible=measured)

    def offer_last(self, name: str) -> None:
        """Offer to open the program that was kept by a name, '' for none."""
        update(self._reopen, visible=bool(name), disabled=not name)

    def show_state(self, title: str, sentences: Sequence[str]) -> None:
        """Show in words what the program does, what its check found and what comes next, at a fixed height."""
        words = ''.join(map(panel.paragraph, sentences))
        content = f'{panel.pills((title, PILLS.get(title, GREY)))}<div style="{SENTENCES}">{words}</div>'
        update(self._state, content=at_page(panel.box(content)))


def _row_label(number: int, point: Point, following: bool) -> str:
    parts = [f'{"▸ " if following else ""}{number + 1}: {point.name}']
    if point.motion != JOINT:
        parts.append(LINE)
    if point.speed != 1.0:
        parts.append(f'{100 * point.speed:.0f} %')
    if point.turned:
        parts.append(f'{math.degrees(point.turned):.0f}° off')
    if point.wait:
        parts.append(f'{point.wait:g} s')
    return ' · '.join(parts)


THERE = 1e-5  # [m] from a position that the arm can reach
ARRIVED, TURNED = 0.01, 0.02  # [m] and [rad]: an arm is at the arrows, but its tool points elsewhere
FIELDS = {NAME: 'name', MOTION: 'motion', WAIT: 'wait'}


def fields_at_gizmo(tool: ViewedTool, values: Mapping[str, float]) -> dict[str, Any]:
    """Return the fields of a point of the tool at the gizmo. Raises InputError without one."""
    pose = tool.scene.gizmo_pose() if tool.scene is not None else None
    if tool.scene is None or tool.arm is None or pose is None:
        raise InputError('there are no arrows yet')
    near = {name: values[name] for name in tool.arm.joint_names if name in values}
    position, axis = tool_at(tool.arm, pose)
    direction, turned = None, 0.0
    if tool.scene.directed:
        direction = tuple(possible_direction(tool.arm, position, axis, near))
        turned = _turned(np.array(direction), axis)
    fields = {'joints': None, 'position': tuple(position.tolist()), 'direction': direction, 'near': near}
    return {**fields, 'turned': turned}


def turned_at_arm(tool: ViewedTool, values: Mapping[str, float]) -> float:
    """Return how far the tool points away from the goal at which the arm is [rad], 0 elsewhere."""
    pose = tool.scene.gizmo_pose() if tool.scene is not None and tool.goal_shown else None
    if pose is None or tool.scene is None or tool.arm is None or not tool.scene.directed:
        return 0.0
    (goal, wanted), (position, axis) = (
        tool_at(tool.arm, one) for one in (pose, tool.arm.link_in_base(tool.arm.tip_link, values))
    )
    return _turned(axis, wanted) if np.linalg.norm(position - goal) < ARRIVED else 0.0


def _turned(axis: Array, wanted: Array) -> float:
    angle = float(np.arccos(np.clip(axis @ wanted, -1.0, 1.0)))
    return angle if angle > TURNED else 0.0


def possible_direction(arm: Arm, position: Array, direction: Array, near: Mapping[str, float]) -> list[float]:
    """Return the closest direction (3,) to which the arm can turn at position (3,) [m], from joints near it.

    Where a position ties the direction, the arm comes to rest there although a user drags the gizmo
    elsewhere. At a position out of reach it is the given direction.
    """
    if arm.effective_dof < 5:
        seed = np.array([near.get(name, 0.0) for name in arm.joint_names])
        found = IkSolver(arm).solve(Goal(position, direction), seed)
        if not found.solved and found.position_error < THERE:
            direction = arm.fk(found.q)[1]
    return [float(value) for value in direction]


def fields_at_arm(arm: Arm, values: Mapping[str, float]) -> dict[str, Any]:
    """Return the fields of a point in joints, where the arm is. Raises InputError if that is unknown."""
    missing = [name for name in arm.joint_names if name not in values]
    if missing:
        raise InputError(f'the position of joint "{missing[0]}" is not known yet')
    joints = {name: values[name] for name in arm.joint_names}
    return {'joints': joints, 'position': None, 'direction': None, 'near': {}, 'turned': 0.0}


def _stored(program: Program, index: int, kind: str, arm: Arm, checked: CheckReport | None) -> dict[str, Any]:
    point = program.points[index]
    if kind == JOINTS:
        if point.joints is not None:
            return {}
        if checked is None or checked.program != program or not checked.moves[index].end:
            raise InputError('check the program first: the check finds the joints of this point')
        return {**fields_at_arm(arm, checked.moves[index].end), 'turned': point.turned}
    if point.joints is None:
        return {}
    position, direction = arm.fk(joints_of(point, arm))
    return {
        'joints': None,
        'position': tuple(position.tolist()),
        'direction': tuple(direction.tolist()),
        'near': point.joints,
    }


def joints_of(point: Point, arm: Arm) -> Array:
    """Return the joints (n,) of a point in joints. Raises InputError if they are of another arm."""
    assert point.joints is not None
    if set(point.joints) != set(arm.joint_names):
        raise InputError(f'point "{point.name}" has the joints of another arm')
    return np.array([point.joints[name] for name in arm.joint_names])


def moved(program: Program, index: int, by: int) -> tuple[Program, int]:
    """Return the program with a point moved up (-1) or down (1) in the list, and its new number."""
    to = index + by
    if not 0 <= to < len(program.points):
        return program, index
    points = list(program.points)
    points[index], points[to] = points[to], points[index]
    return replace(program, points=tuple(points)), to


class RunRequest(NamedTuple):
    """What to do with a program: CHECK, RUN, STEP or CONTINUE. text: the URDF. loops: 0 repeats for ever."""

    what: str
    program: Program
    text: str
    loops: int


class Runs:
    """The runs of one program at a time. Call update once per frame.

    A run begins only if its own check has passed, from where the arm is, and the arm has rested since.
    title, sentence: the state in words. following: number of the point that comes next. checked: the last
    check that has passed. failed: the last check, if it has not passed.
    """

    def __init__(self, page: Page, met: Neighbours) -> None:
        """met: the other programs."""
        self._node, self._met = page.node, met
        self._players: dict[str, Player] = {}  # by tool
        self._player: Player | None = None  # of the present run
        self._runner: Runner | None = None  # once it has begun
        self._worker: Worker[CheckReport | str] = Worker(
            page.events, 'teach', 'unexpected error, please report it: the log of ik_viewer has the details'
        )
        self._previews = Previews()  # of the thread
        self._request: RunRequest | None = None  # what is being prepared
        self._submitted = False
        self._aborted = ''  # why
        self.title, self.sentence, self.following = '', '', 0
        self._passes = self._before = 0  # complete ones: so far, and before the present run
        self.checked: CheckReport | None = None
        self.failed: CheckReport | None = None

    @property
    def active(self) -> bool:
        """Whether a run goes on or is being prepared."""
        return self._player is not None

    def prepare(self, request: RunRequest, now: float) -> None:
        """Prepare a run or a check, at now [s], if nothing goes on."""
        if self.active:
            return
        tool = request.program.tool
        if tool not in self._players:
            self._players[tool] = Player(self._node, self._met, tool)
        if request.what == RUN or self.following >= len(request.program.points):
            self.restart()
        if request.loops and self._passes >= request.loops:
            self._passes = 0
        self._player, self._request, self._submitted = self._players[tool], request, False
        self.failed = None
        self._player.prepare(now)
        self._answer('Checking', 'The arm moves only after the check.' if request.what != CHECK else '')

    def restart(self) -> None:
        """Let the next run begin with the first point."""
        self.following = self._passes = 0

    def edited(self, before: Program, after: Program) -> None:
        """Let the same point come next in a program that was edited, or the first one if it is gone.

        What was reported on the old program is removed.
        """
        names, number = before.names, self.following
        if 0 < number < len(names) and names[number] in after.names:
            self.following = after.names.index(names[number])
        elif len(after.names) != len(names):  # else it was renamed
            self.following = 0
        if self.following:
            self._answer(State.PAUSED.value, f'Next: {quoted(after.names[self.following])}.')
        else:
            self._answer('', '')

    def forget(self) -> None:
        """Forget the checks: they were for another robot."""
        self.checked = self.failed = None

    def pause(self, why: str = '') -> None:
        """Ask for no motion after the present one, and for none of a run that is being prepared."""
        if self._request is not None:
            self._drop(why or 'it was paused')
        elif self._runner is not None:
            self._runner.pause()

    def abort(self, why: str) -> None:
        """Let the next updates stop the arm and end what goes on; for any thread."""
        self._aborted = why

    def _drop(self, why: str) -> None:
        self._worker.drop()
        self._release('Ended', f'{why}. Nothing was started.')

    def _release(self, title: str, sentence: str) -> None:
        if self._player is not None:
            self._player.release()
        self._request = self._player = None
        self._answer(title, sentence)

    def update(self, now: float) -> None:
        """Do what is due at now [s]."""
        player, request, runner = self._player, self._request, self._runner
        if player is None:
            return
        if self._aborted and request is not None:
            return self._drop(self._aborted)
        if self._aborted and runner is not None:
            runner.end(self._aborted, stops=True)
        player.update(now)
        if request is not None:
            if player.interruption:
                self._drop(player.interruption)
            elif player.prepared and not self._submitted:
                self._submitted = True
                self._submit(request, player)
        elif runner is not None:
            self._follow(runner)
            if not player.busy:
                self._player = self._runner = None

    def _submit(self, request: RunRequest, player: Player) -> None:
        begin = self.following if request.what in (STEP, CONTINUE) else 0
        passes = 0 if request.what == CHECK else self._passes
        again = request.what != STEP and request.loops - passes != 1
        settings, start = player.settings, dict(player.joints)
        assert settings is not None
        before, previews = self.checked, self._previews

        def checked() -> CheckReport | str:
            try:
                preview = previews.of(request.text, settings, request.program.tool)
                return check(preview, request.program, start, begin, again, before)
            except IkError as error:
                return str(error)

        self._worker.submit(checked, partial(self._take, player, request))

    def _take(self, player: Player, request: RunRequest, report: CheckReport | str) -> None:
        """Begin a run if its check has passed."""
        if request is not self._request:
            return
        player.update(steady())
        if player.interruption:
            self._drop(player.interruption)
        elif isinstance(report, str):
            self._release('Rejected', report)
        elif not report.passed:
            self.failed = report
            self._release('Rejected', 'the arm has not moved.')
        else:
            self.checked = report
            if request.what == CHECK:
                self._release('Ready to run', '')
            elif not player.prepared:
                self._drop('the arm has moved since the check')
            else:
                self._request = None
                loops = request.loops - self._passes if request.loops else 0
                self._runner = Runner(report, loops, single=request.what == STEP)
                self._before = self._passes
                player.run(self._runner, report.speed)

    def _follow(self, runner: Runner) -> None:
        self.following, self._passes = runner.index, self._before + runner.passes
        sentence = runner.sentence
        if runner.active:
            after = f', after {_runs(self._passes)}' if self._passes else ''
            sentence = f'Moving to {quoted(runner.point)}{after}.'
        elif runner.state is State.PAUSED:
            sentence = f'Next: {quoted(runner.point)}, after {_runs(self._passes)}.'
        elif runner.state is State.FINISHED:
            sentence = f'{_runs(self._passes)}.'
            self.restart()
        self._answer(runner.state.value, sentence)

    def _answer(self, title: str, sentence: str) -> None:
        self.title, self.sentence = title, at_page(capital(sentence))

    def close(self) -> None:
        """End the thread."""
        self._worker.close()


def _runs(count: int) -> str:
    return f'{count} complete run' if count == 1 else f'{count} complete runs'


CLOSED = 'the page was closed'
PATIENCE = 10.0  # [s] for ik_node to stop the arm


class Teach(Section):
    """The program that the page shows. It moves the arm only in runs, which Runs checks first."""

    def __init__(self, page: Page, tools: Sequence[str], met: Neighbours, folder: str) -> None:
        """tools: names of all. met: the other programs. folder: of the programs."""
        super().__init__(page, 'Teach', ORDER, first=True)
        self._files = Files(folder)
        self._panel = TeachPanel(self, tools, self._act)
        self._runs = Runs(page, met)
        self._program, self._selected = Program(tool=tools[0]), 0
        self._tools: dict[str, ViewedTool] = {}
        self._values: Mapping[str, float] = {}  # joint positions by name
        self._scene: TeachScene | None = None
        self._note = ''  # on what a user did last
        self._last = self._files.last_unsaved()  # the program that may be opened again
        self._drawn: object = None  # what the page shows

    def show(self, robot: RobotView | None) -> None:
        """Show another robot, after the scene was cleared, or none. The program stays."""
        super().show(robot)
        self._runs.pause('the robot has changed')
        self._runs.forget()
        self._tools, self._scene, self._drawn = {}, None, None
        if robot is not None:
            self._tools = {tool.name: tool for tool in robot.tools}
            arm = self._arm
            self._scene = TeachScene(self.server, extent_of(arm.robot, arm.tip_link))
            self._panel.set_gripper(self._gripper)

    def subscribe(self) -> Sequence[Subscription]:
        """Pause: a page was opened, and there was none before."""
        self._runs.pause(CLOSED)
        return ()

    def refresh(self) -> None:
        """Look for new files and another gripper, and pause a run that nobody can see any more."""
        if self._tools:
            self._panel.set_gripper(self._gripper)
        self._last = self._files.last_unsaved()
        if self.server.get_clients():
            self.offer(self._panel.file, self._files.names())
        elif self._runs.active:
            self._runs.pause(CLOSED)
            self._runs.update(steady())

    def come_to_rest(self) -> None:
        """End a run, which only this program can go on with; stop the arm."""
        self._runs.abort('ik_viewer has ended')
        deadline = steady() + PATIENCE
        while self._runs.active and steady() < deadline:
            time.sleep(0.05)

    def close(self) -> None:
        """End the thread, and keep a program that was not saved."""
        self._runs.close()
        with suppress(InputError):  # there is nowhere to keep it
            self._files.keep_unsaved(self._program)

    @property
    def _tool(self) -> ViewedTool:
        return self._tools[self._program.tool]

    @property
    def _arm(self) -> Arm:
        arm = self._tool.arm
        assert arm is not None
        return arm

    @property
    def _gripper(self) -> Gripper | None:
        """The gripper of the tool, by the parameters of ik_node as far as they are known."""
        known = None if self.remote.current is None else self.remote.current.arms.get(self._program.tool)
        try:
            return (known or ArmSettings()).gripper(self._arm)
        except InputError:  # the parameters are of another arm, that of ik_node
            return None

    def update(self, frame: Frame) -> None:
        """Go on with a run, and show it and the program."""
        self._values = frame.values
        self._runs.update(steady())
        self._draw()

    def _act(self, what: str, event: Event) -> None:
        """Do what a user asks for, and say why that is not possible."""
        self._note, before = '', self._program
        try:
            self._process(what, event)
        except IkError as error:
            self._note = f'{capital(str(error))}.'
            if what != NAME:  # whoever types a name gets to a valid one letter by letter
                self._drawn = None  # the editor shows the point as it is
        if self._program is not before:
            self._runs.edited(before, self._program)

    def _process(self, what: str, event: Event) -> None:
        if what == PAUSE:
            self._runs.pause()
        elif what == DOWNLOAD and event.client is not None:
            content = self._program.text().encode()
            name = self._files.path(self._panel.file_name).name
            event.client.send_file_download(name, content, save_immediately=True)
        elif what == SAVE:
            path = self._files.save(self._program, self._panel.file_name)
            self._note = f'Saved as {path}.'
        elif self.robot is None:
            raise InputError('there is no robot yet')
        elif what in (GUIDE, HOLD):
            self._guide(what == GUIDE)
        elif what == ROW:
            self._selected = max(0, min(event.value, len(self._program.points) - 1))
            self._drawn = None
        elif self._runs.active:
            raise InputError('pause the program or stop the arm first')
        elif what in (CHECK, RUN, STEP, CONTINUE):
            if what != CHECK:
                self._tool.end_goal()
            request = RunRequest(what, self._program, self.robot.text, int(self._panel.loops.value))
            self._runs.prepare(request, steady())
        elif what == REOPEN:
            self._change_program(OPEN, self._last)
        elif what in (OPEN, UPLOAD, NEW, TOOL):
            self._change_program(what, event.value)
        else:
            self._change_points(what, event.value)

    def _guide(self, on: bool) -> None:
        name = f'ik_node/{self._program.tool}/hand_guide' if self._program.tool else 'ik_node/hand_guide'
        client = self.node.create_client(SetBool, name)

        def answered(future: Future) -> None:
            self._note = at_page(f'{capital(future.result().message)}.')
            self.node.destroy_client(client)

        if not client.wait_for_service(timeout_sec=0.5):
            self.node.destroy_client(client)
            raise InputError('ik_node is not running')
        client.call_async(SetBool.Request(data=on)).add_done_callback(answered)

    # Programs and their files

    def _change_program(self, what: str, value: Any) -> None:
        file = ''
        if what == TOOL:
            return self._change_tool(value)
        if what == NEW:
            program, name = Program(tool=self._program.tool), 'program'
        elif what == UPLOAD:
            program = Program.parse(value.content.decode(errors='replace'))
            name = Path(value.name).stem
        elif value != NONE and value in self._files.names():
            name = file = value
            program = self._files.load(file)
        else:
            return None
        kept = self._files.keep_unsaved(self._program) if program.tool in self._tools else ''
        self._last = self._files.last_unsaved()  # what can be opened again now, not a second later
        self._take(program)
        self._note = ' '.join(filter(None, (kept, self._note)))
        self._panel.set_file_name(name)
        self._files.show(program, file)
        return None

    def _change_tool(self, tool: str) -> None:
        program, notes = self._program.of_tool(tool), []
        if program.points != self._program.points:
            notes = [
                self._files.keep_unsaved(self._program),
                'The gripper values of the other tool were removed.',
            ]
        self._take(program)
        self._note = ' '.join(filter(None, (*notes, self._note)))

    def _take(self, program: Program) -> None:
        """Show another program."""
        if program.tool not in self._tools:
            raise InputError(f'this robot has no tool {quoted(program.tool)}')
        self._program, self._selected = program, 0
        self._runs.restart()
        self._panel.set_gripper(self._gripper)
        if program.arm and program.arm != self._arm.robot.name:
            self._note = f'This program was taught with the robot {quoted(program.arm)}.'

    def _change_points(self, what: str, value: Any) -> None:
        arm, program = self._arm, self._program
        if what in (AT_GIZMO, TO_GIZMO):
            fields = fields_at_gizmo(self._tool, self._values)
        elif what in (AT_ARM, TO_ARM):
            fields = fields_at_arm(arm, self._values)
            fields['turned'] = turned_at_arm(self._tool, self._values)
        if what in (AT_GIZMO, AT_ARM):
            points = (*program.points, Point(program.free_name(), **fields))
            self._program = replace(program, points=points, arm=arm.robot.name)
            self._selected = len(points) - 1
        elif not program.points:
            return
        elif what in (TO_GIZMO, TO_ARM):
            self._program = program.with_point(self._selected, **fields)
        elif what in (UP, DOWN):
            self._program, self._selected = moved(program, self._selected, -1 if what == UP else 1)
        elif what == DELETE:
            points = program.points[: self._selected] + program.points[self._selected + 1 :]
            self._program = replace(program, points=points)
            self._selected = max(0, min(self._selected, len(self._program.points) - 1))
        elif what in (GRIPS, GRIPPER):
            self._grip(what == GRIPPER or value, self._gripper)
        elif what == SPEED:
            self._program = program.with_point(self._selected, speed=0.01 * value)
        elif what == STORED:
            fields = _stored(program, self._selected, value, arm, self._runs.checked)
            self._program = program.with_point(self._selected, **fields)
        else:
            self._program = program.with_point(self._selected, **{FIELDS[what]: value})

    def _grip(self, on: bool, gripper: Gripper | None) -> None:
        """Have the selected point move the gripper to the value of the slider, or not."""
        if gripper is None:
            return
        joint, program, name = gripper.joint, self._program, self._program.gripper
        if name != joint.name:
            if any(point.gripper is not None for point in program.points):
                raise InputError(f'the gripper of this program is {quoted(name)}, that of the arm {quoted(joint.name)}')
            program = replace(program, gripper=joint.name)
        value = self._panel.gripper_value() if on else None
        self._program = program.with_point(self._selected, gripper=value)

    # What the page shows

    def _draw(self) -> None:
        runs, points = self._runs, self._program.points
        stopped = self.robot is not None and self._tool.stopped
        measured = self.robot is not None and self._tool.measured
        self._panel.offer(bool(points), runs.active, stopped, measured)
        reports = (report for report in (runs.failed, runs.checked) if report is not None)
        found = next((report for report in reports if report.program is self._program), None)
        findings = found.findings if found is not None and not runs.active else ()
        last = '' if points else self._last
        self._panel.offer_last(last)
        kept = f'Your last program was kept as {last}: open it below.' if last and last not in self._note else ''
        said = ' '.join(filter(None, (self._note, kept, runs.sentence)))
        what_next = '' if runs.active else self._next_step(stopped)
        shown = [said, *(capital(str(finding)) for finding in findings), what_next]
        self._panel.show_state(runs.title or NO_RUN[min(len(points), 2)].format(len(points)), shown)
        wrong = [finding.point for finding in findings if finding.serious]
        if self._panel.pending:  # users did more meanwhile, which the controls show already
            return
        self._panel.show_tool(self._program.tool)
        drawn = (self._program, self._selected, tuple(wrong), runs.following, self._scene)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._panel.show_program(self._program, self._selected, wrong, runs.following)
        self._panel.show_point(points[self._selected] if self._selected < len(points) else None)
        if self._scene is not None:
            arm = self._arm
            marks = self._marks(arm, wrong)
            self._scene.show(marks, arm.robot.link_pose(arm.base_link, self._values))

    def _next_step(self, stopped: bool) -> str:
        """Return what a user can do next."""
        if stopped:
            return 'The arm is stopped: press Resume at the top.'
        if self._runs.following:
            return 'Continue goes on there; Run begins with the first point.'
        if len(self._program.points) < 2:
            return f'Move the arm with the arrows, then add the {"next" if self._program.points else "first"} point.'
        return 'Add more points, or press Run: it checks the program, then moves the arm.'

    def _marks(self, arm: Arm, wrong: Sequence[str]) -> list[Mark]:
        """Return the points whose positions are known for an arm."""
        marks = []
        for k, point in enumerate(self._program.points):
            position: Array
            if point.position is not None:
                position = np.array(point.position)
            elif point.joints is not None and set(point.joints) == set(arm.joint_names):
                position = arm.fk(joints_of(point, arm))[0]
            else:
                continue
            straight = point.motion == LINE
            marks.append(Mark(point.name, position, straight, k == self._selected, point.name in wrong))
        return marks
