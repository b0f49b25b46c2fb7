#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the wheel that carries the files of a .deb, beside it.

wheel.py FOLDER, where FOLDER has one rota_VERSION_ARCHITECTURE.deb. pip puts
programs into the bin folder of an environment, the other files of /usr below its
root, so that programs find the runtime as they do in /usr. The Debian packages
that the .deb depends on are in the wheel's metadata as Requires-External.
"""
import base64
import hashlib
import io
import pathlib
import subprocess
import sys
import tarfile
import zipfile

PLATFORMS = {"amd64": "linux_x86_64", "arm64": "linux_aarch64"}

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: Apache-2.0
{requirements}
Description-Content-Type: text/plain

{description}

The programs use libraries of the system, and a compiler driver links trainers.
On Debian 12: apt-get install {packages}
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: wheel.py
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def field(deb, name):
    return subprocess.check_output(["dpkg-deb", "-f", deb, name], text=True).strip()


def files_of(deb):
    """(path below /usr, mode, bytes) of each file."""
    archive = subprocess.check_output(["dpkg-deb", "--fsys-tarfile", deb])
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.isfile():
                path = member.name.removeprefix("./").removeprefix("usr/")
                yield path, member.mode, tar.extractfile(member).read()


def metadata(deb):
    depends = [each.strip() for each in field(deb, "Depends").split(",")]
    summary, *rest = field(deb, "Description").split("\n")
    return METADATA.format(
        name=field(deb, "Package"), version=field(deb, "Version"), summary=summary,
        requirements="\n".join(f"Requires-External: {each}" for each in depends),
        description="\n".join(line.strip() for line in rest),
        packages=" ".join(each.split()[0] for each in depends))


class WheelFile:
    """A wheel in the making, which keeps the record of its files."""

    def __init__(self, path, info):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record, self.info = [], info

    def add(self, path, content, mode=0o644):
        entry = zipfile.ZipInfo(path)  # of 1980: the same bytes each time
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
        self.record.append(f"{path},sha256={digest.decode().rstrip('=')},{len(content)}")

    def close(self):
        name = f"{self.info}/RECORD"
        self.record.append(f"{name},,")
        self.zip.writestr(zipfile.ZipInfo(name), "\n".join(self.record) + "\n")
        self.zip.close()


def main():
    folder = pathlib.Path(sys.argv[1])
    debs = list(folder.glob("*.deb"))
    if len(debs) != 1:
        sys.exit(f"wheel.py: expected one .deb in {folder}, got {len(debs)}")
    deb = debs[0]
    name = f"{field(deb, 'Package')}-{field(deb, 'Version')}"
    platform = PLATFORMS[field(deb, "Architecture")]
    path = folder / f"{name}-py3-none-{platform}.whl"
    wheel = WheelFile(path, f"{name}.dist-info")
    for file, mode, content in files_of(deb):
        is_program = file.startswith("bin/")
        place = "scripts/" + file.removeprefix("bin/") if is_program else "data/" + file
        wheel.add(f"{name}.data/{place}", content, mode)
    wheel.add(f"{name}.dist-info/METADATA", metadata(deb).encode())
    wheel.add(f"{name}.dist-info/WHEEL", WHEEL.format(platform=platform).encode())
    wheel.close()
    print(path)


main()
