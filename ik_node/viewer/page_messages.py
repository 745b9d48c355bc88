# SPDX-License-Identifier: Apache-2.0
"""What a page may send: checked in one place, before viser acts upon it.

viser sets any attribute of a control that a page names, for all pages, and hands on values that a control
does not have. It also opens a tunnel to a public relay when a page asks for one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import viser
from viser import _gui_api, _messages, _viser

LARGEST = 4 << 20  # [bytes] of a message: a picture of the scene
UPLOADS = 8  # at a time
LONGEST = 10_000  # characters or numbers of a value


def is_allowed(control: Any, updates: Mapping[str, Any]) -> bool:
    """Whether a page may change a control so: only its value, to one that it can have."""
    if set(updates) != {'value'}:
        return False
    value, before = updates['value'], control.value
    options = getattr(control.props, 'options', None)
    if options is not None:
        return isinstance(value, str) and value in options
    if isinstance(before, tuple):
        kinds = {type(item) for item in before}
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(before)
            and all(_is_like(item, kind) for item in value for kind in kinds)
        )
    return _is_like(value, type(before))


def _is_like(value: Any, kind: type) -> bool:
    if kind in (int, float):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and abs(value) < math.inf and (kind is float or value == int(value))
    return isinstance(value, kind) and not (isinstance(value, str) and len(value) > LONGEST)


class CheckedGui(_gui_api.GuiApi):
    """viser's handlers of what pages send, behind the checks."""

    async def _handle_gui_updates(self, client_id: Any, message: Any) -> None:
        control = self._gui_input_handle_from_uuid.get(message.uuid)
        if control is not None and is_allowed(control._impl, message.updates):
            await super()._handle_gui_updates(client_id, message)

    def _handle_file_transfer_start(self, client_id: Any, message: Any) -> None:
        fits = 0 <= message.size_bytes <= LARGEST and len(self._current_file_upload_states) < UPLOADS
        if fits and isinstance(
            self._gui_input_handle_from_uuid.get(message.source_component_uuid), viser.GuiUploadButtonHandle
        ):
            super()._handle_file_transfer_start(client_id, message)

    def _handle_file_transfer_part(self, client_id: Any, message: Any) -> None:
        upload = self._current_file_upload_states.get(message.transfer_uuid)
        if upload is not None and upload['transferred_bytes'] + len(message.content) <= upload['total_bytes']:
            super()._handle_file_transfer_part(client_id, message)

    async def _handle_gui_form_submit(self, client_id: Any, message: Any) -> None:
        """Ignore it: there are no forms, and viser keeps one message for each name that a page makes up."""

    async def _handle_gui_form_dirty(self, client_id: Any, message: Any) -> None:
        """Ignore it."""


def check_messages() -> None:
    """Check what pages send to each viser server that is started from now on."""
    setattr(_viser, 'GuiApi', CheckedGui)  # noqa: B010


def close_tunnel(server: viser.ViserServer) -> None:
    """Ignore requests of pages for viser's share URL, whose relay would show the page to everybody."""
    for request in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(request)
