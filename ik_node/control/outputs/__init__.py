# SPDX-License-Identifier: Apache-2.0
"""Commands for the controllers of an arm."""
