# SPDX-License-Identifier: Apache-2.0
"""Share: keeps the address of the page, and shows what an opened address says. No address moves an arm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
import viser
from viser.transforms import SE3, SO3

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.arm import Arm

from . import panel
from .panel import AMBER, GREY, Colour, Inputs, by_user
from .scene import Ghost
from .section import Moment, RobotView, Section
from .tool import ViewedTool

VERSION = '1'
LONGEST = 4000  # characters
LARGEST = 1e3  # m or rad


@dataclass(frozen=True, eq=False)
class Link:
    """robot, tool: their names; the only tool has none. joints: positions by name [rad or m].

    T_base_goal (4, 4): of the tip of the tool, None without a goal. directed: the goal has a direction.
    """

    robot: str
    tool: str
    joints: Mapping[str, float] = field(default_factory=dict)
    T_base_goal: Array | None = None
    directed: bool = True

    def text(self) -> str:
        """Return it as the part of an address behind #."""
        said = {'v': VERSION, 'robot': self.robot, 'tool': self.tool}
        if self.T_base_goal is not None:
            said['goal' if self.directed else 'point'] = _listed(SE3.from_matrix(self.T_base_goal).wxyz_xyz)
        said |= {f'joint.{name}': f'{value:.5f}' for name, value in self.joints.items()}
        return urlencode(said)

    @classmethod
    def read(cls, text: str) -> Link:
        """Read what text returns. Raises InputError."""
        if len(text) > LONGEST:
            raise InputError(f'a link has at most {LONGEST} characters, this one has {len(text)}')
        said = dict(parse_qsl(text, keep_blank_values=True))
        if said.get('v') != VERSION:
            raise InputError(f'a link begins with v={VERSION}; this one was made by another version')
        joints = {
            name.removeprefix('joint.'): _number(value)
            for name, value in said.items()
            if name.startswith('joint.')
        }
        pose = None
        for name in ('goal', 'point'):
            if name in said:
                pose = _pose(said[name])
        return cls(said.get('robot', ''), said.get('tool', ''), joints, pose, 'point' not in said)


def _listed(values: Iterable[float]) -> str:
    return ','.join(f'{value:.5f}' for value in values)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise InputError(f'a number of the link must be at most {LARGEST:g}, got {text[:20]}')
    return value


def _pose(text: str) -> Array:
    """Return the pose (4, 4) of w, x, y, z and a position."""
    values = np.array([_number(part) for part in text.split(',')])
    if len(values) != 7 or not np.linalg.norm(values[:4]) > 0.1:
        raise InputError('the goal of the link must be a quaternion and a position')
    turn = SO3(values[:4] / np.linalg.norm(values[:4]))
    return SE3.from_rotation_and_translation(turn, values[4:]).as_matrix().astype(np.float64)


ORDER = 0.8e6  # of the folder: below the joints
GO, DISMISS = 'Go there', 'Dismiss'
COLOUR: Colour = (180, 83, 9)  # of the ghost
SWELLING = 1.03
WORDS = 'The ghost shows the pose in the link. The arm moves only if you press Go there.'


