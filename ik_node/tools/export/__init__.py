# SPDX-License-Identifier: Apache-2.0
"""An arm for other programs than ik_node: program.py is ik_export, and every kind of output is a file beside it."""
