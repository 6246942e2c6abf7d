# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""What backend.toml and the build say about this package."""

from .._build import *  # noqa: F403
