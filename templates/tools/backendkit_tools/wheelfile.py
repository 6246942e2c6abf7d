# SPDX-License-Identifier: Apache-2.0
"""A wheel in memory: read and verified, and written so that equal contents give equal bytes."""

from __future__ import annotations

import base64
import csv
import email.message
import email.parser
import email.policy
import hashlib
import io
import os
import stat
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Member", "Wheel", "WheelError", "read_wheel", "wheel_bytes", "write_whole"]

#: The date of the files unless SOURCE_DATE_EPOCH is set: the first that a zip file can store.
EPOCH = 315532800
#: Leaves every header and the body as they are: UTF-8, no line broken, no ">From".
_POLICY = email.policy.EmailPolicy(
    utf8=True, refold_source="none", max_line_length=0, mangle_from_=False
)
_SIGNATURES = ("RECORD", "RECORD.jws", "RECORD.p7s")  # not in RECORD, or without a hash there


class WheelError(Exception):
    """What is wrong with a wheel, written for the user."""


@dataclass
class Member:
    """A file of a wheel. `mode` has the permissions, of which zip tools use the executable bit."""

    data: bytes
    mode: int = 0o644


@dataclass
class Wheel:
    """The contents of a wheel without RECORD, which is derived from the rest."""

    distribution: str  # as file names have it: torch_foo
    version: str
    build: str = ""
    tags: tuple[str, str, str] = ("py3", "none", "any")  # python, abi, platform; with dots
    members: dict[str, Member] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        parts = [self.distribution, self.version, *([self.build] if self.build else []), *self.tags]
        return "-".join(parts) + ".whl"

    @property
    def dist_info(self) -> str:
        return f"{self.distribution}-{self.version}.dist-info"

    def text(self, name: str) -> str:
        """A file of `.dist-info`. Raises WheelError if it is missing."""
        path = f"{self.dist_info}/{name}"
        if path not in self.members:
            raise WheelError(f"{self.filename} has no {path}")
        return self.members[path].data.decode("utf-8")

    def headers(self, name: str) -> email.message.Message:
        """METADATA or WHEEL, parsed; `set_headers` puts a changed one back."""
        return email.parser.Parser(policy=_POLICY).parsestr(self.text(name))

    def set_headers(self, name: str, headers: email.message.Message) -> None:
        text = headers.as_string(policy=_POLICY)
        self.members[f"{self.dist_info}/{name}"] = Member(text.encode("utf-8"))


def read_wheel(path: Path) -> Wheel:
    """Reads a wheel and verifies its name, every member and RECORD. Raises WheelError."""
    parts = path.name[: -len(".whl")].split("-") if path.name.endswith(".whl") else []
    if len(parts) not in (5, 6):
        raise WheelError(f"{path.name} is not the name of a wheel")
    build = parts[2] if len(parts) == 6 else ""
    wheel = Wheel(parts[0], parts[1], build, (parts[-3], parts[-2], parts[-1]))
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                _judge_name(path.name, info.filename, wheel)
                mode = (info.external_attr >> 16) & 0o777 or 0o644
                wheel.members[info.filename] = Member(archive.read(info), mode)
    except (OSError, zipfile.BadZipFile, zipfile.LargeZipFile, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise WheelError(f"{path.name} cannot be read: {why}") from error
    _verify_record(path.name, wheel)
    return wheel


def _judge_name(wheel_name: str, name: str, wheel: Wheel) -> None:
    if name.startswith("/") or "\\" in name or ".." in name.split("/"):
        raise WheelError(f"{wheel_name} has a file outside its folder: {name}")
    if name in wheel.members:
        raise WheelError(f"{wheel_name} has two files of one name: {name}")


def _verify_record(name: str, wheel: Wheel) -> None:
    record = f"{wheel.dist_info}/RECORD"
    rows = list(csv.reader(io.StringIO(wheel.text("RECORD"))))
    listed = set()
    for row in rows:
        if len(row) != 3:
            raise WheelError(f"{name}: a line of RECORD has {len(row)} fields, expected 3")
        path, digest, size = row
        listed.add(path)
        if path not in wheel.members:
            raise WheelError(f"{name} lacks {path}, which its RECORD lists")
        if path.rpartition("/")[2] in _SIGNATURES and not digest:
            continue
        data = wheel.members[path].data
        if digest != _digest(data) or size != str(len(data)):
            raise WheelError(f"{name}: {path} is not what RECORD says; the wheel is damaged")
    surplus = sorted(set(wheel.members) - listed - {f"{record}{end}" for end in (".jws", ".p7s")})
    if surplus:
        raise WheelError(f"{name} has {surplus[0]}, which its RECORD does not list")
    del wheel.members[record]


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return "sha256=" + digest.decode("ascii")


def wheel_bytes(wheel: Wheel) -> bytes:
    """The wheel as a file: sorted, with `.dist-info` last and RECORD as its last member.

    The same contents give the same bytes with the same zlib; dates are SOURCE_DATE_EPOCH.
    """
    own = f"{wheel.dist_info}/"
    names = sorted(wheel.members, key=lambda name: (name.startswith(own), name))
    record = io.StringIO()
    writer = csv.writer(record, lineterminator="\n")
    for name in names:
        data = wheel.members[name].data
        writer.writerow((name, _digest(data), len(data)))
    writer.writerow((f"{own}RECORD", "", ""))
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in names:
            _add(archive, name, wheel.members[name])
        _add(archive, f"{own}RECORD", Member(record.getvalue().encode("utf-8"), 0o664))
    return output.getvalue()


def _add(archive: zipfile.ZipFile, name: str, member: Member) -> None:
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH)), EPOCH)
    info = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
    info.external_attr = (stat.S_IFREG | member.mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3  # Unix, also when written elsewhere
    archive.writestr(info, member.data, compresslevel=9)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file beside its place and renames it, so that no reader sees a part of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
