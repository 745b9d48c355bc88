# SPDX-License-Identifier: Apache-2.0
"""CalibrationView: the touches of ik_calibrate on the page, and the sheet of a calibrated arm, to click at."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import viser

from ik_node.calibration.files import SHEET, load_record, record_path
from ik_node.calibration.session import CHECKS, LASTING, TOUCHES, Next, Session, report
from ik_node.calibration.sheet import PAPERS
from ik_node.checks import Array
from ik_node.errors import IkError
from ik_node.model.arm import Arm
from ik_node.steady import steady

from . import panel
from .events import Worker
from .scene import Ghost, move
from .section import Frame, Page, RobotView, Section

START, TOUCH, UNDO = 'Start', 'Touch', 'Undo the last touch'
ORDER = 2.2e6  # of the folder
HINTS = {
    START: 'Goes on with the touches that are kept. The torque must be off: hold the arm.',
    TOUCH: 'Put the tip on the cross, hold still, and press.',
    UNDO: 'Forgets it: touch that cross again.',
}
ABOUT = (
    '15 touches of a printed sheet show how the arm differs from its description. Print it first: '
    'ik_calibrate my_arm.urdf --sheet sheet.pdf'
)
CROSS, RADIUS = '/calibration_cross', 0.006  # [m]
ORANGE, WHITE = (234, 128, 30), (250, 250, 250)
HOVER = 0.02  # [m] above the sheet: where a click sends the tip
THICK = 0.001  # [m]


class CalibrationView(Section):
    """Guides through the touches, which are kept in the file of ik_calibrate; that writes the result."""

    def __init__(self, page: Page) -> None:
        super().__init__(page, 'Calibrate', ORDER)
        self._session: Session | None = None
        self._next: Next | None = None
        self._seen: list[Array] = []
        self._until = 0.0  # when the touch ends, 0 without one
        self._ghost: Ghost | None = None
        self._cross: Any = None
        self._sheet: Any = None
        self._clicks: list[Array] = []
        self._worker: Worker[Any] = Worker(
            self.events, 'calibration', 'It could not be computed: see the log of ik_viewer.'
        )
        with self.folder:
            self._text = self.gui.add_html('')
            acts = {START: self._start, TOUCH: self._touch, UNDO: self._undo}
            self._buttons = {name: self.button(name, act, hint=HINTS[name]) for name, act in acts.items()}
        self._say(ABOUT)

    @property
    def _arm(self) -> Arm | None:
        return self.robot.arms[0] if self.robot is not None and self.robot.arms else None

    def show(self, robot: RobotView | None) -> None:
        """Forget everything: the scene was cleared, and the touches are of another description."""
        super().show(robot)
        self._worker.drop()
        self._session = self._next = self._ghost = self._cross = self._sheet = None
        self._until = 0.0
        self._clicks.clear()
        self._say(ABOUT)
        if self._arm is not None and SHEET in self._arm.robot.links:
            self._sheet = self.server.scene.add_box('/sheet', WHITE, (*PAPERS['A4'], THICK), cast_shadow=False)
            self._sheet.on_click(self._on_click)

    async def _on_click(self, event: viser.SceneNodePointerEvent[Any]) -> None:
        ray = np.array([event.ray_origin, event.ray_direction])
        self.events.post_input(event, partial(self._clicks.append, ray))

    def _show_sheet(self, arm: Arm, frame: Frame) -> None:
        """Place the sheet, and send the tip above the places that were clicked, pointing down."""
        T_root_sheet = arm.robot.link_pose(SHEET, frame.values)
        move(self._sheet, T_root_sheet)
        T_base_sheet = arm.link_in_base(SHEET, frame.values) if self._clicks else np.eye(4)
        for ray in self._clicks:
            origin, direction = (ray - [T_root_sheet[:3, 3], np.zeros(3)]) @ T_root_sheet[:3, :3]
            place = origin - origin[2] / direction[2] * direction + [0.0, 0.0, HOVER]
            frame.tool.type_goal(T_base_sheet[:3, :3] @ place + T_base_sheet[:3, 3], -T_base_sheet[:3, 2])
        self._clicks.clear()

    def close(self) -> None:
        """End the thread."""
        self._worker.close()

    def _say(self, sentence: str, *lines: str) -> None:
        content = ''.join([panel.paragraph(panel.capital(sentence)), *map(panel.paragraph, lines)])
        panel.update(self._text, content=panel.box(content))
        for name, button in self._buttons.items():
            panel.update(
                button, disabled=(self._session is None) != (name == START) or (name == TOUCH and self._next is None)
            )

    def _start(self) -> None:
        arm, robot = self._arm, self.robot
        if arm is None or robot is None:
            self._say('no arm is shown')
            return
        self._say('looking for good postures ...')
        self._worker.submit(partial(_session, arm, robot.text), self._begin)

    def _begin(self, found: Session | str) -> None:
        if isinstance(found, str):
            self._say(found)
            return
        self._session = found
        self._go_on('')

    def _go_on(self, before: str) -> None:
        """Show the next cross, or the result."""
        assert self._session is not None
        self._next = None
        self._say(f'{before} ...' if before else '...')
        self._worker.submit(partial(_following, self._session), partial(self._follow, before))

    def _follow(self, before: str, found: Next | list[str] | str) -> None:
        if isinstance(found, Next):
            self._next = found
            number = len(self._session.record.touches) + 1 if self._session is not None else 0
            kind = ' (only compared)' if found.check else ''
            todo = f'touch {number} of {TOUCHES + CHECKS}{kind}: put the tip on cross {found.cross}, as the ghost shows'
            self._say(todo, *([panel.capital(before)] if before else []))
        else:
            self._hide()
            lines = [found] if isinstance(found, str) else found
            self._say(lines[0], *lines[1:])

    def _touch(self) -> None:
        if self._next is not None and not self._until:
            self._seen, self._until = [], steady() + LASTING
            self._say('hold still ...')

    def _undo(self) -> None:
        if self._session is not None and not self._until:
            self._go_on('the last touch is forgotten' if self._session.undo() else 'there is no touch')

    def update(self, frame: Frame) -> None:
        """Take the joints of a touch, and show ghost and cross."""
        arm, session, todo = self._arm, self._session, self._next
        if arm is not None and self._sheet is not None:
            self._show_sheet(arm, frame)
        if arm is None or session is None or todo is None or self.robot is None:
            return
        if self._until:
            if frame.states is not None and all(name in frame.values for name in arm.joint_names):
                self._seen.append(np.array([frame.values[name] for name in arm.joint_names]))
            if steady() >= self._until:
                self._until = 0.0
                try:
                    kept = session.touch(todo.cross, self._seen)
                    self._go_on(f'cross {kept.cross} is taken')
                except IkError as error:
                    self._follow(f'not taken: {error}', todo)
            return
        if self._ghost is None:
            self._ghost = Ghost(self.server, '/calibration', self.robot.arms, self.robot.drawing, ORANGE)
            self._cross = self.server.scene.add_icosphere(CROSS, RADIUS, ORANGE)
        self._ghost.place({**frame.values, **dict(zip(arm.joint_names, todo.q.tolist(), strict=True))})
        place = session.model.sheet @ np.append(session.model.places[todo.cross - 1], 1.0)
        self._cross.position = (arm.robot.link_pose(arm.base_link, frame.values) @ place)[:3]
        self._cross.visible = True

    def _hide(self) -> None:
        if self._ghost is not None:
            self._ghost.hide()
            self._cross.visible = False


def _session(arm: Arm, text: str) -> Session | str:
    """Return the session of the touches that are kept, or why there is none."""
    try:
        record = load_record(record_path(arm.name), text)
        return ABOUT if record is None else Session(record.sheet.model(arm, record.bar), record)
    except IkError as error:
        return str(error)


def _following(session: Session) -> Next | list[str] | str:
    """Return what to touch next, or the result in sentences."""
    if not session.done:
        return session.next()
    try:
        found = session.model.calibrate(session.record.of(session.model.arm.joint_names, check=False))
    except IkError as error:
        return str(error)
    return [*report(session.model, session.record, found), 'ik_calibrate with your description writes the result']
