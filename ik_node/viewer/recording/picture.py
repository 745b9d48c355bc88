# SPDX-License-Identifier: Apache-2.0
"""Pictures of the scene."""

from __future__ import annotations

import contextlib
import io
import time

import viser

TIMEOUT = 60.0  # [s] for a browser that draws slowly


def send_picture(client: viser.ClientHandle) -> None:
    """Send a browser what it shows of the scene, without the panel, as a PNG file; block."""
    from PIL import Image

    camera = client.camera
    with contextlib.suppress(RuntimeError):  # the page was closed meanwhile
        try:
            pixels = client.get_render(
                camera.image_height, camera.image_width, transport_format='jpeg', timeout=TIMEOUT
            )
        except TimeoutError:
            client.add_notification('No picture', f'The browser sent none within {TIMEOUT:g} s. Try again.')
            return
        content = io.BytesIO()
        Image.fromarray(pixels).save(content, format='PNG')
        name = f'ik_node_{time.strftime("%Y-%m-%d_%H-%M-%S")}.png'
        client.send_file_download(name, content.getvalue(), save_immediately=True)
