# SPDX-License-Identifier: Apache-2.0
"""What finds faults by chance or takes long: make nightly runs all of it, python -m campaigns.NAME a part."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / 'test'), str(ROOT / 'test' / 'servos')]
