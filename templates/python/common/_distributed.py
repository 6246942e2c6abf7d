# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The device's process group, and what else of torch.distributed needs to know the device.

The library makes the process group; it moves data through a Gloo of its own. This module registers
it with PyTorch, and makes what PyTorch has lists of devices for work on this one.

`import torch` imports the modules of PyTorch that this one changes, and so this one too.
"""

import atexit
import datetime
import functools
import importlib
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)
_defaults = importlib.import_module("._defaults", __package__)

_NAME: str = _device._NAME
#: The process group's name; empty if there is none.
_GROUP: str = _device._build.DISTRIBUTED

_c10d: Any = None  # torch.distributed.distributed_c10d, once the process group is registered
_made = False  # whether this process has made a process group
#: Of this thread. `count`: of the calls that want the device; `decided`: whether a group is made
#: that will get its part for the device later, if at all; `named`: how the group that is made is
#: called, and what for.
_wishes = threading.local()
_late: list["_Late"] = []
_called: Optional[torch.library.Library] = None  # with what the library calls


class _Late:
    """A group that gets its part for the device from `attach_late`."""

    def __init__(self, group: Any, store: Any, timeout: datetime.timedelta) -> None:
        # The store may have a server with a thread and a port, which end with the group.
        self.group = weakref.ref(group, _forget)
        self.store, self.timeout = store, timeout
        self.failure = ""
        self.lock = threading.RLock()


def register_entry() -> None:
    """Loads the backend, which registers its process group.

    From 2.14 on, PyTorch calls this if a program names the process group and the backend is not
    loaded, as with TORCH_DEVICE_BACKEND_AUTOLOAD=0. Raises the cause if it cannot be loaded.
    """
    importlib.import_module(_device._build.MODULE)
    if _device._failure is not None:
        raise RuntimeError(f"process group `{_GROUP}`: {_device._failure}") from _device._failure


def is_registered() -> bool:
    """Whether the device's default process group is the library's."""
    return _c10d is not None and _c10d.Backend.default_device_backend_map.get(_NAME) == _GROUP


def register(c10d: types.ModuleType) -> None:
    """Registers the process group with `torch.distributed.distributed_c10d`.

    Does nothing if the vendor has registered another one, or if PyTorch was built without Gloo.
    """
    global _c10d, _called
    module: Any = c10d
    known: dict[str, str] = module.Backend.default_device_backend_map
    can = bool(_GROUP) and hasattr(_device._ops, "attach_process_group")
    if not can or _NAME in known or not hasattr(module, "ProcessGroupGloo"):
        return
    # A list: up to 2.14 PyTorch would register each letter of a text.
    module.Backend.register_backend(_GROUP, _make, devices=[_NAME])
    _c10d = module
    module.Backend.register_backend = _giving_way(module.Backend.register_backend)
    replace(module, "_new_process_group_helper", _with_device)
    importlib.import_module("._parallel", __package__).patch_groups(module)
    _called = torch.library.Library(_device._ops.name, "FRAGMENT")
    _called.impl("use_group", _use_group, "CompositeExplicitAutograd")
    # Before the library's threads take the GIL from a Python that ends.
    atexit.register(_end)


def _giving_way(original: Callable[..., None]) -> Callable[..., None]:
    """Makes a process group that a vendor registers later the default one of the device.

    PyTorch itself keeps the first, in newer releases.
    """

    @functools.wraps(original)
    def register_backend(
        name: str, func: Any, extended_api: bool = False, devices: Any = None, **options: Any
    ) -> None:
        if devices is not None and _NAME in devices and name.lower() != _GROUP:
            _c10d.Backend.default_device_backend_map.pop(_NAME, None)
        original(name, func, extended_api, devices, **options)

    return register_backend


def replace(module: Any, name: str, wrapped: Callable[[Any], Any]) -> None:
    """Replaces a function of distributed_c10d, also where PyTorch has imported it by its name."""
    original = getattr(module, name, None)
    if original is None:
        return
    made = wrapped(original)
    setattr(module, name, made)
    for importer in ("torch.distributed", "torch.distributed.device_mesh"):
        names = vars(sys.modules.get(importer, module))
        if names.get(name) is original:
            names[name] = made


def _end() -> None:
    if _made:
        _device._ops.end_process_groups()


def _make(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> Any:
    """Makes the device's part of a process group; PyTorch calls it in every process of the group.

    Does not start the driver. The Gloo is not the one of the program's CPU tensors, because the
    library's thread and the program would use it in an order of their own in each process.
    """
    global _made
    own = _c10d.PrefixStore(f"{_GROUP}/", store)
    gloo = _c10d.ProcessGroupGloo(own, rank, size, timeout=timeout)
    kind = _c10d.ProcessGroup
    # 2.5 has options, from which it reads the name of the group.
    options = [kind.Options(_GROUP)] if hasattr(kind, "Options") else []
    group = kind(own, rank, size, *options)
    group._register_backend(torch.device("cpu"), kind.BackendType.GLOO, gloo)
    # For the records of PyTorch's flight recorder.
    name, purpose = getattr(_wishes, "named", ("", ""))
    group._set_group_name(f"{name}:{_GROUP}")
    group._set_group_desc(purpose)
    _device._ops.attach_process_group(group.boxed(), _milliseconds(timeout))
    _made = True
    return group._get_backend(torch.device(_NAME))


def _milliseconds(timeout: datetime.timedelta) -> int:
    return max(1, timeout // datetime.timedelta(milliseconds=1))


def both() -> str:
    """The process groups for the device and for the CPU, as PyTorch spells them."""
    return f"cpu:{_c10d.Backend.default_device_backend_map['cpu']},{_NAME}:{_GROUP}"


def wanted() -> bool:
    """Whether a process group for which a program names no device should have this one too.

    Never starts the driver. A program for the CPU gets the group that it gets without this package.
    """
    wishes = getattr(_wishes, "count", 0) > 0 or _device._selected
    return bool(wishes or _defaults._in_use())


def default_config() -> Optional[str]:
    """What PyTorch should use if a program names no process group; None: as without this device."""
    decided = getattr(_wishes, "decided", False)  # see `_with_device`
    return both() if is_registered() and not decided and wanted() else None


@contextmanager
def _wanting() -> Iterator[None]:
    """Within this context, this thread makes process groups for the device."""
    _wishes.count = getattr(_wishes, "count", 0) + 1
    try:
        yield
    finally:
        _wishes.count -= 1


def _with_device(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a group for which a program names no backend one for the CPU and the device.

    PyTorch itself makes it for the device only (2.6 and newer), and takes a group with a part for
    the CPU for Gloo's (2.6 to 2.13): most of torch.distributed fails with either. So this makes the
    group that PyTorch makes without the device, and adds the part for the device.
    """
    signature = inspect.signature(original)

    @functools.wraps(original)
    def _new_process_group_helper(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options)
        given.apply_defaults()
        values = given.arguments
        undefined = str(values["backend"]) == _c10d.Backend.UNDEFINED and is_registered()
        device: Any = values.get("device_id")
        bound = getattr(device, "type", "") == _NAME
        # By 2.5 and 2.6, which take only those of CUDA.
        refused = bound and not hasattr(torch._C._distributed_c10d.Backend, "supports_coalescing")
        if refused:
            values["device_id"] = None
        ours = undefined or _GROUP in str(values["backend"])
        votes: Any = _votes(values) if ours else None
        if votes is not None and undefined:
            votes.add("wanted", int(refused or wanted()))
        if votes is not None:
            connected = _tell(votes, values["group_size"], bound)
        _wishes.decided = undefined
        _wishes.named = (values["group_name"], str(values.get("group_desc")))
        try:
            made = original(*given.args, **given.kwargs)
        finally:
            _wishes.decided = False
        group = made[0]
        if not isinstance(group, _c10d.ProcessGroup):
            return made
        if refused:
            group.bound_device_id = device
        if undefined and votes.add("wanted", 0):
            _attach(group, made[1], values["timeout"])
        elif undefined:
            _late.append(_Late(group, made[1], values["timeout"]))
            _device._ops.await_use(len(_late))
        elif any(one.type == _NAME for one in group._device_types):
            _set_default(group)
        if bound and votes is not None and votes.get(connected) == b"1":
            _connect(group, device)
        return made

    return _new_process_group_helper


