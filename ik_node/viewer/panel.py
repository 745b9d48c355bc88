"""The panel beside the scene: status, target track, buttons and joint sliders."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import viser

from ik_node.model.arm import Arm
from ik_node.tracks.curves import TRACKS
from ik_node.tracks.settings import NO_TRACK
from ik_node.viewer.scene import PRESENT, WANTED

GREEN, AMBER, RED, GREY = '#2f9e5b', '#d9840b', '#d43c3c', '#7c8794'
COLOURS = {
    'solved': GREEN,
    'moving': GREEN,
    'arrived': GREEN,
    'unreachable': AMBER,
    'not found': AMBER,
    'held': AMBER,
    'waiting': AMBER,
    'refused': RED,
    'faulted': RED,
}
LABELS = {NO_TRACK: 'none', **{track: track.replace('_', ' ') for track in TRACKS}}


@dataclass(frozen=True)
class Report:
    """The result of the last goal: errors in [m] and [rad], NaN if there are none.

    state: what the arm does, if known in addition to the status of the goal.
    """

    status: str
    position_error: float
    direction_error: float
    sentence: str
    state: str = ''


class Panel:
    """The controls of the page, the same for every browser.

    User input is kept until a take_... method returns it; until then it is not overwritten.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._gui = server.gui
        self._chosen: str | None = None
        self._pressed: str | None = None
        self._touched: dict[str, float] = {}
        self._sliders: dict[str, _JointSlider] = {}
        self._folder: viser.GuiFolderHandle | None = None
        self._gui.configure_theme(
            control_width='small', show_logo=False, show_share_button=False, brand_color=(28, 132, 128)
        )
        self._gui.set_panel_label('ik_node')
        self._card = self._gui.add_html('')
        self._card_content = self._node_message = ''
        self._sentences: set[str] = set()  # that the card shows
        self._track = self._gui.add_dropdown('Target track', tuple(LABELS.values()), disabled=True)
        self._buttons = self._gui.add_button_group('Arm', ('Home', 'Stop', 'Resume'))
        self._track.on_update(self._track_chosen)
        self._buttons.on_click(self._button_pressed)

    # viser calls these on its own threads; client_id is None if this program caused the event, not a user

    async def _track_chosen(self, event: viser.GuiEvent[Any]) -> None:
        if event.client_id is not None:
            self._chosen = next(track for track, label in LABELS.items() if label == event.target.value)

    async def _button_pressed(self, event: viser.GuiEvent[Any]) -> None:
        if event.client_id is not None:
            self._pressed = event.target.value

    async def _slider_moved(self, event: viser.GuiEvent[Any]) -> None:
        if event.client_id is not None:
            for name, slider in self._sliders.items():
                if slider.handle is event.target:
                    self._touched[name] = slider.get()

    def take_track(self) -> str | None:
        """Return the name of the track that a user chose since the last call."""
        chosen, self._chosen = self._chosen, None
        return chosen

    def take_button(self) -> str | None:
        """Return the button, Home, Stop or Resume, that a user pressed since the last call."""
        pressed, self._pressed = self._pressed, None
        return pressed

    def take_joints(self) -> dict[str, float]:
        """Return the slider values that users set since the last call [rad or m], by joint name."""
        touched, self._touched = self._touched, {}
        return touched

    def show_message(self, title: str, sentence: str = '', colour: str = GREY) -> None:
        """Show a message that is not about a goal."""
        self._sentences = {_capital(sentence)}
        self._card_content = _pills((title, colour)) + _paragraph(sentence)
        self._show()

    def show_report(self, report: Report, about_arm: str) -> None:
        """Show status, both errors and the reason."""
        words = dict.fromkeys(word for word in (report.status, report.state) if word)
        self._sentences = {_capital(report.sentence), _capital(about_arm)}
        self._card_content = (
            _pills(*((_capital(word), COLOURS.get(word, GREY)) for word in words))
            + _row('Position error', _length, report.position_error)
            + _row('Direction error', _angle, report.direction_error)
            + _paragraph(report.sentence)
            + _legend()
            + _paragraph(about_arm, faint=True)
        )
        self._show()

    def show_node(self, message: str) -> None:
        """Show the diagnostics message of ik_node, unless the card already shows the same."""
        self._node_message = _capital(message)
        self._show()

    def _show(self) -> None:
        said = '' if self._node_message in self._sentences else self._node_message
        content = (
            '<div style="padding:0.2em 0.9em 0.5em;font-size:0.86em;line-height:1.5">'
            f'{self._card_content}{_paragraph(said)}</div>'
        )
        if content != self._card.content:
            self._card.content = content

    def show_sliders(self, arm: Arm | None) -> None:
        """Create one slider for each joint of the arm and remove the previous ones."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
        self._sliders = {}
        self._touched = {}
        if arm is None:
            return
        self._folder = self._gui.add_folder('Joints')
        with self._folder:
            for index, name in enumerate(arm.joint_names):
                self._sliders[name] = _JointSlider(self._gui, arm, index)
                self._sliders[name].handle.on_update(self._slider_moved)

    def set_joints(self, values: Mapping[str, float]) -> None:
        """Move the sliders to joint positions [rad or m] by name."""
        for name, slider in self._sliders.items():
            if name in values and name not in self._touched:
                slider.set(values[name])

    def enable_sliders(self, enabled: bool) -> None:
        """Let users move the sliders, or not."""
        for slider in self._sliders.values():
            if slider.handle.disabled is enabled:
                slider.handle.disabled = not enabled

    def set_track(self, track: str | None) -> None:
        """Show the goal publisher's track; None = there is no goal publisher."""
        if self._track.disabled is not (track is None):
            self._track.disabled = track is None
        if self._chosen is None:
            self._track.value = LABELS.get(track or NO_TRACK, LABELS[NO_TRACK])  # type: ignore[misc]


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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _pills(*pills: tuple[str, str]) -> str:
    """Return labels (text, colour) side by side, each on its colour."""
    style = (
        'display:inline-block;color:#fff;border-radius:0.9em;padding:0 0.8em;font-weight:600;'
        'margin:0 0.35em 0.35em 0'
    )
    spans = (
        f'<span style="background:{colour};{style}">{html.escape(text)}</span>' for text, colour in pills
    )
    return f'<div>{"".join(spans)}</div>'


