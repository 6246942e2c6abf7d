# SPDX-License-Identifier: Apache-2.0
"""Joins wheels of one backend that were built for several releases of PyTorch.

The arguments are OUT TELL TESTED WHEEL...: where the result goes, `tell` or `quiet`, and the
releases of PyTorch that BackendKit is tested with, with commas between.

Only `<package>/lib/<release>/`, METADATA's version and requirement of PyTorch, WHEEL, RECORD and
the list of what the wheel contains may differ. The order of the wheels changes nothing.
"""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path

from backendkit_tools.occupied import refuse_loss
from backendkit_tools.platform_tags import TagsDiffer, strictest
from backendkit_tools.relabel import rename_version
from backendkit_tools.releases import after, listed, missing_between, order, releases_among
from backendkit_tools.repair import refresh_sbom
from backendkit_tools.sbom import NAME
from backendkit_tools.screen import fail, say
from backendkit_tools.wheelfile import (
    Member,
    Wheel,
    WheelError,
    read_wheel,
    wheel_bytes,
    write_whole,
)

_LOCAL = re.compile(r"\+torch\d+\.\d+$")
_LIBRARY = re.compile(r"[^/]+/lib/(\d+\.\d+)/")
_TORCH = re.compile(r"torch(?![\w.-])")


class Part:
    """One of the wheels, made comparable with the others."""

    def __init__(self, path: Path) -> None:
        self.shown = str(path)
        try:
            self.wheel = read_wheel(path)
        except WheelError as error:
            # Wheels for several releases have one name: only their folders tell them apart.
            raise WheelError(str(error).replace(path.name, self.shown, 1)) from error
        self.minors = releases_among(self.wheel.members)
        if not self.minors:
            raise WheelError(
                f"{path} has no folder such as {self.wheel.distribution}/lib/2.13, so it is no "
                "wheel of a backend"
            )
        version = _LOCAL.sub("", self.wheel.version)
        if version != self.wheel.version:
            rename_version(self.wheel, version)
        headers = self.wheel.headers("METADATA")
        required = headers.get_all("Requires-Dist", [])
        if sum(map(bool, map(_TORCH.match, required))) != 1:
            raise WheelError(f"{path} does not require PyTorch once in its METADATA")
        wanted = f"torch>={self.minors[0]},<{after(self.minors[-1])}"
        _judge_requirement(path, next(filter(_TORCH.match, required)), wanted)
        self.set_requirement("torch")
        for name, member in self.wheel.members.items():
            # Other permissions come from the umask of the build.
            self.wheel.members[name] = Member(member.data, 0o755 if member.mode & 0o100 else 0o644)

    def set_requirement(self, text: str) -> None:
        headers = self.wheel.headers("METADATA")
        required = headers.get_all("Requires-Dist", [])
        del headers["Requires-Dist"]
        for one in required:
            headers["Requires-Dist"] = text if _TORCH.match(one) else one
        self.wheel.set_headers("METADATA", headers)

    def library(self, minor: str) -> dict[str, bytes]:
        folder = f"/lib/{minor}/"
        return {
            name: member.data
            for name, member in self.wheel.members.items()
            if _LIBRARY.match(name) and folder in name
        }

    def common(self) -> dict[str, Member]:
        """The members that every wheel has, equal."""
        special = {f"{self.wheel.dist_info}/{name}" for name in ("WHEEL", NAME)}
        return {
            name: member
            for name, member in self.wheel.members.items()
            if not _LIBRARY.match(name) and name not in special and not self.is_bundled(name)
        }

    def is_bundled(self, name: str) -> bool:
        """Whether it is a library that was bundled: its name has a hash of its contents."""
        return name.startswith(f"{self.wheel.distribution}.libs/")


def _judge_requirement(path: Path, requirement: str, wanted: str) -> None:
    """A requirement that says more than the libraries do would be lost."""
    clauses = set(re.sub(r"^torch|[\s()]", "", requirement).split(","))
    if clauses != set(wanted[len("torch") :].split(",")):
        raise WheelError(f"{path} requires `{requirement}`, but its libraries are for `{wanted}`")


def judge_holes(minors: list[str], tested: list[str]) -> None:
    for one, next_ in zip(minors, minors[1:]):
        missing = missing_between(one, next_, tested)
        if not missing:
            continue
        fail(
            f"the wheels leave out PyTorch {missing}: they are for {listed(minors)}",
            f"add a wheel that `backendgen wheel --torch {missing}` builds",
            f"pip would install a wheel for {one} and {next_} with PyTorch {missing} too, and it "
            "could not be loaded",
        )


