# SPDX-License-Identifier: Apache-2.0
"""The folder Solutions of the panel: a button per solution, the forbidden ones below."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import viser

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.goal import Solution
from ik_node.viewer.panel import html
from ik_node.viewer.panel.controls import update
from ik_node.viewer.panel.html import AMBER, GREEN, GREY, RED, Colour
from ik_node.viewer.panel.inputs import Inputs, by_user
from ik_node.viewer.solutions.listing import Choice, Listing, amount, spare_joint

ORDER = 0.9e6  # of the folder: below the joints, above the methods
MOST_ROWS = 16
ROWS, BELOW, SPARE = 1e6, 2e6, 3e6  # order within the folder
TOLD = 6  # forbidden solutions in words
# One per row and its ghost, then again from the first.
COLOURS: tuple[Colour, ...] = (
    (37, 99, 235),
    (13, 148, 136),
    (147, 51, 234),
    (180, 110, 10),
    (219, 39, 119),
    (77, 124, 15),
    (71, 85, 105),
    (8, 145, 178),
)
HINT = (
    'Largest joint move · how far the joint that is nearest to a limit, by share of its range, is from it · '
    'least gap between links. A click moves the arm.'
)


class SolutionsPanel:
    """Shows a listing; clicks on its rows are kept until take_rows returns them.

    Each list that has settled has rows of its own: a click on a row counts for the list that it was made for,
    whatever a slow browser shows.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self._gui = gui
        self._clicked: Inputs[tuple[int, int]] = Inputs()  # number of the list, and of the row
        self._number = 0  # of the list whose rows can be clicked; 0: none
        self.folder = gui.add_folder('Solutions', order=ORDER)
        with self.folder:
            self._show = gui.add_checkbox(
                'Show solutions', False, hint='Every solution of the goal, as ghosts in the scene.'
            )
            self._summary = gui.add_html('', visible=False)
            self._below = gui.add_html('', visible=False, order=BELOW)
        self._rows: list[viser.GuiButtonHandle] = []
        self._hold: viser.GuiCheckboxHandle | None = None
        self._slider: viser.GuiSliderHandle[float] | None = None
        self._spare: tuple[str, float] = ('', 1.0)  # the spare joint, and the unit of its slider [rad or m]

    def _add_row(self, number: int, k: int) -> viser.GuiButtonHandle:
        with self.folder:
            row = self._gui.add_button(f'{k + 1}', order=ROWS + k, color=COLOURS[k % len(COLOURS)])

        @row.on_click
        @by_user
        def _(_: viser.GuiEvent[Any]) -> bool:
            return self._clicked.add((number, k))

        return row

    @property
    def on(self) -> bool:
        """Whether users want to see solutions."""
        return self._show.value

    @property
    def held(self) -> dict[str, float]:
        """The position [rad or m] at which users hold the spare joint, by its name."""
        if self._hold is None or self._slider is None or not self._hold.value:
            return {}
        name, unit = self._spare
        return {name: self._slider.value * unit}

    def follow(self, values: Mapping[str, float]) -> None:
        """Put the slider to the joint's position by name, unless users hold it."""
        name, unit = self._spare
        if self._slider is not None and not self.held and name in values:
            value = round(values[name] / unit, 1)
            self._slider.value = min(max(value, self._slider.min), self._slider.max)  # type: ignore[misc]

    def take_rows(self) -> list[int | None]:
        """Return which rows users clicked since the last call, None for a row of another list."""
        return [k if number and number == self._number else None for number, k in self._clicked.take()]

    def set_arm(self, arm: Arm | None) -> None:
        """Show the slider for the spare joint of an arm, none without one."""
        for control in (self._hold, self._slider):
            if control is not None:
                control.remove()
        self._hold = self._slider = None
        name = spare_joint(arm) if arm is not None else None
        if arm is None or name is None:
            return
        index = arm.joint_names.index(name)
        prismatic = bool(arm.prismatic[index])
        unit = 1e-3 if prismatic else math.radians(1.0)
        low, high = (
            round(float(np.clip(end, -math.pi, math.pi)) / unit, 1)
            for end in (arm.lower[index], arm.upper[index])
        )
        self._spare = name, unit
        with self.folder:
            self._hold = self._gui.add_checkbox(
                f'Hold {name}',
                False,
                hint='The joint is spare: list the solutions for one value of it.',
                order=SPARE,
            )
            self._slider = self._gui.add_slider(
                f'{name} at [{"mm" if prismatic else "°"}]',
                low,
                high,
                0.1,
                min(max(0.0, low), high),
                order=SPARE,
            )

    def hide(self) -> None:
        """Show no listing."""
        self._set(self._summary, '')
        self._set(self._below, '')
        self._set_rows(0, 0)

    def show(self, listing: Listing, arm: Arm, q: Array, note: str, number: int) -> None:
        """Show a listing for an arm that is at q (n,).

        note: a sentence on the last click. number: of the list; 0 while it changes, which disables its rows.
        """
        self._set(self._summary, html.box(_summary(listing) + html.paragraph(note)))
        self._set_rows(min(len(listing.allowed), MOST_ROWS), number)
        for k, row in enumerate(self._rows):
            update(row, label=f'{k + 1}: {_figures(listing.allowed[k], arm, q)}', disabled=not number)
        said = [html.paragraph(choice.forbidden) for choice in listing.forbidden[:TOLD]]
        more = len(listing.forbidden) - TOLD
        if said:
            said.insert(0, html.pills((f'{len(listing.forbidden)} not possible', RED)))
        if more > 0:
            said.append(html.paragraph(f'and {more} more', faint=True))
        self._set(self._below, html.box(''.join(said)) if said else '')

    def _set_rows(self, count: int, number: int) -> None:
        """Have this many rows, made anew for another list."""
        kept = count if not number or number == self._number else 0
        for row in self._rows[kept:]:
            row.remove()
        self._rows = self._rows[:kept]
        self._number = number
        self._rows += [self._add_row(number, k) for k in range(len(self._rows), count)]

    def show_message(self, message: str) -> None:
        """Show a sentence instead of a listing."""
        self.hide()
        self._set(self._summary, html.box(html.paragraph(message)))

    def _set(self, handle: viser.GuiHtmlHandle, content: str) -> None:
        update(handle, content=content, visible=bool(content))


