# SPDX-License-Identifier: Apache-2.0
"""The card at the top of the panel: the state of a tool or of the whole robot, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import viser

from ik_node.viewer.panel import html
from ik_node.viewer.panel.controls import update
from ik_node.viewer.panel.html import AMBER, GREEN, GREY, RED, Colour

COLOURS = {
    'solved': GREEN,
    'moving': GREEN,
    'arrived': GREEN,
    'unreachable': AMBER,
    'not found': AMBER,
    'held': AMBER,
    'waiting': AMBER,
    'rejected': RED,
    'faulted': RED,
}


@dataclass(frozen=True)
class Report:
    """The result of the last goal: errors in [m] and [rad], NaN if there are none.

    state: of the arm, if known in addition to the status of the goal.
    """

    status: str
    position_error: float
    direction_error: float
    sentence: str
    state: str = ''


class Card:
    """Shows one message or report, and below it the diagnostics of ik_node."""

    def __init__(self, gui: viser.GuiApi, *axes: tuple[Colour, str]) -> None:
        """axes: colours of the tool axes in the scene and what each one is."""
        self._html = gui.add_html('')
        self._axes = axes
        self._content = self._node_message = ''
        self._sentences: set[str] = set()  # that the card shows

    def show_message(self, title: str, sentence: str = '', colour: str = GREY) -> None:
        """Show a message that is not about a goal."""
        self._sentences = {html.capital(sentence)}
        self._content = html.pills((title, colour)) + html.paragraph(sentence)
        self._show()

    def show_report(self, report: Report, about_arm: str) -> None:
        """Show status, both errors and the reason."""
        words = dict.fromkeys(word for word in (report.status, report.state) if word)
        self._sentences = {html.capital(report.sentence), html.capital(about_arm)}
        errors = ''
        if math.isfinite(report.position_error):
            errors += html.row('Position error', html.length(report.position_error))
        if math.isfinite(report.direction_error):
            errors += html.row('Direction error', html.angle(report.direction_error))
        self._content = (
            html.pills(*((html.capital(word), COLOURS.get(word, GREY)) for word in words))
            + errors
            + html.paragraph(report.sentence)
            + html.legend(*self._axes)
            + html.paragraph('' if report.sentence == html.capital(about_arm) else about_arm, faint=True)
        )
        self._show()

    def show_node(self, message: str) -> None:
        """Show the diagnostics message of ik_node, unless the card already shows the same."""
        self._node_message = html.capital(message)
        self._show()

    def _show(self) -> None:
        said = '' if self._node_message in self._sentences else self._node_message
        content = html.box(f'{self._content}{html.paragraph(said)}')
        update(self._html, content=html.at_page(content))