def _row(label: str, write: Callable[[float], str], value: float) -> str:
    if not math.isfinite(value):
        return ''
    return (
        f'<div style="display:flex;justify-content:space-between"><span>{label}</span>'
        f'<span style="font-variant-numeric:tabular-nums;font-weight:600">{write(value)}</span></div>'
    )


def _paragraph(text: str, faint: bool = False) -> str:
    if not text:
        return ''
    style = 'opacity:0.6;font-size:0.92em;' if faint else ''
    return f'<div style="{style}margin-top:0.35em;line-height:1.35">{html.escape(text)}</div>'


def _legend() -> str:
    entries = ''.join(
        f'<span><span style="display:inline-block;width:1.1em;height:0.28em;border-radius:0.14em;'
        f'margin-right:0.4em;vertical-align:middle;background:rgb{colour}"></span>{text}</span>'
        for colour, text in ((WANTED, 'wanted tool axis'), (PRESENT, 'present tool axis'))
    )
    return f'<div style="display:flex;justify-content:space-between;margin-top:0.35em">{entries}</div>'


def _length(metres: float) -> str:
    """Return a length with a suitable unit."""
    if metres < 1e-6:
        return '&lt; 1 µm'
    if metres < 1e-3:
        return f'{1e6 * metres:.0f} µm'
    return f'{1e3 * metres:.1f} mm' if metres < 1.0 else f'{metres:.3f} m'


def _angle(radians: float) -> str:
    degrees = math.degrees(radians)
    return '&lt; 0.001°' if degrees < 1e-3 else f'{degrees:.3f}°' if degrees < 1.0 else f'{degrees:.1f}°'
