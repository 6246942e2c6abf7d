# SPDX-License-Identifier: Apache-2.0
"""Tests of a device that are written on the classes that PyTorch's own tests share."""

from __future__ import annotations

import copy

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.common_fsdp import MLP, FSDPTestMultiThread
from torch.testing._internal.common_utils import run_tests
from torch.testing._internal.distributed._tensor import common_dtensor

DEVICE = torch.accelerator.current_accelerator().type
#: PyTorch's class takes the names of a few groups, and this text with the name of any.
GROUP = f"cpu:gloo,{DEVICE}:{DEVICE}ccl"
WIDTH = 8


def numbers(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(0))


class OnProcesses(common_dtensor.DTensorTestBase):
    """Ranks are processes."""

    world_size = 2
    backend = GROUP

    @common_dtensor.with_comms
    def test_placements(self) -> None:
        mesh, full = self.build_device_mesh(), numbers(5, 3)
        self.assertEqual(self.device_type, DEVICE)
        self.assertEqual(dist.get_backend(mesh.get_group()), GROUP)
        for placement in (Shard(0), Shard(1), Replicate()):
            sharded = distribute_tensor(full.to(DEVICE), mesh, [placement])
            self.assertEqual(sharded.to_local().device.type, DEVICE)
            for other in (Shard(1), Replicate(), Shard(0)):
                self.assertEqual(sharded.redistribute(mesh, [other]).full_tensor().cpu(), full)
            self.assertEqual((sharded @ sharded.T).full_tensor().cpu(), full @ full.T)

    @common_dtensor.with_comms(eager_init=True)
    def test_a_parallel_network(self) -> None:
        mesh = self.build_device_mesh()
        torch.manual_seed(0)
        network = common_dtensor.MLPModule("cpu")
        ours = copy.deepcopy(network).to(DEVICE)
        plan = {"net1": ColwiseParallel(), "net2": RowwiseParallel()}
        parallelize_module(ours, mesh, plan)
        given = numbers(4, 10)
        expected, found = network(given), ours(given.to(DEVICE))
        self.assertEqual(found.cpu(), expected)
        expected.sum().backward()
        found.sum().backward()
        self.assertEqual(ours.net1.weight.grad.full_tensor().cpu(), network.net1.weight.grad)


class OnProcessesThatStay(common_dtensor.DTensorContinuousTestBase):
    """One group for all tests of the class."""

    world_size = 2

    def test_sum(self) -> None:
        given = distribute_tensor(numbers(6).to(DEVICE), self.build_device_mesh(), [Shard(0)])
        self.assertEqual(given.sum().full_tensor().cpu(), numbers(6).sum())

    def test_order(self) -> None:
        ranks = torch.full((2,), float(self.rank), device=DEVICE)
        gathered = torch.empty(4, device=DEVICE)
        dist.all_gather_into_tensor(gathered, ranks)
        self.assertEqual(gathered.tolist(), [0, 0, 1, 1])


class OnThreads(common_dtensor.DTensorOpTestBase):
    """Ranks are threads, whose group PyTorch writes in Python."""

    world_size = 2

    def test_placements(self) -> None:
        mesh, full = self.build_device_mesh(), numbers(4, 3)
        sharded = distribute_tensor(full.to(DEVICE), mesh, [Shard(0)])
        self.assertEqual(sharded.to_local().device.type, DEVICE)
        self.assertEqual(sharded.full_tensor().cpu(), full)
        self.assertEqual((sharded * 2).sum().full_tensor().cpu(), (full * 2).sum())


class OnNoRanks(common_dtensor.LocalDTensorTestBase):
    """All ranks are simulated in one thread, with a group that does nothing."""

    world_size = 2

    @common_dtensor.with_comms
    def test_placements(self) -> None:
        mesh = self.build_device_mesh()
        with common_dtensor.LocalTensorMode(frozenset(range(self.world_size))):
            sharded = distribute_tensor(torch.arange(8, device=DEVICE), mesh, [Shard(0)])
            again = sharded.redistribute(mesh, [Replicate()]).to_local().reconcile()
        self.assertEqual(again.device.type, DEVICE)
        self.assertEqual(again.tolist(), list(range(8)))


class OfFsdp(FSDPTestMultiThread):
    """FSDP2 on threads."""

    world_size = 2

    def test_one_step(self) -> None:
        torch.manual_seed(0)
        ours = fully_shard(MLP(WIDTH, torch.device(DEVICE)))
        loss = ours(numbers(3, WIDTH).to(DEVICE)).sum()
        loss.backward()
        for one in ours.parameters():
            self.assertEqual(one.grad.to_local().device.type, DEVICE)


if __name__ == "__main__":
    run_tests()
