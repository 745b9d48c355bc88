# SPDX-License-Identifier: Apache-2.0
"""The panel beside the scene."""
