# SPDX-License-Identifier: Apache-2.0
"""backendgen knows every operator of PyTorch exactly as torchgen does."""

from __future__ import annotations

from pathlib import Path

from conftest import Operator, PyTorch

FIELDS = ("schema", "symbolic", "numbers", "device_order", "structured")


def test_every_operator_is_as_torchgen_says(pytorch: PyTorch, operators: list[Operator]) -> None:
    answer = pytorch.run(Path(__file__).parent / "torchgen_signatures.py")
    assert answer.returncode == 0, answer.stderr
    theirs = [Operator(*line.split("\t")) for line in answer.stdout.splitlines()]
    ours = {operator.name: operator for operator in operators}
    assert len(ours) == len(operators), "two operators have one name"

    missing = [operator.name for operator in theirs if operator.name not in ours]
    surplus = sorted(ours.keys() - {operator.name for operator in theirs})
    different = [
        f"{operator.name}: {field}: {getattr(ours[operator.name], field)} is not "
        f"{getattr(operator, field)}"
        for operator in theirs
        if operator.name in ours
        for field in FIELDS
        if getattr(ours[operator.name], field) != getattr(operator, field)
    ]
    same = len(theirs) - len(missing) - len({line.split(":")[0] for line in different})
    print(f"PyTorch {pytorch.version}: {same} of {len(theirs)} operators are the same")
    assert (missing, surplus, different) == ([], [], [])
    assert len(theirs) > 3000
    assert sum(operator.structured != "" for operator in theirs) > 250
