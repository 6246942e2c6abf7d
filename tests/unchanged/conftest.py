# SPDX-License-Identifier: Apache-2.0
import pytest
from machine import Machine


@pytest.fixture(scope="package")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("unchanged"))
