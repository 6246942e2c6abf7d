# SPDX-License-Identifier: Apache-2.0
"""The list of what a wheel is made of: PEP 770, CycloneDX 1.6 as JSON.

It is a function of the wheel's METADATA and files, so that it can be made again after libraries
were bundled or wheels merged, and equal wheels have equal lists: there is no serial number, and a
timestamp only if SOURCE_DATE_EPOCH is set. The packaging of a backend and the tools of backendgen
have copies of this file, because all three need nothing but Python.
"""

from __future__ import annotations

import datetime
import email.message
import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["NAME", "has_kit", "made_with", "sbom"]

#: The file, below `.dist-info`.
NAME = "sboms/backendkit.cdx.json"
#: What auditwheel writes there about the packages that bundled libraries come from.
_AUDITWHEEL = "sboms/auditwheel.cdx.json"
#: The date that BackendKit sets where the user has set none, which says nothing: 1980-01-01.
_NO_DATE = 315532800
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^]]*\])?\s*([^;]*)(;.*)?")
_HASHED = re.compile(r"-[0-9a-f]{8}(?=\.)")


def sbom(
    metadata: email.message.Message,
    files: Mapping[str, bytes],
    backendkit_version: str,
    with_kit: bool = True,
) -> bytes:
    """The list for a wheel with this METADATA and these files, which may lack `.dist-info`.

    Without `with_kit`, nothing of BackendKit is in the wheel: it only wrote it.
    """
    name, version = str(metadata["Name"]), str(metadata["Version"])
    package: dict[str, Any] = {"type": "library", "bom-ref": _purl(name, version), "name": name}
    package.update(version=version, purl=_purl(name, version))
    if metadata["Summary"]:
        package["description"] = str(metadata["Summary"])
    if metadata["License-Expression"]:
        package["licenses"] = [{"expression": str(metadata["License-Expression"])}]
    libraries = [_library(path, files[path]) for path in sorted(files) if _is_library(files[path])]
    if libraries:
        package["components"] = libraries
    references = [path for path in sorted(files) if path.endswith(f".dist-info/{_AUDITWHEEL}")]
    if references:
        hashes = _hashes(files[references[0]])
        url = _AUDITWHEEL.rpartition("/")[2]
        package["externalReferences"] = [{"type": "bom", "url": url, "hashes": hashes}]
    parts = [_requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    if with_kit:
        parts.append(_backendkit(backendkit_version))
    components = sorted(parts, key=lambda one: str(one["bom-ref"]))
    wanted = [one["bom-ref"] for one in [*components, *libraries]]
    about: dict[str, Any] = {}
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", _NO_DATE))
    if seconds != _NO_DATE:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        about["timestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    tool = {"type": "application", "name": "backendkit", "version": backendkit_version}
    about.update(tools={"components": [tool]}, component=package)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": about,
        "components": components,
        "dependencies": [
            {"ref": package["bom-ref"], "dependsOn": sorted(wanted)},
            *({"ref": ref} for ref in sorted(wanted)),
        ],
    }
    return (json.dumps(document, indent=2) + "\n").encode("ascii")


def made_with(document: bytes) -> str:
    """The version of BackendKit that wrote a list."""
    (tool,) = json.loads(document)["metadata"]["tools"]["components"]
    return str(tool["version"])


def has_kit(document: bytes) -> bool:
    """Whether a list says that parts of BackendKit are in the wheel."""
    return any(one["type"] == "framework" for one in json.loads(document)["components"])


def _purl(name: str, version: str = "") -> str:
    normal = re.sub(r"[-_.]+", "-", name).lower()
    return f"pkg:pypi/{normal}" + (f"@{version}" if version else "").replace("+", "%2B")


def _hashes(data: bytes) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}]


def _is_library(data: bytes) -> bool:
    # ELF, 64-bit Mach-O and PE.
    return data[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe") or data[:2] == b"MZ"


def _library(path: str, data: bytes) -> dict[str, Any]:
    folder, _, base = path.rpartition("/")
    # auditwheel adds a hash of the contents to the names of the libraries that it copies.
    name = _HASHED.sub("", base, count=1) if folder.endswith(".libs") else base
    return {
        "type": "library",
        "bom-ref": f"file:{path}",
        "name": name,
        "hashes": _hashes(data),
        "properties": [{"name": "backendkit:path", "value": path}],
    }


def _backendkit(version: str) -> dict[str, Any]:
    """BackendKit, whose headers and templates became part of the library and of the Python."""
    return {
        "type": "framework",
        "bom-ref": _purl("backendkit", version),
        "name": "backendkit",
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "purl": _purl("backendkit", version),
    }


def _requirement(text: str) -> dict[str, Any]:
    """A package that must be installed beside this one, which does not contain it."""
    match = _REQUIREMENT.fullmatch(text.strip())
    name = match.group(1) if match else text
    return {
        "type": "library",
        "bom-ref": f"requirement:{text}",
        "name": name,
        "scope": "optional" if match and match.group(4) else "required",
        "purl": _purl(name),
        "properties": [
            {"name": "backendkit:contained", "value": "false"},
            {"name": "backendkit:requirement", "value": text},
        ],
    }
