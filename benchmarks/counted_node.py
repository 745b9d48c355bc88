# SPDX-License-Identifier: Apache-2.0
"""ik_node as a program that also counts its objects: it answers each line of its stdin."""

from __future__ import annotations

import gc
import json
import sys
import threading

from ik_node.start import ik_node


def count() -> None:
    """Answer each line of stdin with a line of JSON."""
    for _ in sys.stdin:
        gc.collect()
        objects = len(gc.get_objects()) + gc.get_freeze_count()
        print(json.dumps({'blocks': sys.getallocatedblocks(), 'objects': objects}), flush=True)


if __name__ == '__main__':
    threading.Thread(target=count, daemon=True).start()
    sys.exit(ik_node())
