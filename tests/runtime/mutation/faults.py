# SPDX-License-Identifier: Apache-2.0
"""Faults that a backend may have, and the device tests that notice each."""

from faults_of_devices import GRAPHS, MEMORY, STATE, SYNCHRONIZATION, VALUES
from faults_of_driver_groups import DRIVER_GROUPS
from faults_of_groups import ARITHMETIC, BYTES, ORDER, WORKS
from faults_of_programs import (
    CPU_PROGRAMS,
    DRIVER,
    LIKENESS,
    MODULES,
    PLACE,
    PROCESSES,
    REGISTRATION,
)

#: The simulator has no collectives then.
STAGED = (("FOO_SIMULATOR_COLLECTIVES", "0"),)

FAULTS = [
    *SYNCHRONIZATION,
    *STATE,
    *MEMORY,
    *GRAPHS,
    *VALUES,
    *PROCESSES,
    *REGISTRATION,
    *DRIVER,
    *MODULES,
    *CPU_PROGRAMS,
    *PLACE,
    *LIKENESS,
    *(fault._replace(variables=STAGED) for fault in [*ORDER, *BYTES, *ARITHMETIC, *WORKS]),
    *DRIVER_GROUPS,
]
