# SPDX-License-Identifier: Apache-2.0
"""What users do at any moment is obeyed: presses at every step of the code that takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import viser
from interleaved import at_step
from small_arm import arm_urdf

from ik_node.model.arm import Arm
from ik_node.viewer.guard import Guard
from ik_node.viewer.links.lengths_panel import LengthsPanel
from ik_node.viewer.methods.methods_panel import MethodsPanel
from ik_node.viewer.panel.buttons import ALL_TOOLS, ArmPress, Buttons
from ik_node.viewer.panel.colours import TOOLS
from ik_node.viewer.panel.inputs import Inputs
from ik_node.viewer.panel.joints_panel import JointsPanel
from ik_node.viewer.panel.panel import ToolPanel
from ik_node.viewer.scene.tool_scene import ToolScene
from ik_node.viewer.server import start_server, stop_server

MOST = 2000  # steps of one call


@pytest.fixture(scope='module')
def server() -> Iterator[viser.ViserServer]:
    server = start_server('127.0.0.1', 0, Guard('127.0.0.1'))
    yield server
    stop_server(server)


def did(handler: Callable[[Any], Any], target: Any) -> None:
    """Have a user cause an event, as viser tells of it."""
    with pytest.raises(StopIteration):
        handler(SimpleNamespace(client_id=1, phase='update', target=target)).send(None)


class Buttoned:
    """A row of buttons: before and meanwhile, one is pressed each."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._pressed: Inputs[ArmPress] = Inputs()
        self._add = Buttons(server.gui, self._pressed)._adder(ALL_TOOLS)

    def take(self) -> list[str]:
        return [press.button for press in self._pressed.take()]

    def act(self, value: str) -> None:
        did(self._add, SimpleNamespace(value=value))

    FIRST, SECOND = 'Resume', 'Stop'


class Tracks:
    def __init__(self, server: viser.ViserServer) -> None:
        self._panel = ToolPanel(server.gui, '', TOOLS[0], Buttons(server.gui, Inputs()))

    def take(self) -> list[str]:
        track = self._panel.take_track()
        return [] if track is None else [track]

    def act(self, value: str) -> None:
        did(self._panel._track_chosen, SimpleNamespace(value=value))

    FIRST, SECOND = 'circle', 'line'


class Sliders:
    """Two joints; what is taken are their names."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._panel = JointsPanel(server.gui)
        self._panel.show([Arm.from_urdf(arm_urdf(), tip_link='tool0')])
        self._handles = {slider.joints[0]: slider.handles[0] for slider in self._panel._sliders}

    def take(self) -> list[str]:
        return list(self._panel.take_joints())

    def act(self, value: str) -> None:
        did(self._panel._slider_moved, self._handles[value])

    FIRST, SECOND = 'yaw', 'wrist'


class Lengths:
    def __init__(self, server: viser.ViserServer) -> None:
        self._panel = LengthsPanel(server.gui, {'hand': 0.1, 'forearm': 0.2})

    def take(self) -> list[str]:
        return list(self._panel.take())

    def act(self, value: str) -> None:
        did(self._panel._on_update, self._panel._sliders[value])

    FIRST, SECOND = 'hand', 'forearm'


class Methods:
    def __init__(self, server: viser.ViserServer) -> None:
        self._panel = MethodsPanel(server.gui)

    def take(self) -> list[str]:
        return list(self._panel.take())

    def act(self, value: str) -> None:
        handler = self._panel._on_solver if value == 'solver' else self._panel._on_switch
        did(handler, SimpleNamespace(value='ccd'))

    FIRST, SECOND = 'solver', 'solver_switches_off'


class Drags:
    """The gizmo; what is taken is how far it was dragged."""

    def __init__(self, server: viser.ViserServer) -> None:
        arm = Arm.from_urdf(arm_urdf(), tip_link='tool0')
        self._scene = ToolScene(server, '', arm, 1.0, TOOLS[0])

    def take(self) -> list[str]:
        pose = self._scene.take_drag()
        return [] if pose is None else [f'{pose[0, 3]:.1f}']

    def act(self, value: str) -> None:
        (handler,) = self._scene._gizmo._impl_aux.update_cb
        target = SimpleNamespace(
            wxyz=np.array([1.0, 0.0, 0.0, 0.0]), position=np.array([float(value), 0.0, 0.0])
        )
        did(handler, target)

    FIRST, SECOND = '0.1', '0.2'


@pytest.mark.parametrize('taker_waits', [True, False])
@pytest.mark.parametrize('kind', [Buttoned, Tracks, Sliders, Lengths, Methods, Drags])
def test_nothing_that_a_user_does_is_lost_at_any_step(
    server: viser.ViserServer, kind: type[Any], taker_waits: bool
) -> None:
    user = kind(server)
    for number in range(1, MOST):
        taken: list[str] = []
        user.take()
        user.act(user.FIRST)

        def take(taken: list[str] = taken) -> None:
            taken += user.take()

        def act() -> None:
            user.act(user.SECOND)

        if not (at_step(number, act, take) if taker_waits else at_step(number, take, act)):
            break
        take()
        assert taken[-1] == user.SECOND, f'step {number}'
        if kind not in (Tracks, Drags):  # of which only the newest counts
            assert sorted(set(taken)) == sorted([user.FIRST, user.SECOND]), f'step {number}: {taken}'
    else:
        pytest.fail(f'more than {MOST} steps')
    assert number > 5


def test_a_drag_that_waits_is_not_overwritten_by_a_goal_of_others(server: viser.ViserServer) -> None:
    drags, other = Drags(server), np.eye(4)
    other[0, 3] = 0.5
    scene = drags._scene
    drags.act('0.2')
    scene.end_drags()  # the mouse is released before anybody has taken the drag
    assert not scene.place_goal(other)
    assert drags.take() == ['0.2']
    assert scene.place_goal(other)
