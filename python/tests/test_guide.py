"""The examples of docs/python.md run, and print what it says."""
import doctest

import pytest

from conftest import ROOT

for module in ("sklearn", "pandas"):
    pytest.importorskip(module)


def test_examples_of_the_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False)
    assert result.attempted > 40 and result.failed == 0
