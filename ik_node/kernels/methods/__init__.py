# SPDX-License-Identifier: Apache-2.0
"""Local methods, one file each."""
