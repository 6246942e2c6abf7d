# SPDX-License-Identifier: Apache-2.0
"""scikit-build-core, as pip and build call it; says what to type if it is not installed.

pip installs it by itself, except with --no-build-isolation.
"""

try:
    from scikit_build_core.build import *  # noqa: F403
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "scikit_build_core":
        raise
    raise SystemExit(
        "error: found no scikit-build-core, which builds BackendKit\n"
        'help: `python -m pip install "scikit-build-core>=0.10"`, or leave out '
        "`--no-build-isolation`"
    ) from None
