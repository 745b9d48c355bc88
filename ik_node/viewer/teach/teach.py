# SPDX-License-Identifier: Apache-2.0
"""Teach: between the folder Teach of the panel, a program, its files, and its runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import viser
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.task import Future
from std_srvs.srv import SetBool

from ik_node.checks import Array
from ik_node.errors import IkError, InputError, quoted
from ik_node.model.joint import Joint
from ik_node.ros.neighbours import Neighbours
from ik_node.steady import steady
from ik_node.teach.program import LINE, Point, Program
from ik_node.viewer.panel.html import at_page, capital
from ik_node.viewer.panel.presses import NONE, Press
from ik_node.viewer.room import Moment, Room, Shown
from ik_node.viewer.scene.visuals import extent_of
from ik_node.viewer.teach.editing import (
    edited,
    gripper_of,
    joints_of,
    moved,
    place_of_arm,
    place_of_gizmo,
    without,
)
from ik_node.viewer.teach.files import Files
from ik_node.viewer.teach.panel import (
    AT_ARM,
    AT_GIZMO,
    CHECK,
    CONTINUE,
    DELETE,
    DOWN,
    DOWNLOAD,
    GRIPPER,
    GRIPS,
    GUIDE,
    HOLD,
    NAME,
    NEW,
    OPEN,
    PAUSE,
    ROW,
    RUN,
    SAVE,
    STEP,
    TO_ARM,
    TO_GIZMO,
    TOOL,
    UP,
    UPLOAD,
    TeachPanel,
)
from ik_node.viewer.teach.runs import Runs, Wanted
from ik_node.viewer.teach.scene import Mark, TeachScene
from ik_node.viewer.tool import ViewedTool

CLOSED = 'the page was closed'
PATIENCE = 10.0  # [s] for ik_node to stop the arm and to restore its speed
LISTED = 1.0  # [s] from one look at the folder to the next


class Teach(Room):
    """The program that the page shows. It moves the arm only in runs, which Runs checks first."""

    def __init__(
        self, node: Node, server: viser.ViserServer, tools: Sequence[str], met: Neighbours, folder: str
    ) -> None:
        """tools: names of all. met: the other programs. folder: of the programs."""
        self._node, self._server = node, server
        self._files = Files(folder)
        self._panel = TeachPanel(server.gui, tools)
        self._runs = Runs(node, met)
        self._program, self._selected = Program(tool=tools[0]), 0
        self._tools: dict[str, ViewedTool] = {}
        self._text = ''
        self._scene: TeachScene | None = None
        self._note = ''  # on what a user did last
        self._drawn: object = None  # what the page shows
        self._listed = 0.0  # when the folder was listed (steady)

    def show(self, shown: Shown | None) -> None:
        """Show another robot, after the scene was cleared, or none. The program stays."""
        self._runs.pause('the robot has changed')
        self._runs.forget()
        self._tools, self._text, self._scene, self._drawn = {}, '', None, None
        if shown is not None:
            self._tools = {tool.name: tool for tool in shown.tools}
            self._text = shown.text
            arm = self._tool.arm
            assert arm is not None
            self._scene = TeachScene(self._server, extent_of(arm.robot, arm.tip_link))
            self._panel.set_gripper(gripper_of(arm))

    def subscribe(self) -> Sequence[Subscription]:
        """Pause: a page was opened, and there was none before."""
        self._runs.pause(CLOSED)
        return ()

    def refresh(self) -> None:
        """Pause a run that nobody can see any more."""
        if self._runs.active and not self._server.get_clients():
            self._runs.pause(CLOSED)
            self._runs.update(steady())

    def come_to_rest(self) -> None:
        """End a run, which only this program can go on with; stop the arm, restore its speed."""
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

    def update(self, moment: Moment) -> None:
        """Process the inputs of users, go on with a run, and show both."""
        for press in self._panel.pressed.take():
            self._note, before = '', self._program
            try:
                self._process(press, moment.values)
            except IkError as error:
                self._note = f'{capital(str(error))}.'
                if press.what != NAME:  # whoever types a name gets to a valid one letter by letter
                    self._drawn = None  # the editor shows the point as it is
            if self._program is not before:
                self._runs.edited(before, self._program)
        now = steady()
        self._runs.update(now)
        if now - self._listed > LISTED:
            self._listed = now
            self._panel.show_files(self._files.names())
        self._draw(moment.values)

    def _process(self, press: Press, values: Mapping[str, float]) -> None:
        what = press.what
        if what == PAUSE:
            self._runs.pause()
        elif what == DOWNLOAD and press.client is not None:
            content = self._program.text().encode()
            name = self._files.path(self._panel.file_name).name
            press.client.send_file_download(name, content, save_immediately=True)
        elif what == SAVE:
            path = self._files.save(self._program, self._panel.file_name)
            self._note, self._listed = f'Saved as {path}.', 0.0
        elif not self._tools:
            raise InputError('there is no robot yet')
        elif what in (GUIDE, HOLD):
            self._guide(what == GUIDE)
        elif what == ROW:
            self._selected = max(0, min(press.value, len(self._program.points) - 1))
            self._drawn = None
        elif self._runs.active:
            raise InputError('first let the program pause, or stop the arm')
        elif what in (CHECK, RUN, STEP, CONTINUE):
            if what != CHECK:
                self._tool.end_goal()
            wanted = Wanted(what, self._program, self._text, int(self._panel.loops.value))
            self._runs.want(wanted, steady())
        elif what in (OPEN, UPLOAD, NEW, TOOL):
            self._change_program(press)
        else:
            self._change_points(press, values)

    def _guide(self, on: bool) -> None:
        """Begin or end hand guiding."""
        name = f'ik_node/{self._program.tool}/hand_guide' if self._program.tool else 'ik_node/hand_guide'
        client = self._node.create_client(SetBool, name)

        def answered(future: Future) -> None:
            self._note = at_page(f'{capital(future.result().message)}.')
            self._node.destroy_client(client)

        if not client.wait_for_service(timeout_sec=0.5):
            self._node.destroy_client(client)
            raise InputError('ik_node is not running')
        client.call_async(SetBool.Request(data=on)).add_done_callback(answered)

    # Programs and their files

    def _change_program(self, press: Press) -> None:
        if press.what == TOOL:
            self._change_tool(press.value)
            return
        file = ''
        if press.what == NEW:
            program, name = Program(tool=self._program.tool), 'program'
        elif press.what == UPLOAD:
            program = Program.parse(press.value.content.decode(errors='replace'))
            name = Path(press.value.name).stem
        elif press.value != NONE and press.value in self._files.names():
            name = file = press.value
            program = self._files.load(file)
        else:
            return
        kept = self._files.keep_unsaved(self._program) if program.tool in self._tools else ''
        self._take(program)
        self._note = ' '.join(filter(None, (kept, self._note)))
        self._panel.set_file_name(name)
        self._files.show(program, file)

    def _change_tool(self, tool: str) -> None:
        """Let another tool try the program."""
        program, said = self._program.of_tool(tool), []
        if program.points != self._program.points:
            said = [
                self._files.keep_unsaved(self._program),
                'The gripper values of the other tool were removed.',
            ]
        self._take(program)
        self._note = ' '.join(filter(None, (*said, self._note)))

    def _take(self, program: Program) -> None:
        """Show another program."""
        if program.tool not in self._tools:
            raise InputError(f'this robot has no tool {quoted(program.tool)}')
        self._program, self._selected = program, 0
        self._runs.restart()
        arm = self._tool.arm
        if arm is not None:
            self._panel.set_gripper(gripper_of(arm))
            if program.arm and program.arm != arm.robot.name:
                self._note = f'It was taught with the robot {quoted(program.arm)}.'

    def _change_points(self, press: Press, values: Mapping[str, float]) -> None:
        what, arm, program = press.what, self._tool.arm, self._program
        assert arm is not None
        if what in (AT_GIZMO, TO_GIZMO):
            place = place_of_gizmo(self._tool, values)
        elif what in (AT_ARM, TO_ARM):
            place = place_of_arm(arm, values)
        if what in (AT_GIZMO, AT_ARM):
            points = (*program.points, Point(program.free_name(), **place))
            self._program = replace(program, points=points, arm=arm.robot.name)
            self._selected = len(points) - 1
        elif not program.points:
            return
        elif what in (TO_GIZMO, TO_ARM):
            self._program = program.with_point(self._selected, **place)
        elif what in (UP, DOWN):
            self._program, self._selected = moved(program, self._selected, -1 if what == UP else 1)
        elif what == DELETE:
            self._program = without(program, self._selected)
            self._selected = max(0, min(self._selected, len(self._program.points) - 1))
        elif what in (GRIPS, GRIPPER):
            self._grip(press, gripper_of(arm))
        else:
            self._program = edited(program, self._selected, press, arm, self._runs.checked)

    def _grip(self, press: Press, joint: Joint | None) -> None:
        if joint is None:
            return
        program, name = self._program, self._program.gripper
        if name != joint.name:
            if any(point.gripper is not None for point in program.points):
                raise InputError(
                    f'the gripper of this program is {quoted(name)}, that of the arm {quoted(joint.name)}'
                )
            program = replace(program, gripper=joint.name)
        on = press.value if press.what == GRIPS else True
        value = self._panel.gripper_value() if on else None
        self._program = program.with_point(self._selected, gripper=value)

    # What the page shows

    def _draw(self, values: Mapping[str, float]) -> None:
        runs = self._runs
        failed = runs.failed if runs.failed is not None and runs.failed.program is self._program else None
        passed = runs.checked if runs.checked is not None and runs.checked.program is self._program else None
        found = failed or passed
        findings = found.findings if found is not None and not runs.active else ()
        sentence = ' '.join(filter(None, (self._note, runs.sentence)))
        self._panel.show_state(runs.title, sentence, [str(finding) for finding in findings])
        wrong = [finding.point for finding in findings if finding.serious]
        if self._panel.pressed.waiting():  # users did more meanwhile, which the controls show already
            return
        self._panel.show_tool(self._program.tool)
        drawn = (self._program, self._selected, tuple(wrong), runs.following, self._scene)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._panel.show_program(self._program, self._selected, wrong, runs.following)
        points = self._program.points
        self._panel.show_point(points[self._selected] if self._selected < len(points) else None)
        if self._scene is not None:
            self._show_marks(self._scene, wrong, values)

    def _show_marks(self, scene: TeachScene, wrong: Sequence[str], values: Mapping[str, float]) -> None:
        arm = self._tool.arm
        assert arm is not None
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
        scene.show(marks, arm.robot.link_pose(arm.base_link, values))
