# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""What backend.toml and the build say about this package."""

from .._build import *  # noqa: F403
