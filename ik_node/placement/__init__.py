# SPDX-License-Identifier: Apache-2.0
"""Where to put an arm so that it reaches given goals."""
