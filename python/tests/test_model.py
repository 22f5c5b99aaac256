"""A model in use."""
import pickle
import threading

import numpy as np
import pytest

import drps
from conftest import clicks, write_libsvm
from drps.model import bytes_of


@pytest.mark.parametrize("algo", ["lor", "svm", "fm"])
def test_scores_are_those_of_the_tool(tmp_path, tool, trained, algo):
    X, y = clicks()
    model = trained(X, y, algo, epochs=2)
    write_libsvm(tmp_path / "d.svm", X, y)
    tool("drps-predict", model, tmp_path / "d.svm", "-o", tmp_path / "scores", "-q")
    expected = np.loadtxt(tmp_path / "scores")
    with drps.Model(model) as m:
        np.testing.assert_allclose(m.score(X), expected, rtol=1e-7)
        np.testing.assert_array_equal(m.score_text((tmp_path / "d.svm").read_text()), m.score(X))
        for i in (0, 7):
            assert m.score(X[i])[0] == m.score(X)[i]


def test_raw_scores_are_log_odds(trained):
    X, y = clicks()
    m = drps.Model(trained(X, y, epochs=2))
    np.testing.assert_allclose(1 / (1 + np.exp(-m.score(X, raw=True))), m.score(X), rtol=1e-5)


def test_a_small_memory_gives_the_same_scores(trained):
    X, y = clicks()
    model = trained(X, y, epochs=2)
    np.testing.assert_array_equal(drps.Model(model).score(X), drps.Model(model, memory="64M").score(X))
    assert drps.Model(model).reads == (0, 0)


def test_threads_score_at_a_time(trained):
    X, y = clicks()
    m = drps.Model(trained(X, y, epochs=2))
    expected, found = m.score(X), {}
    threads = [threading.Thread(target=lambda i=i: found.__setitem__(i, m.score(X))) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for scores in found.values():
        np.testing.assert_array_equal(scores, expected)
    assert len(found) == 4


def test_weights_give_the_scores(trained):
    X, y = clicks()
    m = drps.Model(trained(X, y, epochs=2))
    weight, intercept = np.zeros(300), 0.0
    for row in m:
        if row.table == "bias":
            intercept = row.params[0]
        else:
            weight[int(row.name)] = row.params[0]
            np.testing.assert_array_equal(m.row(row.name), row.params)
    np.testing.assert_allclose(X @ weight + intercept, m.score(X, raw=True), rtol=1e-4, atol=1e-5)
    assert sorted(map(int, m.names())) == sorted(set(X.indices))
    table = m.weights()
    assert len(table) == m.info["rows"] and set(table.columns) == {"table", "feature", "weight"}
    with pytest.raises(drps.NotFoundError, match="nobody"):
        m.row("nobody")


def test_explanations_add_up(trained):
    X, y = clicks()
    m = drps.Model(trained(X, y, epochs=2))
    rows = m.explain(X[:5], most=3)
    assert len(rows) == 5
    for row, raw in zip(rows, m.score(X[:5], raw=True)):
        total = row["intercept"] + row["others"] + sum(f["contribution"] for f in row["features"])
        assert len(row["features"]) == 3
        assert total == pytest.approx(raw, abs=1e-5) and row["score"] == pytest.approx(raw, abs=1e-5)


def test_unseen_columns_count_as_absent(trained):
    X, y = clicks()
    m = drps.Model(trained(X[:, :250], y, epochs=2))
    np.testing.assert_allclose(m.score(X), m.score(X[:, :250]), rtol=1e-6)


def test_a_pickle_opens_the_model_again(trained, monkeypatch):
    X, y = clicks()
    path = trained(X, y, epochs=1)
    monkeypatch.chdir(path.parent)
    pickled = pickle.dumps(drps.Model(path.name, memory="64M"))
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(pickle.loads(pickled).score(X), drps.Model(path).score(X))


def test_a_closed_model_is_told_of(trained):
    m = drps.Model(trained(*clicks(), epochs=1))
    m.close()
    with pytest.raises(ValueError, match="closed"):
        m.score(clicks()[0])


@pytest.mark.parametrize("text, expected", [(None, 0), ("512M", 512 << 20), (3, 3), ("1.5G", 3 << 29), ("2k", 2048)])
def test_sizes(text, expected):
    assert bytes_of(text) == expected


@pytest.mark.parametrize("text", ["lots", "-1M", "infG"])
def test_bad_sizes(text):
    with pytest.raises(ValueError, match="memory"):
        bytes_of(text)