class Share(Section):
    """text: of the link to what is shown now; opened: the links that users open, from any thread."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self.text = ''
        self.opened: Inputs[str] = Inputs()
        self._pressed: Inputs[tuple[int, str]] = Inputs()  # number of the proposal, and the button
        self._shown: RobotView | None = None
        self._waiting = ''  # a link that was opened before there was an arm
        self._proposed: tuple[ViewedTool, Link] | None = None
        self._ghost: Ghost | None = None
        self._folder = server.gui.add_folder('Link', order=ORDER, visible=False)
        with self._folder:
            self._said = server.gui.add_html('')
        self._number = 0  # of the proposal
        self._buttons: viser.GuiButtonGroupHandle | None = None

    def _add_buttons(self) -> None:
        """Add buttons for a new proposal: those of an older one, which somebody may have seen, are gone."""
        self._number += 1
        number = self._number
        if self._buttons is not None:
            self._buttons.remove()
        with self._folder:
            self._buttons = self._server.gui.add_button_group('', (GO, DISMISS))

        @self._buttons.on_click
        @by_user
        def _(event: viser.GuiEvent[Any]) -> bool:
            return self._pressed.add((number, event.target.value))

    def show(self, shown: RobotView | None) -> None:
        """Show another robot, after the scene was cleared, or none."""
        self._shown, self._ghost, self.text = shown, None, ''
        self._dismiss()

    def update(self, moment: Moment) -> None:
        """Show what a link says, and go there if users press the button."""
        self._waiting = next(reversed(self.opened.take()), self._waiting)
        pressed = [button for number, button in self._pressed.take() if number == self._number]
        if self._shown is None or not moment.values:
            return
        if self._waiting:
            self._open(self._shown, self._waiting)
            self._waiting = ''
        elif pressed and self._proposed is not None:
            tool, link = self._proposed
            if pressed[-1] == GO:
                self._go(tool, link)
            self._dismiss()
        elif pressed:
            self._dismiss()
        if self._proposed is not None:
            tool, link = self._proposed
            assert tool.arm is not None
            self._place_ghost(self._shown, tool.arm, link, moment)
        self.text = self._present(self._shown, moment)

    def _present(self, shown: RobotView, moment: Moment) -> str:
        """Return the link to what is shown now: the joints of all tools, and the newest goal."""
        tool = moment.tool
        if tool.arm is None or tool.scene is None:
            return ''
        names = dict.fromkeys(name for one in shown.tools for name in one.joint_names)
        joints = {name: moment.values[name] for name in names if name in moment.values}
        pose = tool.scene.gizmo_pose() if tool.goal_shown else None
        return Link(tool.arm.robot.name, tool.name, joints, pose, tool.scene.directed).text()

    def _open(self, shown: RobotView, text: str) -> None:
        try:
            link = Link.read(text)
            tool = matching(shown, link)
        except InputError as error:
            self._dismiss()
            self._tell(
                panel.pills(('Not possible', AMBER)) + panel.paragraph(f'{panel.capital(str(error))}.')
            )
            return
        self._proposed = tool, link
        self._tell(panel.pills(('Opened', GREY)) + panel.paragraph(WORDS))

    def _tell(self, words: str) -> None:
        self._add_buttons()
        self._said.content, self._folder.visible = panel.box(words), True

    def _go(self, tool: ViewedTool, link: Link) -> None:
        arm = tool.arm
        assert arm is not None
        q: Array = np.array([link.joints[name] for name in arm.joint_names])
        if link.T_base_goal is not None:
            tool.go_to(q, link.T_base_goal, link.directed)
        else:
            joints = {name: value for name, value in link.joints.items() if name in arm.robot.joints}
            tool.go_to(q, arm.link_in_base(arm.tip_link, joints), True)

    def _place_ghost(self, shown: RobotView, arm: Arm, link: Link, moment: Moment) -> None:
        """Show the arm that would move, and no other."""
        if self._ghost is None:
            self._ghost = Ghost(self._server, '/link', (arm,), shown.drawing, COLOUR, SWELLING)
        goal = {name: link.joints[name] for name in arm.joint_names}
        self._ghost.place({**moment.values, **goal})

    def _dismiss(self) -> None:
        self._proposed = None
        if self._ghost is not None:
            self._ghost.remove()
            self._ghost = None
        if self._folder.visible:
            self._folder.visible = False


def matching(shown: RobotView, link: Link) -> ViewedTool:
    """Return the tool of a link. Raises InputError if the link is of another robot."""
    tool = next((one for one in shown.tools if one.name == link.tool and one.arm is not None), None)
    if tool is None or tool.arm is None:
        raise InputError(
            f'this link is for the tool "{link.tool}", which this robot does not have'
            if link.tool
            else 'this link is for a robot with one tool, this robot has several'
        )
    if tool.arm.robot.name != link.robot:
        raise InputError(f'this link is for the robot "{link.robot}", this robot is "{tool.arm.robot.name}"')
    missing = [name for name in tool.arm.joint_names if name not in link.joints]
    if missing:
        raise InputError(f'the link lacks a position of {", ".join(missing)}')
    return tool
