"""The joint sliders of the panel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import viser

from ik_node.model.arm import Arm


class JointsPanel:
    """A slider for each joint of the arms; a joint that several arms share has one.

    User input is kept until take_joints returns it; until then it is not overwritten.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self._gui = gui
        self._touched: dict[str, float] = {}
        self._sliders: dict[str, _JointSlider] = {}
        self._folder: viser.GuiFolderHandle | None = None

    async def _slider_moved(self, event: viser.GuiEvent[Any]) -> None:
        if event.client_id is not None:
            for name, slider in self._sliders.items():
                if slider.handle is event.target:
                    self._touched[name] = slider.get()

    def take_joints(self) -> dict[str, float]:
        """Return the slider values that users set since the last call [rad or m], by joint name."""
        touched, self._touched = self._touched, {}
        return touched

    def show(self, arms: Sequence[Arm]) -> None:
        """Create the sliders for these arms and remove the previous ones."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
        self._sliders = {}
        self._touched = {}
        if not arms:
            return
        self._folder = self._gui.add_folder('Joints')
        with self._folder:
            for arm in arms:
                for index, name in enumerate(arm.joint_names):
                    if name not in self._sliders:
                        self._sliders[name] = _JointSlider(self._gui, arm, index)
                        self._sliders[name].handle.on_update(self._slider_moved)

    def set(self, values: Mapping[str, float]) -> None:
        """Move the sliders to joint positions [rad or m] by name."""
        for name, slider in self._sliders.items():
            if name in values and name not in self._touched:
                slider.set(values[name])

    def enable(self, enabled: bool) -> None:
        """Let users move the sliders, or not."""
        for slider in self._sliders.values():
            if slider.handle.disabled is enabled:
                slider.handle.disabled = not enabled


class _JointSlider:
    """A slider in degrees, or millimetres for a prismatic joint. It shows one turn of a continuous joint."""

    def __init__(self, gui: viser.GuiApi, arm: Arm, index: int) -> None:
        prismatic = bool(arm.prismatic[index])
        self._unit = 1e-3 if prismatic else math.radians(1.0)
        self._turns = bool(arm.continuous[index])
        lower, upper = (-math.pi, math.pi) if self._turns else (arm.lower[index], arm.upper[index])
        self._lower, self._upper = (round(float(end) / self._unit, 1) for end in (lower, upper))
        start = min(max(0.0, self._lower), self._upper)
        label = f'{arm.joint_names[index]} [{"mm" if prismatic else "°"}]'
        self.handle = gui.add_slider(label, self._lower, self._upper, 0.1, start)

    def set(self, value: float) -> None:
        """Show a joint position [rad or m], clipped to the range."""
        if self._turns:
            value = math.remainder(value, 2.0 * math.pi)
        self.handle.value = min(max(round(value / self._unit, 1), self._lower), self._upper)  # type: ignore[misc]

    def get(self) -> float:
        """Return the joint position [rad or m]."""
        return self.handle.value * self._unit
