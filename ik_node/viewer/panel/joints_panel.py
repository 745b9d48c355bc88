# SPDX-License-Identifier: Apache-2.0
"""The joint sliders of the panel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import viser

from ik_node.model.arm import Arm
from ik_node.model.ball import Ball
from ik_node.viewer.panel.inputs import Inputs, by_user, merged

DEGREE = math.radians(1.0)


class JointsPanel:
    """Sliders for the joints of the arms: one for each joint, three for a declared ball joint as a whole.

    A joint that several arms share has one. User input is kept until take_joints returns it; until then it is
    not overwritten.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self._gui = gui
        self._touched: Inputs[dict[str, float]] = Inputs()
        self._sliders: list[_JointSlider | _BallSliders] = []
        self._folder: viser.GuiFolderHandle | None = None

    @by_user
    def _slider_moved(self, event: viser.GuiEvent[Any]) -> bool:
        moved = merged(slider.get() for slider in self._sliders if event.target in slider.handles)
        return self._touched.add(moved)

    def take_joints(self) -> dict[str, float]:
        """Return the joint positions that users set since the last call [rad or m], by joint name."""
        return merged(self._touched.take())

    def show(self, arms: Sequence[Arm]) -> None:
        """Create the sliders for these arms and remove the previous ones."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
        self._sliders = []
        self._touched.take()
        if not arms:
            return
        self._folder = self._gui.add_folder('Joints')
        with self._folder:
            for arm in arms:
                self._add(arm)
        for slider in self._sliders:
            for handle in slider.handles:
                handle.on_update(self._slider_moved)

    def _add(self, arm: Arm) -> None:
        shown = {name for slider in self._sliders for name in slider.joints}
        for index, name in enumerate(arm.joint_names):
            if name in shown:
                continue
            ball = next((ball for ball in arm.balls if ball.declared and name in ball.joints), None)
            if ball is None:
                self._sliders.append(_JointSlider(self._gui, arm, index))
            else:
                self._sliders.append(_BallSliders(self._gui, arm, ball))
                shown |= set(ball.joints)

    def set(self, values: Mapping[str, float]) -> None:
        """Move the sliders to joint positions [rad or m] by name."""
        touched = merged(self._touched.waiting())
        for slider in self._sliders:
            if all(name in values for name in slider.joints) and touched.keys().isdisjoint(slider.joints):
                slider.set(values)

    def enable(self, enabled: bool) -> None:
        """Let users move the sliders, or not."""
        for slider in self._sliders:
            for handle in slider.handles:
                if handle.disabled is enabled:
                    handle.disabled = not enabled


class _JointSlider:
    """A slider in degrees, or millimetres for a prismatic joint. It shows one turn of a continuous joint."""

    def __init__(self, gui: viser.GuiApi, arm: Arm, index: int) -> None:
        prismatic = bool(arm.prismatic[index])
        self.joints = (arm.joint_names[index],)
        self._unit = 1e-3 if prismatic else DEGREE
        self._turns = bool(arm.continuous[index])
        lower, upper = (-math.pi, math.pi) if self._turns else (arm.lower[index], arm.upper[index])
        self.handles = (_slider(gui, self.joints[0], 'mm' if prismatic else '°', lower, upper, self._unit),)

    def set(self, values: Mapping[str, float]) -> None:
        """Show a joint position [rad or m], clipped to the range."""
        value = values[self.joints[0]]
        if self._turns:
            value = math.remainder(value, 2.0 * math.pi)
        _show(self.handles[0], value / self._unit)

    def get(self) -> dict[str, float]:
        """Return the joint position [rad or m] by name."""
        return {self.joints[0]: self.handles[0].value * self._unit}


class _BallSliders:
    """Three sliders in degrees: how far a ball joint swings, about two axes, and its twist."""

    def __init__(self, gui: viser.GuiApi, arm: Arm, ball: Ball) -> None:
        self._ball = ball
        self.joints = ball.joints
        self._near = (0.0, 0.0, 0.0)
        ends = [arm.robot.joints[name] for name in (ball.swing_joints[0], ball.twist_joints[0])]
        self._swing = min(ball.swing, max(-ends[0].lower, ends[0].upper), math.pi)
        twist = max(ball.twist[0], ends[1].lower, -math.pi), min(ball.twist[1], ends[1].upper, math.pi)
        name = ', '.join(ball.joints)
        self.handles = (
            _slider(gui, f'{name}: swing x', '°', -self._swing, self._swing, DEGREE),
            _slider(gui, f'{name}: swing y', '°', -self._swing, self._swing, DEGREE),
            _slider(gui, f'{name}: twist', '°', *twist, DEGREE),
        )

    def set(self, values: Mapping[str, float]) -> None:
        """Show the swing and the twist at joint positions [rad] by name."""
        first, second, third = self.joints
        self._near = values[first], values[second], values[third]
        for handle, value in zip(self.handles, self._ball.swing_twist(self._near), strict=True):
            _show(handle, value / DEGREE)

    def get(self) -> dict[str, float]:
        """Return joint positions [rad] by name; a swing beyond the cone ends at its edge."""
        x, y, twist = (handle.value * DEGREE for handle in self.handles)
        share = min(1.0, self._swing / max(math.hypot(x, y), 1e-9))
        return dict(
            zip(self.joints, self._ball.joint_positions(share * x, share * y, twist, self._near), strict=True)
        )


def _slider(
    gui: viser.GuiApi, name: str, sign: str, lower: float, upper: float, unit: float
) -> viser.GuiSliderHandle[float]:
    """Return a slider from lower to upper, at zero or the end next to it."""
    low, high = (round(float(end) / unit, 1) for end in (lower, upper))
    return gui.add_slider(f'{name} [{sign}]', low, high, 0.1, min(max(0.0, low), high))


def _show(handle: viser.GuiSliderHandle[float], value: float) -> None:
    """Move a slider to a value in its unit, clipped to its range."""
    handle.value = min(max(round(value, 1), handle.min), handle.max)  # type: ignore[misc]
