"""Compiling, training and prediction: the same as with the tools; progress, callbacks and Ctrl-C."""
import json
import os
import signal

import numpy as np
import pytest
from scipy import sparse

import drps
from conftest import clicks, write_libsvm


def content(folder):
    """The files of a folder, but for those that say when and how fast it was made."""
    return {
        name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder))
        if not name.endswith(".json") and os.path.isfile(os.path.join(folder, name))
    }


@pytest.mark.parametrize("algo, settings", [("lor", {}), ("fm", {"factors": 4}), ("svm", {})])
def test_models_are_those_of_the_tools(tmp_path, tool, algo, settings):
    X, y = clicks()
    write_libsvm(tmp_path / "d.svm", X, y)
    options = [f"--{k}={v}" for k, v in settings.items()]
    tool("drps-index", tmp_path / "d.svm", "--format", "libsvm", "--algo", algo, *options, "-o", tmp_path / "tool.plan", "--memory=1G", "-q")
    tool("drps-train", tmp_path / "tool.plan", "-o", tmp_path / "tool.model", "--epochs", 3, "--memory=1G", "-q")
    for name, data in (("files", tmp_path / "d.svm"), ("matrix", (X, y))):
        plan, model = tmp_path / f"{name}.plan", tmp_path / f"{name}.model"
        more = {"format": "libsvm"} if name == "files" else {}
        drps.index(data, plan, algo=algo, memory="1G", **settings, **more)
        drps.train(plan, model, epochs=3, memory="1G")
        assert content(plan) == content(tmp_path / "tool.plan"), name
        assert drps.describe(model)["content"] == drps.describe(tmp_path / "tool.model")["content"], name


@pytest.mark.parametrize("net", ["mlp", "deepfm"])
def test_nets_of_matrices_are_those_of_the_tools(tmp_path, tool, net):
    X, y = clicks()
    fields = np.arange(300, dtype=np.int32) % 7
    with open(tmp_path / "d.ffm", "w") as file:
        for label, row in zip(y, X):
            file.write(f"{label}" + "".join(f" {fields[c]}:{c}:{v:.9g}" for c, v in zip(row.indices, row.data)) + "\n")
    tool("drps-index", tmp_path / "d.ffm", "--algo", net, "--factors=4", "-o", tmp_path / "tool.plan", "--memory=1G", "-q")
    tool("drps-train", tmp_path / "tool.plan", "-o", tmp_path / "tool.model", "--epochs=2", "--memory=1G", "-q")
    plan, model = tmp_path / "plan", tmp_path / "model"
    drps.index(drps.Matrix(X, y, fields=fields), plan, algo=net, factors=4, memory="1G")
    drps.train(plan, model, epochs=2, memory="1G")
    assert content(plan) == content(tmp_path / "tool.plan")
    assert drps.describe(model)["content"] == drps.describe(tmp_path / "tool.model")["content"]
    assert drps.Model(model).score(drps.Matrix(X, fields=fields)).shape == (1200,)


def test_nets_that_look_at_fields_need_them(tmp_path):
    with pytest.raises(drps.SettingError, match="needs fields"):
        drps.index(clicks(), tmp_path / "plan", algo="deepfm")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_all_types_of_arrays_give_the_same_plan(tmp_path, dtype, index):
    X, y = clicks()
    drps.index((X, y), tmp_path / "usual", algo="lor")
    Z, _ = clicks(dtype=dtype, index=index)
    for labels in (np.int64, np.int32, np.uint8, np.float32, np.float64):
        drps.index((Z, y.astype(labels)), tmp_path / "plan", algo="lor", force=True)
        assert content(tmp_path / "plan") == content(tmp_path / "usual")


def test_held_out_samples(tmp_path):
    X, y = clicks()
    result = drps.index((X, y), tmp_path / "plan", test=clicks(300, seed=2), algo="lor")
    assert result["samples"] == 1200 and result["test_samples"] == 300
    trained = drps.train(tmp_path / "plan", tmp_path / "model", epochs=5)
    assert trained["epochs"][-1]["test_loss"] < trained["test_constant_loss"]


def test_weights_count_as_copies(tmp_path):
    X, y = clicks(100)
    weight = np.where(y == 1, 2.0, 1.0)
    twice = sparse.vstack([X, X[y == 1]]).tocsr()
    models = {}
    for name, data in (("weights", (X, y, weight)), ("copies", (twice, np.concatenate([y, y[y == 1]])))):
        drps.index(data, tmp_path / name, algo="lor", batch_size=1000)
        drps.train(tmp_path / name, tmp_path / (name + ".model"), epochs=20, optimizer="lbfgs", l2=1)
        models[name] = drps.Model(tmp_path / (name + ".model")).score(X, raw=True)
    np.testing.assert_allclose(models["weights"], models["copies"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name, change, says", [
    ("a column too far", lambda X: X.indices.__setitem__(5, 300), "column|index"),
    ("a negative column", lambda X: X.indices.__setitem__(5, -1), "column|index"),
    ("a start beyond the end", lambda X: X.indptr.__setitem__(-1, 10**6), ""),
    ("starts that decrease", lambda X: X.indptr.__setitem__(7, 3), ""),
    ("not a number", lambda X: X.data.__setitem__(3, np.nan), ""),
])
def test_damaged_matrices_are_refused(tmp_path, name, change, says):
    X, y = clicks()
    change(X)
    with pytest.raises((drps.Error, ValueError), match=says):
        drps.index((X, y), tmp_path / "plan", algo="lor")
    assert not (tmp_path / "plan").exists()