def _summary(listing: Listing) -> str:
    count = len(listing.allowed)
    if listing.nearest is not None:
        how_far = ', '.join(shortfalls(listing.nearest))
        reason = listing.nearest.reason
        content = html.pills(('Not possible', AMBER), (how_far, GREY))
        content += html.paragraph(html.capital(str(reason)) if reason else '')
        below = 'the nearest configuration' if count == 1 else f'{count} configurations as near as possible'
        content += html.paragraph(f'Below: {below}.')
    else:
        name = 'solution' if count == 1 else 'solutions'
        content = html.pills((f'{count} {name}', GREEN if count else AMBER))
        if not listing.complete:
            content += html.paragraph('There may be more: these were found by search.', faint=True)
    if count > MOST_ROWS:
        content += html.paragraph(f'The nearest {MOST_ROWS} are shown.', faint=True)
    return content + html.paragraph(HINT if count else '', faint=True)


def shortfalls(nearest: Solution) -> list[str]:
    """Return how far a configuration is from its goal, in words."""
    said = []
    if nearest.position_error > 1e-5:
        millimetres = 1e3 * nearest.position_error
        cause = nearest.reason.cause.value if nearest.reason else ''
        way = cause if cause in ('too far', 'too near') else 'away'
        said.append(f'{millimetres:.0f} mm {way}' if millimetres >= 1.0 else f'{millimetres:.2f} mm {way}')
    if nearest.direction_error > 1e-4:
        said.append(f'direction off by {math.degrees(nearest.direction_error):.1f}°')
    return said or ['not found']


def _figures(choice: Choice, arm: Arm, q: Array) -> str:
    moves = np.abs(choice.q - q)
    largest = int(moves.argmax())
    parts = [f'{amount(float(moves[largest]), bool(arm.prismatic[largest]))}']
    if choice.joint is not None and choice.to_limit >= 0.0:
        parts.append(f'{amount(choice.to_limit, bool(arm.prismatic[choice.joint]))}')
    if choice.clearance is not None and choice.clearance >= 0.0:
        parts.append(f'{1e3 * choice.clearance:.0f} mm')
    return ' · '.join(parts)
