# SPDX-License-Identifier: Apache-2.0
"""SlowMotion: animates methods by ghosts, one iteration or sweep per frame; the arm is not commanded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import viser

from ik_node.checks import Array
from ik_node.model.arm import Arm, tool_at
from ik_node.solver.goal import Goal
from ik_node.solver.methods.registry import METHODS
from ik_node.steady import steady
from ik_node.viewer.methods.descent import Descent
from ik_node.viewer.methods.playback import Playback
from ik_node.viewer.methods.slow_motion_panel import PAUSE, PLAY, RESTART, STEP, SlowMotionPanel
from ik_node.viewer.panel.colours import GHOSTS
from ik_node.viewer.scene.ghost import Ghost
from ik_node.viewer.scene.visuals import Drawing

SWELLING = 0.03  # larger than the arm, the second ghost twice, so that they do not flicker
REST = 0.25  # [s] for which the gizmo must rest before the descents start


class SlowMotion:
    """Runs the selected methods from the joints of an arm to the gizmo of one tool.

    Call update once per frame. on: whether users watch.
    """

    def __init__(self, server: viser.ViserServer, panel: SlowMotionPanel) -> None:
        self._server, self._panel = server, panel
        self._playback = Playback()
        self._arm: Arm | None = None
        self._drawing: Drawing | None = None
        self._ghosts: list[Ghost] = []
        self._start_at = math.inf  # when the descents start (steady)
        self._chosen: tuple[Any, ...] = ()  # what the present descents were started with

    @property
    def on(self) -> bool:
        """Whether users watch."""
        return self._panel.on and self._arm is not None

    def show(self, arm: Arm | None, drawing: Drawing | None) -> None:
        """Set the arm of a tool, after the scene was cleared, or none."""
        self._arm, self._drawing = arm, drawing
        self._ghosts = []
        self._end()

    def choose(self, arm: Arm) -> None:
        """Show the tool of another arm of the same robot, whose gizmo is dragged."""
        if arm is not self._arm:
            for ghost in self._ghosts:
                ghost.remove()
            self.show(arm, self._drawing)

    def moved(self) -> None:
        """Restart soon: a user has moved the gizmo."""
        self._start_at = steady() + REST

    def update(
        self,
        T_base_goal: Array | None,
        values: Mapping[str, float],
        switches_off: Sequence[str],
        **options: Any,
    ) -> None:
        """Process the inputs of the panel and show the next frame.

        T_base_goal: (4, 4) of the gizmo, None without one. values: joint positions by name. options: of
        IkSolver, besides the method and its switches.
        """
        if not self.on or T_base_goal is None or not values:
            self._panel.take_button()
            if self._playback.descents:
                self._end()
            self._panel.show(self._playback)
            return
        playback, button = self._playback, self._panel.take_button()
        playback.rate = self._panel.rate
        chosen = (*self._panel.methods, *switches_off)
        stale = bool(playback.descents) and chosen != self._chosen
        new = button in (PLAY, STEP) and not playback.descents
        if button == RESTART or stale or new or steady() >= self._start_at:
            self._start(T_base_goal, values, switches_off, options)
            self._chosen = chosen
            playback.playing = button != STEP
        elif button == STEP:
            playback.step()
        elif button == PAUSE:
            playback.pause()
        elif button == PLAY:
            playback.play()
        playback.tick()
        self._draw(values)
        self._panel.show(playback)

    def _start(
        self, T_base_goal: Array, values: Mapping[str, float], off: Sequence[str], options: Mapping[str, Any]
    ) -> None:
        arm = self._arm
        assert arm is not None
        self._start_at = math.inf
        goal = Goal(*tool_at(arm, T_base_goal))
        seed = np.array([values.get(name, 0.0) for name in arm.joint_names])
        descents = []
        for method in self._panel.methods:
            switches = {switch: False for switch in METHODS[method].switches if switch in off}
            descents.append(
                Descent(arm, goal, seed, {**options, 'method': method, 'method_options': switches})
            )
        self._playback.start(descents)

    def _draw(self, values: Mapping[str, float]) -> None:
        """Show the ghosts at the descents; other joints are at values."""
        arm, drawing = self._arm, self._drawing
        assert arm is not None
        assert drawing is not None
        if not self._ghosts:
            self._ghosts = [
                Ghost(self._server, f'/ghost{k}', (arm,), drawing, colour, 1.0 + SWELLING * (k + 1))
                for k, colour in enumerate(GHOSTS)
            ]
        for index, ghost in enumerate(self._ghosts):
            descents = self._playback.descents[index : index + 1]
            shown = self._playback.shown(descents[0]) if descents else None
            if shown is None:
                ghost.hide()
            else:
                ghost.place({**values, **dict(zip(arm.joint_names, shown[1].q, strict=True))})

    def _end(self) -> None:
        self._start_at = math.inf
        self._playback.start([])
        for ghost in self._ghosts:
            ghost.hide()

    def close(self) -> None:
        """End the threads."""
        descents = self._playback.descents
        self._playback.start([])
        for descent in descents:
            descent.join()
