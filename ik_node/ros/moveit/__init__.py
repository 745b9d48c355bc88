# SPDX-License-Identifier: Apache-2.0
"""The services of MoveIt."""
