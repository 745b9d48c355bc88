# SPDX-License-Identifier: Apache-2.0
"""The folder Teach of the panel: the points of a program, one of them to edit, and its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import viser

from ik_node.model.joint import Joint
from ik_node.teach.program import JOINT, LEAST_SPEED, LINE, LONGEST_WAIT, MOTIONS, Point, Program
from ik_node.viewer.panel import html
from ik_node.viewer.panel.controls import update
from ik_node.viewer.panel.html import AMBER, GREEN, GREY, RED, Colour
from ik_node.viewer.panel.inputs import by_user
from ik_node.viewer.panel.presses import NONE, Press, Presses

ORDER = 0.95e6  # of the folder: below the solutions, above the methods
AFTER_ROWS = 1e3  # order in the folder of what follows the rows
AT_GIZMO, AT_ARM = 'At the gizmo', 'At the arm'
TO_GIZMO, TO_ARM = 'To the gizmo', 'To the arm'
UP, DOWN, DELETE = 'Up', 'Down', 'Delete'
CHECK, RUN, STEP, PAUSE, CONTINUE = 'Check', 'Run', 'Step', 'Pause', 'Continue'
GUIDE, HOLD = 'Guide by hand', 'Hold'
SAVE, DOWNLOAD, OPEN, UPLOAD, NEW = 'Save', 'Download', 'Open', 'Upload', 'New'
TOOL, ROW, NAME, KEPT, MOTION, SPEED, WAIT, GRIPS, GRIPPER = (
    'tool', 'row', 'name', 'kept', 'motion', 'speed', 'wait', 'grips', 'gripper',
)  # fmt: skip
KINDS = JOINTS, TOOL_ONLY = 'joints', 'tool'
COLOURS: dict[str, Colour] = {'': (100, 116, 139), 'selected': (28, 132, 128), 'wrong': (212, 60, 60)}
PILLS = {'Running': GREEN, 'Finished': GREEN, 'Ready to run': GREEN, 'Ended': RED, 'Rejected': RED}


class TeachPanel:
    """The controls. pressed: what users did, in order, until it is taken."""

    def __init__(self, gui: viser.GuiApi, tools: Sequence[str]) -> None:
        """tools: their names; a choice if there are several."""
        self._gui, self.pressed = gui, Presses()
        self._rows: list[viser.GuiButtonHandle] = []
        self._count = AFTER_ROWS
        self._unit = math.radians(1.0)  # of the gripper's slider
        self._tool: viser.GuiDropdownHandle[str] | None = None
        self._folder = gui.add_folder('Teach', order=ORDER, expand_by_default=False)
        with self._folder:
            if len(tools) > 1:
                self._tool = gui.add_dropdown('Tool', tuple(tools), order=0.0)
                self._listen(self._tool, TOOL)
            self._group('Add point', (AT_GIZMO, AT_ARM), 1.0)
            self._group('Measured arm', (GUIDE, HOLD), 2.0)
            self._edit = gui.add_folder('Point', order=self._next, visible=False)
            with self._edit:
                self._add_editor()
            self.loops = gui.add_number(
                'Loops', 1, min=0, max=1_000_000, step=1, order=self._next, hint='0: until it is stopped'
            )
            self._group('Program', (CHECK, RUN, STEP), self._next)
            self._group('Run', (PAUSE, CONTINUE), self._next)
            self._state = gui.add_html('', order=self._next)
            self._name = gui.add_text('File', 'program', order=self._next)
            self._group('Save', (SAVE, DOWNLOAD, NEW), self._next)
            self._file = gui.add_dropdown('Open', (NONE,), order=self._next)
            upload = gui.add_upload_button(UPLOAD, order=self._next, mime_type='.yaml,.yml')
        self._listen(self._file, OPEN)
        upload.on_upload(self.pressed.adder(UPLOAD))

    def _add_editor(self) -> None:
        gui = self._gui
        self._editor = {
            NAME: gui.add_text('Name', ''),
            KEPT: gui.add_dropdown(
                'Kept as', KINDS, hint='joints: of this arm only. tool: position and direction'
            ),
            MOTION: gui.add_dropdown('Motion', MOTIONS),
            SPEED: gui.add_slider('Speed [%]', 100 * LEAST_SPEED, 100, 1, 100),
            WAIT: gui.add_number('Wait [s]', 0.0, min=0.0, max=LONGEST_WAIT, step=0.1),
            GRIPS: gui.add_checkbox('Move the gripper', False, visible=False),
            GRIPPER: gui.add_slider('Gripper', 0.0, 1.0, 0.1, 0.0, visible=False),
        }
        for what, control in self._editor.items():
            self._listen(control, what)
        self._group('Set', (TO_GIZMO, TO_ARM))
        self._group('Order', (UP, DOWN, DELETE))

    @property
    def _next(self) -> float:
        self._count += 1.0
        return self._count

    def _group(self, label: str, names: Sequence[str], order: float | None = None) -> None:
        self._gui.add_button_group(label, names, order=order).on_click(self.pressed.adder('', (PAUSE, HOLD)))

    def _listen(self, control: Any, what: str) -> None:
        control.on_update(self.pressed.adder(what))

    @by_user
    def _row_clicked(self, event: viser.GuiEvent[Any]) -> bool:
        known = event.target in self._rows
        return not known or self.pressed.add(Press(ROW, self._rows.index(event.target), event.client))

    @property
    def file_name(self) -> str:
        """The name of the file that users gave."""
        return self._name.value.strip()

    def set_file_name(self, name: str) -> None:
        """Show the name of a file that was opened. The same one can be chosen again."""
        self._name.value = name  # type: ignore[misc]
        update(self._file, value=NONE)

    def set_gripper(self, joint: Joint | None) -> None:
        """Offer a slider for the gripper joint, or none."""
        slider: Any = self._editor[GRIPPER]
        self._editor[GRIPS].visible = slider.visible = joint is not None
        if joint is not None:
            prismatic = joint.type == 'prismatic'
            self._unit = 1e-3 if prismatic else math.radians(1.0)
            low, high = max(joint.lower, -math.pi), min(joint.upper, math.pi)
            slider.label = f'{joint.name} ({"mm" if prismatic else "°"})'
            slider.min, slider.max = round(low / self._unit, 1), round(high / self._unit, 1)

    def gripper_value(self) -> float:
        """Return the value of the gripper's slider [rad or m]."""
        slider: Any = self._editor[GRIPPER]
        return float(slider.value) * self._unit

    def show_tool(self, name: str) -> None:
        """Show which tool the program is for."""
        if self._tool is not None:
            update(self._tool, value=name)

    def show_program(self, program: Program, selected: int, wrong: Sequence[str], following: int) -> None:
        """Show the points; selected, following: numbers of that to edit and the next one. wrong: names."""
        with self._folder:
            while len(self._rows) < len(program.points):
                row = self._gui.add_button('', order=10.0 + 0.1 * len(self._rows))
                row.on_click(self._row_clicked)
                self._rows.append(row)
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
            KEPT: JOINTS if point.joints is not None else TOOL_ONLY,
            MOTION: point.motion,
            SPEED: round(100 * point.speed),
            WAIT: point.wait,
            GRIPS: point.gripper is not None,
        }
        for what, value in values.items():
            update(self._editor[what], value=value)
        if point.gripper is not None:
            slider: Any = self._editor[GRIPPER]
            value = round(point.gripper / self._unit, 1)
            update(slider, value=min(max(value, slider.min), slider.max))

    def show_state(self, title: str, sentence: str, findings: Sequence[str]) -> None:
        """Show in words what the program does, and what its check found."""
        pills = html.pills((title, PILLS.get(title, AMBER if findings else GREY))) if title else ''
        lines = ''.join(html.paragraph(html.capital(finding)) for finding in findings)
        content = html.box(pills + html.paragraph(sentence) + lines) if pills or sentence or lines else ''
        update(self._state, content=content)

    def show_files(self, names: Sequence[str]) -> None:
        """Offer these files."""
        self.pressed.offer(self._file, names)


def _row_label(number: int, point: Point, following: bool) -> str:
    said = [f'{"▸ " if following else ""}{number + 1}: {point.name}']
    said += [] if point.motion == JOINT else [LINE]
    said += [] if point.speed == 1.0 else [f'{100 * point.speed:.0f} %']
    said += [] if not point.wait else [f'{point.wait:g} s']
    return ' · '.join(said)
