# SPDX-License-Identifier: Apache-2.0
"""Forked and spawned processes, loaders with workers, shared memory and threads."""

import contextlib
import multiprocessing
import os
import threading
from typing import Any, Callable

import torch
from models import losses, network, numbers
from registry import probe, thread_names
from torch.utils.data import DataLoader, IterableDataset, TensorDataset


def in_a_fork(function: Callable[[], Any]) -> Any:
    """What a function comes to in a process forked from this one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            try:
                text = repr(function())
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
            os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    return text, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def children(target: Callable[..., Any], *arguments: Any, method: str = "fork") -> list[int]:
    context = multiprocessing.get_context(method)
    started = [context.Process(target=target, args=arguments) for _ in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [process.exitcode for process in started]


@probe
def threads_of_a_new_process() -> Any:
    return len(thread_names())


@probe
def fork_before_anything() -> Any:
    return in_a_fork(lambda: losses(network()))


def add_one(shared: torch.Tensor) -> None:
    shared += 1


@probe
def shared_tensor() -> Any:
    shared = torch.zeros(2).share_memory_()
    return children(add_one, shared), shared


@probe
def shared_module() -> Any:
    model = network().share_memory()
    codes = children(losses, model)
    return codes, all(one.is_shared() for one in model.parameters())


@probe
def spawned_process() -> Any:
    shared = torch.zeros(2).share_memory_()
    return children(add_one, shared, method="spawn"), shared


@probe
def spawned_by_torch() -> Any:
    shared = torch.zeros(2).share_memory_()
    torch.multiprocessing.start_processes(_rank, args=(shared,), nprocs=2, start_method="fork")
    return shared


def _rank(rank: int, shared: torch.Tensor) -> None:
    shared[rank] = rank + 1


@probe
def failed_process() -> Any:
    try:
        torch.multiprocessing.start_processes(_fails, nprocs=1, start_method="fork")
    except torch.multiprocessing.ProcessRaisedException as error:
        return str(error).splitlines()[-1]


def _fails(rank: int) -> None:
    raise ValueError(rank)


@probe
def tensor_through_a_queue() -> Any:
    queue = torch.multiprocessing.get_context("fork").Queue()
    done = torch.multiprocessing.get_context("fork").Event()
    process = torch.multiprocessing.get_context("fork").Process(target=_puts, args=(queue, done))
    process.start()
    value = queue.get(timeout=60).clone()
    done.set()
    process.join()
    return value


def _puts(queue: Any, done: Any) -> None:
    queue.put(numbers())
    done.wait(60)  # the memory is this process's


@probe
def pool() -> Any:
    with torch.multiprocessing.get_context("fork").Pool(2) as workers:
        return workers.map(_double, [torch.ones(1), torch.ones(2)])


def _double(value: torch.Tensor) -> torch.Tensor:
    return value * 2


def batches(**options: Any) -> Any:
    data = DataLoader(TensorDataset(torch.arange(6.0)), batch_size=2, **options)
    first = [[one.tolist() for one in batch] for batch in data]
    return first, [[one.tolist() for one in batch] for batch in data]


@probe
def loader_with_workers() -> Any:
    return batches(num_workers=2)


@probe
def loader_with_persistent_workers() -> Any:
    return batches(num_workers=2, persistent_workers=True, prefetch_factor=3)


@probe
def loader_that_shuffles_in_workers() -> Any:
    return batches(
        num_workers=2, shuffle=True, generator=torch.Generator().manual_seed(1),
        worker_init_fn=lambda index: torch.manual_seed(index),
    )  # fmt: skip


class _Stream(IterableDataset):
    def __iter__(self) -> Any:
        info = torch.utils.data.get_worker_info()
        yield from (torch.tensor([info.id, index]) for index in range(2))


@probe
def loader_of_an_iterable() -> Any:
    return [one.tolist() for one in DataLoader(_Stream(), batch_size=2, num_workers=2)]


class _Trains(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(losses(network()))


@probe
def loader_whose_workers_train() -> Any:
    return [one.tolist() for one in DataLoader(_Trains(), num_workers=1)]


@probe
def loader_with_a_timeout() -> Any:
    return batches(num_workers=1, timeout=60)


class _Fails(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> torch.Tensor:
        raise KeyError("no such sample")


@probe
def loader_that_fails() -> Any:
    try:
        return list(DataLoader(_Fails(), num_workers=1))
    except KeyError as error:
        return str(error).splitlines()[-1]


@probe
def loader_of_samplers() -> Any:
    sampler = torch.utils.data.WeightedRandomSampler(
        [0.1, 0.9], 4, generator=torch.Generator().manual_seed(2)
    )
    data = DataLoader(TensorDataset(torch.arange(2)), sampler=sampler)
    return [one[0].item() for one in data]


@probe
def split_data() -> Any:
    parts = torch.utils.data.random_split(
        range(6), [4, 2], generator=torch.Generator().manual_seed(2)
    )
    return [list(part) for part in parts]


@probe
def distributed_sampler() -> Any:
    sampler = torch.utils.data.DistributedSampler(range(6), num_replicas=2, rank=1)
    return list(sampler)


@probe
def seeds_of_workers() -> Any:
    torch.manual_seed(9)
    data = DataLoader(range(2), num_workers=2, collate_fn=_seed)
    return list(data)


def _seed(batch: Any) -> int:
    return torch.initial_seed() % 1000


@probe
def threads_that_compute() -> Any:
    results: list[Any] = []

    def work() -> None:
        with torch.no_grad():
            results.append(network()(numbers()).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(results)


@probe
def forward_and_fork() -> Any:
    with torch.no_grad():
        network()(numbers())
    return in_a_fork(lambda: losses(network()))


@probe
def backward_and_threads() -> Any:
    losses(network())
    return len([name for name in thread_names() if name.startswith("pt_")])


@probe
def backward_and_fork() -> Any:
    losses(network())
    return in_a_fork(lambda: losses(network()))


@probe
def backward_and_fork_without_gradients() -> Any:
    losses(network())
    return in_a_fork(lambda: network()(numbers()).sum().item())


@probe
def backward_and_workers() -> Any:
    losses(network())
    return batches(num_workers=2)


@probe
def backward_in_threads() -> Any:
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(losses(network()))) for _ in range(1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@probe
def multithreaded_backward_off() -> Any:
    with torch.autograd.set_multithreading_enabled(False):
        return losses(network())
