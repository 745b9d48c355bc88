# SPDX-License-Identifier: Apache-2.0
"""Work on chunks for tests with worker processes, which import it."""

import time


class Slowly:
    """Work that takes a while, so that there is time to interrupt it."""

    def __call__(self, chunk: bytes) -> bytes:
        time.sleep(0.1)
        return chunk * 2


class Broken:
    """Work that fails as if a disk of the worker were full."""

    def __call__(self, _: bytes) -> bytes:
        raise OSError('no space on the worker')