def judge_names(parts: list[Part]) -> None:
    first = parts[0]
    for part in parts[1:]:
        for what, one, other in (
            ("backends", first.wheel.distribution, part.wheel.distribution),
            ("versions", first.wheel.version, part.wheel.version),
            ("build numbers", first.wheel.build or "none", part.wheel.build or "none"),
            ("Python tags", "-".join(first.wheel.tags[:2]), "-".join(part.wheel.tags[:2])),
        ):
            if one != other:
                fail(
                    f"the wheels are of two {what}: {one} and {other}",
                    "name only wheels that were built from the same sources",
                    f"{first.shown} has {one}",
                    f"{part.shown} has {other}",
                )


def explain(name: str, one: bytes, other: bytes) -> str:
    """The first difference between two files, for people."""
    try:
        lines = [data.decode("utf-8").splitlines() for data in (one, other)]
    except UnicodeDecodeError:
        return f"they have {len(one)} and {len(other)} bytes"
    if b"\0" in one + other:
        return f"they have {len(one)} and {len(other)} bytes"
    matcher = difflib.SequenceMatcher(None, *lines, autojunk=False)
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag != "equal":
            texts = [lines[0][start:end][:1], lines[1][other_start:other_end][:1]]
            shown = [f"`{text[0]}`" if text else "nothing" for text in texts]
            return f"line {start + 1}: {shown[0]} in the one, {shown[1]} in the other"
    return "only the ends of their lines differ"


def judge_common(parts: list[Part]) -> None:
    first = parts[0]
    members = first.common()
    for part in parts[1:]:
        others = part.common()
        for name in sorted({*members, *others}):
            one, other = members.get(name), others.get(name)
            if one == other:
                continue
            wheels = (first.shown, part.shown)
            if one is None or other is None:
                there, missing = wheels if other is None else wheels[::-1]
                fail(f"{name} is in {there} but not in {missing}", hint(name))
            why = (
                explain(name, one.data, other.data)
                if one.data != other.data
                else "one of them is executable"
            )
            fail(f"{name} differs between {wheels[0]} and {wheels[1]}", hint(name), why)


def hint(name: str) -> str:
    if name.endswith((".dist-info/METADATA", ".dist-info/entry_points.txt")):
        return "build both with the same setup.py and the same setuptools"
    return "build both from the same sources with the same BackendKit"


def join(parts: list[Part], tested: list[str]) -> tuple[Wheel, list[str]]:
    parts = sorted(parts, key=lambda part: ([order(one) for one in part.minors], part.shown))
    judge_names(parts)
    minors = sorted({minor for part in parts for minor in part.minors}, key=order)
    owner: dict[str, Part] = {}
    for part in parts:
        for minor in part.minors:
            known = owner.setdefault(minor, part)
            if known.library(minor) != part.library(minor):
                fail(
                    f"{known.shown} and {part.shown} have two libraries for PyTorch {minor}",
                    "name one of them",
                )
    judge_holes(minors, tested)
    judge_common(parts)
    first = parts[0]
    try:
        platform = strictest({part.shown: part.wheel.tags[2] for part in parts})
    except TagsDiffer as error:
        fail(str(error), error.help)
    first.set_requirement(f"torch>={minors[0]},<{after(minors[-1])}")
    wheel = first.wheel
    for part in parts[1:]:
        for name, member in part.wheel.members.items():
            if _LIBRARY.match(name):
                wheel.members[name] = member
            elif part.is_bundled(name) and wheel.members.setdefault(name, member) != member:
                fail(f"{name} differs between {first.shown} and {part.shown}", hint(name))
    wheel.tags = (*wheel.tags[:2], platform)
    set_tags(wheel)
    refresh_sbom(wheel)
    return wheel, minors


def set_tags(wheel: Wheel) -> None:
    """WHEEL, which names the program that wrote the wheel and its tags, one a line."""
    lines = ["Wheel-Version: 1.0", "Generator: backendgen", "Root-Is-Purelib: false"]
    if wheel.build:
        lines.append(f"Build: {wheel.build}")
    python, abi, platforms = wheel.tags
    for one in python.split("."):
        lines += [f"Tag: {one}-{abi}-{platform}" for platform in platforms.split(".")]
    data = "".join(f"{line}\n" for line in lines).encode("ascii")
    wheel.members[f"{wheel.dist_info}/WHEEL"] = Member(data)


def main() -> None:
    out, tell, releases, *paths = sys.argv[1:]
    tested = releases.split(",")
    try:
        wheel, minors = join([Part(Path(path)) for path in paths], tested)
    except WheelError as error:
        fail(str(error), "name wheels of a backend, as `backendgen wheel` writes them")
    target = Path(out, wheel.filename)
    refuse_loss(target, minors, tested)
    data = wheel_bytes(wheel)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, data)
    except OSError as error:
        fail(f"cannot write {target}: {error.strerror}")
    say("Merged", f"{wheel.distribution} {wheel.version} for PyTorch {listed(minors)}")
    if tell == "tell":
        say("Finished", f"{target} ({len(data) / 1024:.0f} KiB)")


if __name__ == "__main__":
    main()
