from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {"deployments", "flows", "tasks", "lifecycle"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in the built wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = folder.glob("afresh-*.whl")
    with ZipFile(file) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_four_packages_and_nothing_else(wheel: set[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES


def test_the_wheel_holds_every_file_of_the_packages(wheel: set[str]) -> None:
    files = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= wheel


def test_the_wheel_carries_its_licence(wheel: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel)


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_no_other_installed_distribution_provides_a_package_of_that_name(package: str) -> None:
    assert set(packages_distributions().get(package, [])) <= {"afresh"}
