# SPDX-License-Identifier: Apache-2.0
"""Packs the driver's libraries into a wheel of their own: [wheel.runtime] of backend.toml.

    runtime_wheel FACTS FOLDER SMOKE

FACTS is what `runtime_facts()` of backendgen wrote, as JSON. The wheel has a folder `lib` with the
libraries under the names by which they are loaded, and their names in `load_order.txt`, each after
those that it needs: the backend that opens them need not know what this version consists of.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path

from backendkit_tools.elf import Library, is_elf, read_library
from backendkit_tools.licences import Licence, licence_of
from backendkit_tools.sbom import NAME, sbom
from backendkit_tools.screen import fail, say
from backendkit_tools.wheelfile import Member, Wheel, read_wheel, wheel_bytes, write_whole

__all__ = ["LOAD_ORDER", "Facts", "lay_out", "make_wheel", "soname_list"]

#: The names of the libraries in the order in which they can be opened, one a line.
LOAD_ORDER = "load_order.txt"
_MACHINES = {3: "i686", 21: "ppc64le", 22: "s390x", 40: "armv7l", 62: "x86_64", 183: "aarch64"}
_MACHINES[243] = "riscv64"
_OPEN = "import ctypes, sys; [ctypes.CDLL(path) for path in sys.argv[1:]]"


@dataclass(frozen=True)
class Facts:
    """What the description says."""

    name: str  # foo-runtime
    version: str
    backend: str  # torch_foo
    device: str  # as people call it
    folder: str  # of the project
    backendkit: str  # the version that packs
    libraries: list[str]  # below the folder
    license: str = ""  # an SPDX expression
    license_files: list[str] = field(default_factory=list)  # below the folder

    @classmethod
    def read(cls, text: str) -> Facts:
        return cls(**json.loads(text))

    @property
    def package(self) -> str:
        """What Python calls it: foo_runtime."""
        return self.name.replace("-", "_")

    @property
    def title(self) -> str:
        return f"Driver libraries of {self.device} devices"


def _libraries(facts: Facts) -> dict[str, Library]:
    """The libraries by the names under which they are loaded."""
    found: dict[str, Library] = {}
    for name in facts.libraries:
        path = Path(facts.folder, name)
        if not is_elf(path):
            fail(f"{name} of [wheel.runtime] is not a library", "leave it out of `libraries`")
        library = read_library(path)
        if not library.soname:
            fail(
                f"{name} has no SONAME, so no other library could refer to it",
                f"link it with `-Wl,-soname,{path.name}`",
            )
        other = found.setdefault(library.soname, library)
        if other.path.resolve() != path.resolve():
            if other.path.read_bytes() == path.read_bytes():
                continue
            both = f"{other.path.relative_to(facts.folder)} and {name}"
            fail(f"{both} have one SONAME, {library.soname}", "leave one of them out")
    return found


def soname_list(facts: Facts) -> list[str]:
    """The names under which the libraries are loaded."""
    return sorted(_libraries(facts))


def _order(libraries: dict[str, Library]) -> list[str]:
    """Each library after those that it needs."""
    done: list[str] = []
    open_: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        if name in open_:
            _judge_circle([libraries[one] for one in open_[open_.index(name) :]])
            return
        open_.append(name)
        for needed in sorted(set(libraries[name].needed) & set(libraries)):
            visit(needed)
        done.append(open_.pop())

    for name in sorted(libraries):
        visit(name)
    return done


def _judge_circle(circle: list[Library]) -> None:
    """Libraries that need each other have to find each other: none can be opened first."""
    names = " and ".join(sorted({library.soname for library in circle}))
    for library in circle:
        if "$ORIGIN" not in library.run_paths:
            fail(
                f"{names} need each other, and {library.soname} does not look beside itself",
                "link them with `-Wl,-rpath,'$ORIGIN'`",
            )


def _machine(paths: list[Path]) -> str:
    """The machine that all libraries are for, as platform tags have it."""
    known: dict[str, Path] = {}
    for path in paths:
        head = path.read_bytes()[:20]
        (number,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
        machine = _MACHINES.get(number, "")
        if not machine:
            fail(f"{path.name} is for a machine that no wheel is for: number {number} of ELF's")
        known.setdefault(machine, path)
    if len(known) > 1:
        (one, first), (other, second) = list(known.items())[:2]
        fail(
            f"{first.name} is for {one} and {second.name} is for {other}",
            "name libraries for one machine, and build a wheel for each",
        )
    return next(iter(known))


def _metadata(facts: Facts, names: list[str], licence: Licence) -> Message:
    headers = Message()
    headers["Metadata-Version"] = "2.4"
    headers["Name"] = facts.name
    headers["Version"] = facts.version
    headers["Summary"] = facts.title
    headers["Requires-Python"] = ">=3.9"
    if licence.expression:
        headers["License-Expression"] = licence.expression
    for file in licence.files:
        headers["License-File"] = file
    headers["Description-Content-Type"] = "text/markdown"
    rows = "".join(f"- `{name}`\n" for name in names)
    headers.set_payload(f"{facts.title}, which `{facts.backend}` opens:\n\n{rows}")
    return headers


def _init(facts: Facts) -> str:
    says = f'"""{facts.title}, in the folder `lib`; {facts.backend} opens them."""'
    if any(character in facts.device for character in '"\\'):
        says = f'"""Driver libraries, in the folder `lib`; {facts.backend} opens them."""'
    return f'{says}\n\n__version__ = "{facts.version}"\n'


def make_wheel(facts: Facts) -> Wheel:
    """The wheel, for Linux on the machine that the libraries are for."""
    libraries = _libraries(facts)
    order = _order(libraries)
    machine = _machine([library.path for library in libraries.values()])
    # As file names have it.
    distribution = re.sub(r"[-_.]+", "_", facts.name)
    wheel = Wheel(distribution, facts.version, tags=("py3", "none", f"linux_{machine}"))
    for name, library in libraries.items():
        wheel.members[f"{facts.package}/lib/{name}"] = Member(library.path.read_bytes(), 0o755)
    texts = {LOAD_ORDER: "".join(f"{name}\n" for name in order), "__init__.py": _init(facts)}
    for name, text in texts.items():
        wheel.members[f"{facts.package}/{name}"] = Member(text.encode("utf-8"))
    licence = licence_of(Path(facts.folder), facts.license, facts.license_files)
    for name in licence.files:
        data = Path(facts.folder, name).read_bytes()
        wheel.members[f"{wheel.dist_info}/licenses/{name}"] = Member(data)
    wheel.set_headers("METADATA", _metadata(facts, order, licence))
    head = "Wheel-Version: 1.0\nGenerator: backendgen\nRoot-Is-Purelib: false\n"
    tags = f"Tag: {'-'.join(wheel.tags)}\n"
    wheel.members[f"{wheel.dist_info}/WHEEL"] = Member((head + tags).encode("ascii"))
    files = {name: member.data for name, member in wheel.members.items()}
    listed = sbom(wheel.headers("METADATA"), files, facts.backendkit, with_kit=False)
    wheel.members[f"{wheel.dist_info}/{NAME}"] = Member(listed)
    return wheel


def lay_out(wheel: Wheel, folder: Path) -> None:
    """Writes the files of a wheel as an installation has them."""
    for name, member in wheel.members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(member.data)


def _smoke(wheel: Wheel, package: str) -> None:
    """Opens the libraries one after another, in a process of its own."""
    names = wheel.members[f"{package}/{LOAD_ORDER}"].data.decode("utf-8").split()
    with tempfile.TemporaryDirectory() as folder:
        lay_out(wheel, Path(folder))
        paths = [str(Path(folder, package, "lib", name)) for name in names]
        words = [sys.executable, "-c", _OPEN, *paths]
        run = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        for line in run.stderr.strip().splitlines()[-1:]:
            say("note", line.replace(f"{folder}/", ""))
        fail(
            f"the libraries of {wheel.distribution} cannot be opened one after another",
            "add the library that is missing to `libraries` of [wheel.runtime], or pass "
            "`--no-smoke` if only a machine with the device has it",
        )
    say("Tested", f"opened {', '.join(names)}")


def main() -> None:
    facts, folder, wish = Facts.read(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    wheel = make_wheel(facts)
    path = folder / wheel.filename
    write_whole(path, wheel_bytes(wheel))
    read = read_wheel(path)
    count = sum(name.startswith(f"{facts.package}/lib/") for name in read.members)
    say("Verified", f"{count} {'library' if count == 1 else 'libraries'}, RECORD")
    if wish == "smoke":
        _smoke(wheel, facts.package)


if __name__ == "__main__":
    main()
