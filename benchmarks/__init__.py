# SPDX-License-Identifier: Apache-2.0
"""What `make bench` measures: ik_node's answers and times, beside its peers'. test/oracles judges them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / 'test'))
