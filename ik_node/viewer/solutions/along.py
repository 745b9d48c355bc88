# SPDX-License-Identifier: Apache-2.0
"""Along: a slider along the self-motion of the chosen solution, with a ghost, and a button to go there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import viser

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.panel.inputs import Inputs, by_user
from ik_node.viewer.scene.ghost import Ghost
from ik_node.viewer.scene.visuals import Drawing
from ik_node.viewer.solutions.listing import Choice, spare_joint
from ik_node.viewer.solutions.self_motion import SelfMotion, trace_self_motion
from ik_node.viewer.worker import Worker

ORDER = 1.5e6  # in the folder: below the rows
SWELLING = 1.03
COLOUR: Colour = (202, 138, 4)
HINT = 'The spare joint moves and the tool stays. The slider shows a ghost only.'


class Traced(NamedTuple):
    """The self-motion of a choice."""

    choice: Choice
    self_motion: SelfMotion


class AlongPanel:
    """A slider and a button, hidden at first; inputs are kept until they are taken."""

    def __init__(self, gui: viser.GuiApi, folder: viser.GuiFolderHandle) -> None:
        """folder: of the controls."""
        self._moved: Inputs[float] = Inputs()
        self._pressed: Inputs[bool] = Inputs()
        with folder:
            self._slider = gui.add_slider(
                'Along the curve [%]', 0.0, 100.0, 0.1, 0.0, visible=False, hint=HINT, order=ORDER
            )
            self._go = gui.add_button('Go to the ghost', visible=False, order=ORDER + 1.0)
        self._slider.on_update(self._on_slider)
        self._go.on_click(self._on_go)

    @by_user
    def _on_slider(self, event: viser.GuiEvent[Any]) -> bool:
        share = event.target.value / 100.0  # typed beside the slider, it may be beyond
        return self._moved.add(min(1.0, max(0.0, share)))

    @by_user
    def _on_go(self, _: viser.GuiEvent[Any]) -> bool:
        return self._pressed.add(True)

    def show(self, share: float | None) -> None:
        """Show the controls with the slider at a share of the curve, or hide them; forget what waits."""
        self.take()
        if share is not None:
            self._slider.value = round(100.0 * share, 1)  # type: ignore[misc]
        for control in (self._slider, self._go):
            if control.visible is (share is None):
                control.visible = share is not None

    def take(self) -> tuple[float | None, bool]:
        """Return the newest share of the slider and whether the button was pressed, since the last call."""
        return next(reversed(self._moved.take()), None), bool(self._pressed.take())


class Along:
    """Shows the self-motion of the chosen solution of one arm, if it has one; computes in a thread."""

    def __init__(
        self,
        server: viser.ViserServer,
        panel: AlongPanel,
        arm: Arm,
        drawing: Drawing,
        worker: Worker[Traced],
    ) -> None:
        """worker: for the curves."""
        self._arm, self._panel, self._worker = arm, panel, worker
        spare = spare_joint(arm)
        self._spare = arm.joint_names.index(spare) if spare is not None else None
        self._asked: Choice | None = None
        self._self_motion: SelfMotion | None = None
        self._q: Array | None = None  # of the ghost
        self._ghost = Ghost(server, '/self_motion', (arm,), drawing, COLOUR, SWELLING)
        self.forget()

    def update(self, goal: Goal, choice: Choice | None, values: Mapping[str, float]) -> Array | None:
        """Show the self-motion of a choice that meets goal, None for none; values: joint positions by name.

        Returns the configuration (n,) of the ghost if users want to go there.
        """
        if choice is not self._asked:
            self.forget()
            self._asked = choice
            if choice is not None and choice.self_motion and self._spare is not None:
                arm, spare = self._arm, self._spare
                self._worker.submit(lambda: Traced(choice, trace_self_motion(arm, goal, choice.q, spare)))
        traced = self._worker.take()
        if traced is not None and traced.choice is choice and len(traced.self_motion.q) > 1:
            self._self_motion = traced.self_motion
            self._panel.show(self._self_motion.share)
            self._place(self._self_motion.share, self._self_motion, values)
        share, pressed = self._panel.take()
        if self._self_motion is None:
            return None
        if share is not None:
            self._place(share, self._self_motion, values)
        return self._q if pressed else None

    def _place(self, share: float, self_motion: SelfMotion, values: Mapping[str, float]) -> None:
        """Put the ghost at a share of the self-motion."""
        self._q = self_motion.at(share)
        self._ghost.place({**values, **dict(zip(self._arm.joint_names, self._q.tolist(), strict=True))})

    def forget(self) -> None:
        """Hide everything."""
        self._asked = self._self_motion = self._q = None
        self._worker.drop()
        self._ghost.hide()
        self._panel.show(None)

    def remove(self) -> None:
        """Remove the ghost from the scene and hide the controls."""
        self.forget()
        self._ghost.remove()
