"""What the wheel holds, and that its commands run the quickstart. scripts/soak/wheel.py does the same with packages from the index."""

import zipfile

import pytest

from tests import wheel as wheels


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return wheels.build(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_packages_the_page_the_samples_and_the_licence(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("standalone/cli/worker.py", "connectors/file/source.py", "standalone/rest/ui/index.html"):
        assert part in names
    assert any(name.endswith("share/connect-standalone/connect-standalone.service") for name in names)
    assert any(name.endswith("/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "scripts/", "docs/"))]


def test_the_wheels_commands_run_the_quickstart(wheel, tmp_path):
    commands = wheels.install_beside(wheel, tmp_path / "environment")
    listed = wheels.quickstart(commands, tmp_path / "work")
    assert {name: found["connector"]["state"] for name, found in listed.items()} == {"local-file-source": "RUNNING", "local-file-sink": "RUNNING"}