def _votes(values: dict[str, Any]) -> Any:
    """Where the processes of a group tell each other what they want; None for another's group.

    Once the group is made, all its processes have voted: its Gloo has waited for them. Some may not
    have used the device yet, and all must add the part for it, or none.
    """
    ranks = values["global_ranks_in_group"]
    if ranks and _c10d._get_default_group().rank() not in ranks:
        return None
    return _c10d.PrefixStore(f"{_NAME}/{values['group_name']}", values["store"])


def _tell(votes: Any, size: int, bound: bool) -> str:
    """Says whether this process gave a `device_id`; returns the key that says whether all did."""
    turn = (votes.add("ranks", 1) - 1) // size  # groups may have the same name, one after another
    unit = 1 << 32
    told = votes.add(f"bound{turn}", 1 + unit * bound)
    if told % unit == size:
        votes.set(f"all{turn}", str(int(told // unit == size)))
    return f"all{turn}"


def _set_default(group: Any) -> None:
    """Makes the device's part the one that a group is, as others' accelerators are."""
    if hasattr(group, "_set_default_backend"):  # 2.5 reads it from the name
        group._set_default_backend(_c10d.ProcessGroup.BackendType.CUSTOM)


def has_part(group: Any) -> bool:
    """Whether a group has the library's part for the device."""
    return f"{_NAME}:{_GROUP}" in str(_c10d._world.pg_backend_config.get(group, "")).split(",")


def _connect(group: Any, device: torch.device) -> None:
    """Lets the driver connect the ranks of a group with a `device_id`, also for messages."""
    if not has_part(group):
        return
    part = group._get_backend(device)
    while hasattr(part, "wrapped_pg"):  # TORCH_DISTRIBUTED_DEBUG=DETAIL
        part = part.wrapped_pg
    part.eager_connect_single_device(device)


def _forget(gone: "weakref.ref[Any]") -> None:
    _late[:] = [one for one in _late if one.group is not gone]


def attach_late(group: Any = None) -> None:
    """Gives a group, by default PyTorch's, that was made for the CPU only its part for the device.

    Does nothing if it has one, or if the program made it for the CPU. All processes of the group
    call this where they use it together on the device for the first time. If that fails, each call
    raises the same error.
    """
    if not _late:
        return
    place = _c10d.GroupMember.WORLD if group is None else group
    one = next((one for one in list(_late) if one.group() is place), None)
    if one is None:
        return
    with one.lock:  # other threads wait until the part is there
        if one.failure:
            raise torch.distributed.DistBackendError(one.failure)
        if one not in _late:
            return
        if place in _c10d._world.pg_map:
            try:
                _attach(place, _connected_again(one.store), one.timeout)
            except torch.distributed.DistBackendError as error:
                one.failure = str(error)  # not the error itself, whose frames have the group
                raise
        _late.remove(one)


def _connected_again(store: Any) -> Any:
    """A store with a connection of its own, if it can have that.

    While one thread waits for other ranks in a store, other threads can tell theirs nothing.
    """
    try:
        return store.clone()
    except (AttributeError, RuntimeError):  # older releases, and stores written in Python
        return store


def _use_group(boxed: Any) -> None:
    """Called by the library before an operator that uses a group for a tensor on the device."""
    attach_late(_c10d.ProcessGroup.unbox(boxed))
    _device._ops.await_use(len(_late))


def _attach(group: Any, store: Any, timeout: datetime.timedelta) -> None:
    own = _c10d.PrefixStore(f"{_NAME}/", store)
    name = _c10d._world.pg_names[group]
    _wishes.named = (name, group.group_desc)
    try:
        made = _make(own, group.rank(), group.size(), timeout)
    except RuntimeError as error:
        raise torch.distributed.DistBackendError(
            f"{_GROUP}: the ranks of group `{name}` connect when they use it on the device for the "
            "first time, and not all of them came: let all take part in its first operation there, "
            f'or give `init_process_group` a `device_id` or `backend="{both()}"`, with which it '
            "connects at once"
        ) from error
    if _c10d.get_debug_level() == _c10d.DebugLevel.DETAIL:
        made = _c10d._create_process_group_wrapper(
            wrapped_pg=made,
            store_prefix=name,
            store=own,
            rank=group.rank(),
            world_size=group.size(),
            timeout=timeout,
        )
    group._register_backend(torch.device(_NAME), _c10d.ProcessGroup.BackendType.CUSTOM, made)
    group._set_group_name(name)
    group._set_group_desc(group.group_desc)
    _set_default(group)
    _c10d._world.pg_map[group] = (_c10d.Backend(both()), _c10d._world.pg_map[group][1])
    _c10d._world.pg_backend_config[group] = both()


def patch_meshes(module: types.ModuleType) -> None:
    """Makes `init_device_mesh("foo", ...)` make a process group for the device if there is none."""
    mesh = getattr(module, "DeviceMesh", None)
    original = getattr(mesh, "__init__", None)
    if not is_registered() or mesh is None or original is None:
        return

    @functools.wraps(original)
    def initialize(self: Any, device_type: Any, *arguments: Any, **options: Any) -> None:
        if str(device_type) != _NAME:
            original(self, device_type, *arguments, **options)
            return
        attach_late()
        with _wanting():
            original(self, device_type, *arguments, **options)

    mesh.__init__ = initialize
