# SPDX-License-Identifier: Apache-2.0
"""A Runtime with each choice of the groups of functions compiles, on the PyTorch there is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADER = (ROOT / "templates" / "project" / "csrc" / "runtime.h").read_text(encoding="utf-8")
COLLECTIVES = ROOT / "examples" / "collectives" / "csrc" / "collectives.h"
SIMULATOR = "namespace foo::simulator { constexpr bool kUnified = false; }\n"
STREAMS = ("create_stream", "synchronize_stream", "query_stream")
EVENTS = ("create_event", "destroy_event", "record_event", "wait_event", "query_event")
EVENTS += ("synchronize_event",)
GROUPS = {
    "streams": STREAMS,
    "events": EVENTS,
    "timing": ("elapsed_ms",),
    "memory": ("memory_info",),
    "pinned": ("allocate_host", "deallocate_host", "is_host_pointer"),
    "peers": ("can_access_peer", "copy_peer"),
    "graphs": (
        "begin_capture",
        "end_capture",
        "instantiate_graph",
        "replay_graph",
        "destroy_graph",
    ),
    "properties": ("properties",),
    "communicators": (
        "communicator_id",
        "create_communicator",
        "destroy_communicator",
        "abort_communicator",
        "communicator_error",
    ),
    "all_reduce": ("all_reduce",),
    "reduce_scatter": ("reduce_scatter",),
    "all_gather": ("all_gather",),
    "broadcast": ("broadcast",),
    "messages": ("send", "recv", "begin_group", "end_group"),
}
COMMUNICATORS = ("streams", "events", "communicators")
CHOICES = [
    (),
    ("streams",),
    ("events",),
    ("streams", "events"),
    ("streams", "events", "timing"),
    ("memory",),
    ("pinned",),
    ("streams", "pinned"),
    ("streams", "events", "pinned"),
    ("peers", "properties"),
    ("streams", "peers"),
    ("streams", "events", "peers"),
    ("streams", "graphs"),
    COMMUNICATORS,
    (*COMMUNICATORS, "all_reduce"),
    (*COMMUNICATORS, "reduce_scatter", "all_gather"),
    (*COMMUNICATORS, "broadcast", "messages"),
]
HEADERS = """
#include <backendkit/device/capabilities.h>
#include <backendkit/device/driver_collectives.h>
#include <backendkit/graph.h>
#include <backendkit/guard.h>
#include <backendkit/hooks.h>
#include <backendkit/copy/copy.h>
#include <backendkit/memory/lending_allocator.h>
#include <backendkit/fallback/host_memory.h>
#include <backendkit/copy/transfers.h>
"""
SOURCE = """
#include "headers.h"
#include "runtime.h"
template class backendkit::CollectiveDriver<foo::Runtime>;
template class backendkit::Copier<foo::Runtime>;
template class backendkit::DeviceGuard<foo::Runtime>;
template class backendkit::Events<foo::Runtime>;
template class backendkit::Hooks<foo::Runtime>;
template class backendkit::LendingAllocator<foo::Runtime>;
template class backendkit::HostMemory<foo::Runtime>;
template class backendkit::Streams<foo::Runtime>;
template class backendkit::Transfers<foo::Runtime>;
template void backendkit::register_graphs<foo::Runtime>();
template std::vector<backendkit::Capability> backendkit::capabilities<foo::Runtime>();
"""


def header(groups: tuple[str, ...]) -> str:
    """The starter project's runtime without the functions of the other groups."""
    collectives = COLLECTIVES.read_text(encoding="utf-8").replace("#pragma once\n", "")
    text = HEADER.replace("{{device}}", "foo").replace(
        "struct Runtime {", "struct Runtime : Collectives {"
    )
    text = text.replace("#pragma once\n", f"#pragma once\n{collectives}")
    for group in set(GROUPS) - set(groups):
        for function in GROUPS[group]:
            text, count = re.subn(rf"  static [^;(]*\b{function}\([^;]*;\n", "", text)
            assert count == 1
    return text


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory, torch_folder: Path) -> list[str | Path]:
    """The compiler and its options; it has compiled what all choices include."""
    folder = tmp_path_factory.mktemp("headers")
    torch = torch_folder / "include"
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{folder}", f"-I{ROOT / 'include'}", "-isystem", torch]
    command += ["-isystem", torch / "torch" / "csrc" / "api" / "include"]
    (folder / "headers.h").write_text(HEADERS)
    subprocess.run([*command, "-x", "c++-header", folder / "headers.h"], check=True)
    return command


@pytest.mark.parametrize("groups", CHOICES, ids="-".join)
def test_the_rest_can_be_left_out(
    compiler: list[str | Path], tmp_path: Path, groups: tuple[str, ...]
) -> None:
    source = tmp_path / "groups.cpp"
    source.write_text(SOURCE)
    (tmp_path / "runtime.h").write_text(header(groups))
    (tmp_path / "simulator.h").write_text(SIMULATOR)
    command = [*compiler, "-fsyntax-only", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_function_that_can_be_left_out_is_of_a_capability() -> None:
    include = ROOT / "include" / "backendkit"
    text = (include / "device" / "check_runtime.h").read_text(encoding="utf-8")
    functions = re.findall(r"BACKENDKIT_CHECK_OPTIONAL\(Has\w+, (\w+),", text)
    assert len(functions) > 10
    told = (include / "device" / "capabilities.h").read_text(encoding="utf-8")
    told = re.sub(r'"\s+"', "", told)  # a long text is in two parts
    named = {one for group in re.findall(r'"([^"]*)"\}', told) for one in group.split(", ")}
    assert set(functions) <= named, set(functions) - named
