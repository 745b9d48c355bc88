"""Work on chunks for tests with worker processes, which import it."""

import time


class Slowly:
    """Work that takes a while, so that there is time to interrupt it."""

    def __call__(self, chunk: bytes) -> bytes:
        time.sleep(0.1)
        return chunk * 2
