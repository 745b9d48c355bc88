# SPDX-License-Identifier: Apache-2.0
"""The folder of the servos, with a report that another node has made up."""

from __future__ import annotations

import viser

from ik_node.viewer.guard import Guard
from ik_node.viewer.server import start_server, stop_server
from ik_node.viewer.servos.panel import ServosPanel


def test_a_made_up_report_is_text_and_does_no_harm() -> None:
    server: viser.ViserServer = start_server('127.0.0.1', 0, Guard('127.0.0.1'))
    try:
        panel = ServosPanel(server.gui)
        panel.show(True)
        made_up = '<img src=x onerror=alert(1)>'
        panel.show_state(made_up, 200, made_up, made_up)
        shown = panel._state.content + panel._trouble.content
        assert '<img' not in shown
        assert '&lt;img' in shown
    finally:
        stop_server(server)
