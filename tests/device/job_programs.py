# SPDX-License-Identifier: Apache-2.0
"""A training in parts on several ranks, for test_jobs.py: each job goes on from a checkpoint.

    python -m torch.distributed.run ... job_programs.py foo FOLDER

is such a job by itself, of which one rank is killed the first time.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from group_end_programs import start
from ranks import Rank, device_of, group_of
from torch import nn

if dist.is_available():  # here, because processes are forked afterwards
    import torch.distributed.checkpoint as dcp
    from torch.distributed import fsdp
    from torch.distributed.checkpoint import state_dict as states
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    #: 2.5 has it for CUDA only.
    fully_shard = getattr(fsdp, "fully_shard", None)

WORDS, WIDTH, LENGTH, ROWS = 11, 12, 6, 8


class Transformer(nn.Module):
    """Small, with dimensions that two and four ranks do not have equal parts of."""

    def __init__(self, seed=1):
        super().__init__()
        torch.manual_seed(seed)
        self.words = nn.Embedding(WORDS, WIDTH)
        # A bias of keys has no gradient but rounding, of which Adam makes steps.
        self.layer = nn.TransformerEncoderLayer(
            WIDTH, 3, 18, dropout=0.0, batch_first=True, bias=False
        )
        self.last = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        return self.last(self.layer(self.words(x)))


def batch(step):
    generator = torch.Generator().manual_seed(step)
    return torch.randint(WORDS, (ROWS, LENGTH + 1), generator=generator)


def loss_of(model, x):
    result = model(x[:, :-1])
    return nn.functional.cross_entropy(result.flatten(0, 1), x[:, 1:].flatten())


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-4)


class Training:
    """A model and its optimizer, in parts on all ranks; or whole, on the CPU, without ranks."""

    def __init__(self, here=None, seed=1):
        self.here = here
        self.model = Transformer(seed)
        if here is not None:
            self.mesh = init_device_mesh(here.device.type, (here.size,))
            self._share()
        self.optimizer = adam(self.model)

    def _share(self):
        self.model.to(self.here.device)
        if fully_shard is not None:
            for module in (self.model.layer, self.model):
                fully_shard(module, mesh=self.mesh)
            return
        for module in self.model.modules():
            for name, one in list(module.named_parameters(recurse=False)):
                part = distribute_tensor(one.detach(), self.mesh, [Shard(0)])
                module.register_parameter(name, nn.Parameter(part))

    def _loss(self, x):
        if self.here is None:
            return loss_of(self.model, x)
        x = x.to(self.here.device)
        if fully_shard is not None:  # averages the gradients
            return loss_of(self.model, x.chunk(self.here.size)[self.here.rank])
        whole = {name: one.full_tensor() for name, one in self.model.named_parameters()}
        return loss_of(lambda given: torch.func.functional_call(self.model, whole, (given,)), x)

    def step(self, number):
        self.optimizer.zero_grad()
        self._loss(batch(number)).backward()
        self.optimizer.step()

    def _state(self):
        parts = states.get_state_dict(self.model, self.optimizer)
        return dict(zip(("model", "optimizer"), parts))

    def save(self, folder):
        dcp.save(self._state(), checkpoint_id=str(folder))

    def load(self, folder):
        state = self._state()
        dcp.load(state, checkpoint_id=str(folder))
        states.set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )

    def whole(self):
        """All parameters, and what the optimizer has for each, as whole tensors of the CPU."""
        found = {}
        for name, one in self.model.named_parameters():
            if self.here is not None:
                assert isinstance(one, DTensor) and one.to_local().device == self.here.device
            found[name] = _whole(one)
            for key, value in self.optimizer.state[one].items():
                found[f"{name} {key}"] = _whole(value)
        return found


def _whole(tensor):
    tensor = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return tensor.detach().cpu()


def uninterrupted(steps):
    """What a training without ranks and checkpoints comes to."""
    training = Training()
    for step in range(steps):
        training.step(step)
    return training.whole()


def close(got, expected):
    for name, value in expected.items():
        message = f"{name}: {{}}".format
        torch.testing.assert_close(got[name], value, rtol=1e-4, atol=1e-5, msg=message)


# --- jobs of different sizes ------------------------------------------------------------------

STEPS = 2  # of each job


def job(here, folder, number):
    """Goes on from the checkpoint of the job before, which may have had more ranks, or fewer."""
    start(here, timeout=60)
    folder = Path(folder)
    training = Training(here, seed=1 if number == 0 else 100 + number)
    if number > 0:
        training.load(folder / str(number - 1))
        saved = torch.load(folder / f"{number - 1}.pt", weights_only=True)
        loaded = training.whole()
        assert loaded.keys() == saved.keys()
        assert len(saved) == 4 * len(training.model.state_dict())  # AdamW has three of each
        for name, value in saved.items():
            assert torch.equal(loaded[name], value), name
    for step in range(STEPS * number, STEPS * (number + 1)):
        training.step(step)
    whole = training.whole()
    close(whole, uninterrupted(STEPS * (number + 1)))
    training.save(folder / str(number))
    if here.rank == 0:
        torch.save(whole, folder / f"{number}.pt")
    dist.destroy_process_group()


# --- a job that torchrun starts again ---------------------------------------------------------

#: Steps of the whole training and from one checkpoint to the next; the one in which a rank is
#: killed, which is in the middle.
ALL, EVERY, KILLED = 10, 3, 7


def main(kind, folder):
    """A job that begins with the newest checkpoint in a folder, and makes some itself."""
    torch.set_num_threads(1)
    rank, size = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    here = Rank(rank, size, device_of(kind, int(os.environ["LOCAL_RANK"])))
    folder, attempt = Path(folder), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    dist.init_process_group(group_of(kind))
    training = Training(here, seed=1 + attempt)
    newest = folder / "newest"
    first = int(newest.read_text()) if newest.exists() else 0
    if first > 0:
        training.load(folder / str(first))
    (folder / f"attempt-{attempt}-{rank}").write_text(f"{os.getpid()} {first}")
    for step in range(first, ALL):
        if (attempt, rank, step) == (0, 1, KILLED):
            os.kill(os.getpid(), signal.SIGKILL)
        training.step(step)
        if (step + 1) % EVERY == 0:
            training.save(folder / str(step + 1))
            dist.barrier()
            if rank == 0:
                newest.write_text(str(step + 1))
    whole = training.whole()
    if rank == 0:
        torch.save(whole, folder / "whole.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