def test_lengths_that_differ_are_refused(tmp_path):
    X, y = clicks()
    with pytest.raises(ValueError, match="y"):
        drps.index((X, y[:-1]), tmp_path / "plan", algo="lor")


def test_progress_and_epochs_are_reported(tmp_path):
    X, y = clicks()
    seen, epochs = [], []
    drps.index((X, y), tmp_path / "plan", algo="lor", progress=lambda p: seen.append(p.phase) or False)
    drps.train(tmp_path / "plan", tmp_path / "model", epochs=4, callback=lambda e: epochs.append(e["epoch"]) or False)
    assert epochs == [1, 2, 3, 4]
    assert all(isinstance(phase, str) for phase in seen)


def test_a_callback_ends_training(tmp_path):
    X, y = clicks()
    drps.index((X, y), tmp_path / "plan", algo="lor")
    result = drps.train(tmp_path / "plan", tmp_path / "model", epochs=50, callback=lambda e: e["epoch"] == 3)
    assert len(result["epochs"]) == 3
    assert drps.Model(tmp_path / "model").score(X).shape == (1200,)


def test_an_exception_of_a_callback_comes_through(tmp_path):
    X, y = clicks()
    drps.index((X, y), tmp_path / "plan", algo="lor")

    def fail(epoch):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        drps.train(tmp_path / "plan", tmp_path / "model", epochs=50, callback=fail)


def test_interrupted_training_leaves_the_model_so_far(tmp_path):
    X, y = clicks()
    drps.index((X, y), tmp_path / "plan", algo="lor")

    def press_ctrl_c(epoch):
        if epoch["epoch"] == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        drps.train(tmp_path / "plan", tmp_path / "model", epochs=50, callback=press_ctrl_c)
    described = drps.describe(tmp_path / "model")
    assert described["training"]["interrupted"] is True
    assert len(described["training"]["epochs"]) == 2
    assert drps.Model(tmp_path / "model").score(X).shape == (1200,)


def test_prediction_of_files(tmp_path, tool, trained):
    X, y = clicks()
    model = trained(X, y, epochs=3)
    write_libsvm(tmp_path / "d.svm", X, y)
    result = drps.predict(model, tmp_path / "d.svm", tmp_path / "scores", metrics=True)
    tool("drps-predict", model, tmp_path / "d.svm", "-o", tmp_path / "tool.scores", "-q")
    assert (tmp_path / "scores").read_text() == (tmp_path / "tool.scores").read_text()
    assert result["test_samples"] == 1200 and result["test_auc"] > .9
    assert drps.predict(model, tmp_path / "d.svm", metrics=True)["test_auc"] == result["test_auc"]
    with pytest.raises(drps.ExistsError, match="force=True"):
        drps.predict(model, tmp_path / "d.svm", tmp_path / "scores")
    with pytest.raises(drps.SettingError, match="output"):
        drps.predict(model, tmp_path / "d.svm")


def test_history_and_forecast_are_arrays(tmp_path):
    X, y = clicks()
    plan = drps.index((X, y), tmp_path / "plan", algo="lor")
    result = drps.train(tmp_path / "plan", tmp_path / "model", epochs=3)
    for source in (tmp_path / "model", result, drps.describe(tmp_path / "model"), drps.Model(tmp_path / "model")):
        assert drps.history(source)["epoch"].tolist() == [1, 2, 3]
        assert np.isnan(drps.history(source)["test_loss"]).all()
    for source in (tmp_path / "plan", plan):
        assert set(drps.forecast(source)["store"]) == {"resident", "blocks", "relay"}
    with pytest.raises(ValueError, match="epochs are of a trained model; this is a plan"):
        drps.history(tmp_path / "plan")


def test_results_are_plain_json(tmp_path):
    X, y = clicks()
    json.dumps(drps.index((X, y), tmp_path / "plan", algo="lor"))


def test_a_loss_in_python_learns_what_the_built_in_one_does(tmp_path):
    X, y = clicks()
    drps.index((X, y), tmp_path / "plan", algo="lor")

    def logistic(scores, labels):
        margin = (scores * labels).astype(float)
        return np.logaddexp(0, -margin).sum(), -labels / (1 + np.exp(margin))

    drps.train(tmp_path / "plan", tmp_path / "own", epochs=3, own_loss=logistic)
    drps.train(tmp_path / "plan", tmp_path / "built", epochs=3)
    scores = [drps.Model(tmp_path / name).score(X, raw=True) for name in ("own", "built")]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3, atol=1e-3)


def test_an_exception_of_a_loss_comes_through(tmp_path):
    X, y = clicks()
    drps.index((X, y), tmp_path / "plan", algo="lor")
    with pytest.raises(ValueError, match="shape"):
        drps.train(tmp_path / "plan", tmp_path / "model", own_loss=lambda scores, labels: (1.0, np.zeros(3)))
    assert not (tmp_path / "model").exists()


def test_settings_that_there_are_not_are_told_of_in_python_s_words(tmp_path):
    with pytest.raises(drps.SettingError, match="'batchsize' of drps-index; did you mean 'batch_size'"):
        drps.index(clicks(), tmp_path / "plan", algo="lor", batchsize=3)
    with pytest.raises(drps.SettingError, match=r"drps.settings\('train'\)"):
        drps.train(tmp_path / "plan", tmp_path / "model", zzzz=3)
    with pytest.raises(drps.SettingError, match="'foo'"):
        drps.settings("foo")
