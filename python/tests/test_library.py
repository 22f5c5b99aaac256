"""The library is found, its errors are exceptions, and its declarations are those of the header."""
import os
import pickle
import subprocess
import sys

import pytest

import drps
from conftest import ROOT


def test_declarations_are_those_of_the_header():
    done = subprocess.run([sys.executable, ROOT / "python" / "make_cdef.py"], capture_output=True, text=True)
    if "No such file or directory: 'cc'" in done.stderr:
        pytest.skip("there is no compiler to read the header with")
    assert done.returncode == 0, done.stderr
    assert (ROOT / "python" / "drps" / "_cdef.h").read_text() == done.stdout, "run python/make_cdef.py > python/drps/_cdef.h"


def test_version():
    assert drps.library_version().split(".")[0].isdigit()


def test_a_missing_library_is_told_of():
    done = subprocess.run(
        [sys.executable, "-c", "import drps"], capture_output=True, text=True, env={**os.environ, "DRPS_LIBRARY": "/nowhere/x.so"}
    )
    assert done.returncode != 0
    assert "/nowhere/x.so" in done.stderr and "DRPS_LIBRARY" in done.stderr


def test_settings_are_listed():
    assert "algo" in drps.settings("index")
    assert "batch_size" in drps.settings("index")
    assert "epochs" in drps.settings("train")
    assert "metrics" in drps.settings("predict")


@pytest.mark.parametrize("name, call, error, says", [
    ("no such file", lambda t: drps.index(t / "no.svm", t / "p", algo="lor"), drps.NotFoundError, "no.svm"),
    ("no such model", lambda t: drps.Model(t / "no.model"), drps.NotFoundError, "no.model"),
    ("no such setting", lambda t: drps.train(t / "p", t / "m", epoch=3), drps.SettingError, "epochs"),
    ("a bad value", lambda t: drps.train(t / "p", t / "m", epochs="many"), drps.SettingError, "many"),
    ("a bad line", lambda t: _bad_line(t), drps.DataError, "bad.svm:2"),
], ids=lambda v: v if isinstance(v, str) and " " in v else "")
def test_errors_are_exceptions(tmp_path, name, call, error, says):
    with pytest.raises(error) as caught:
        call(tmp_path)
    assert says in str(caught.value)
    assert caught.value.code < 0
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is error and str(again) == str(caught.value) and again.code == caught.value.code


def _bad_line(folder):
    (folder / "bad.svm").write_text("1 3:1\n0 x:y:z\n")
    drps.index(folder / "bad.svm", folder / "plan", algo="lor", format="libsvm")


def test_an_existing_plan_is_kept(tmp_path):
    (tmp_path / "d.svm").write_text("1 3:1\n0 4:1\n")
    drps.index(tmp_path / "d.svm", tmp_path / "plan", algo="lor")
    with pytest.raises(drps.ExistsError, match="plan"):
        drps.index(tmp_path / "d.svm", tmp_path / "plan", algo="lor")
    drps.index(tmp_path / "d.svm", tmp_path / "plan", algo="lor", force=True)


def test_too_little_memory_is_told_of(tmp_path):
    (tmp_path / "d.svm").write_text("1 3:1\n0 4:1\n")
    drps.index(tmp_path / "d.svm", tmp_path / "plan", algo="lor")
    with pytest.raises(drps.MemoryBudgetError):
        drps.train(tmp_path / "plan", tmp_path / "model", memory="1M")
