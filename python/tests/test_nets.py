"""Estimators of nets."""
import gc
import os
import pathlib
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

import drps
from conftest import clicks, write_libsvm
from drps.estimators import nets
from test_estimators import frame

MLP = "h = bag 64  # of all pixels\nh = relu h\nscore = full classes h"
FM = "a = linear\nx = embedding 4\nb = fm x\nscore = sum a b\n"
OF_FEATURES = [name for name in nets.NAMED if name not in nets._COLUMNS]
OF_CLASSES = [name for name in OF_FEATURES if nets.NAMED[name][1]]
NUMBERS = "x = numbers 64\nh = full 64 x\nh = relu h\nscore = full classes h"
IMAGES = """x = image 1 8 8
h = conv 16 3 1 1 x
h = relu h
h = pool 2 2 h
h = full 64 h
h = relu h
score = full classes h"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind, net", [(drps.NetClassifier, "mlp"), (drps.NetClassifier, "wide-deep"), (drps.NetRegressor, "mlp")])
def test_checks_of_scikit_learn(kind, net):
    estimator_checks.check_estimator(kind(net))
    estimator_checks.check_sample_weights_invariance(kind.__name__, kind(net), kind="ones")


@pytest.mark.parametrize("kind, data", [(drps.NetClassifier, load_iris), (drps.NetRegressor, load_diabetes)])
def test_the_checks_that_tags_take_out_hold_nearly(kind, data):
    X, y = data(return_X_y=True)
    model = kind(epochs=5).fit(X, y)
    score = model.decision_function if hasattr(model, "decision_function") else model.predict
    np.testing.assert_allclose(score(X[::-1])[::-1], score(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([score(x[None]) for x in X[:20]]), score(X)[:20], rtol=1e-4, atol=1e-5)


def test_names_are_those_of_the_library():
    of_matrices = drps.settings("index")["algo"].replace("lstm, ", "")  # which reads sequences: a matrix has none
    assert f"nets {', '.join(nets.NAMED)} " in of_matrices
    for name, needs in nets.NAMED.items():
        known = nets._of_text(nets._text_of(name, None), None)
        assert (known.has_fields, known.has_classes) == needs, name


def test_an_mlp_reads_digits():
    X, y = load_digits(return_X_y=True)
    X, held = X / 16, np.arange(len(y)) % 5 == 0
    model = drps.NetClassifier(MLP, lr=.05).fit(X[~held], y[~held])
    assert model.score(X[held], y[held]) > .95
    assert model.classes_.tolist() == list(range(10))
    np.testing.assert_allclose(model.predict_proba(X[held]).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("net", [NUMBERS, IMAGES])
def test_nets_of_numbers_read_digits(net):
    X, y = load_digits(return_X_y=True)
    X, held = X / 16, np.arange(len(y)) % 5 == 0
    model = drps.NetClassifier(net, lr=.05, batch_size=50).fit(X[~held], y[~held])
    assert model.score(X[held], y[held]) > .95
    assert model.training_["rows"] < 100  # none of a pixel


def test_a_net_of_images_takes_many_columns():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    X = rng.random((60, 784)) * (rng.random((60, 784)) < .1)
    X[:, :400] += y[:, None]
    assert drps.NetClassifier("lenet", epochs=3, batch_size=10).fit(X, y).score(X, y) > .9
    with pytest.raises(drps.SettingError, match="784 numbers, and the data has 783 fields"):
        drps.NetClassifier("lenet").fit(X[:, 1:], y)
    with pytest.raises(ValueError, match="784 columns are too many"):
        drps.NetClassifier("dlrm").fit(X, y)


def test_arrays_have_the_shape_of_images():
    rng = np.random.default_rng(2)
    y = np.arange(80) % 2
    first = rng.random((80, 3, 5, 6))  # channels, rows, columns
    first[y == 1, 2, :, 3] += 1
    last, flat = np.moveaxis(first, 1, -1), first.reshape(80, -1)
    for channels in ("3", "channels"):
        net = f"x = image {channels} 5 6\nh = conv 4 3 1 1 x\nh = relu h\nscore = full classes h"
        scores = []
        for X in (first, last, flat):
            model = drps.NetClassifier(net, lr=.05, epochs=3, batch_size=10).fit(X, y, eval_set=(X[:20], y[:20]))
            assert model.plan_["numbers"]
            scores.append(model.decision_function(X))
        np.testing.assert_array_equal(scores[0], scores[1])
        np.testing.assert_array_equal(scores[0], scores[2])
        with pytest.raises(ValueError, match=f"images of 5 x 6 numbers, and the net reads `image {channels} 5 6`" if channels == "3" else "90 features"):
            model.predict(first[:, 0])
        with pytest.raises(ValueError, match="images of 6 x 3 x 5 numbers"):
            drps.NetClassifier(net).fit(np.moveaxis(first, -1, 1), y)
    one = "x = image 1 5 6\nscore = full classes x"
    a, b = (drps.NetClassifier(one, epochs=2, batch_size=10).fit(X, y).decision_function(X) for X in (first[:, 0], first[:, :1]))
    np.testing.assert_array_equal(a, b)


def test_samples_of_many_numbers():
    rng = np.random.default_rng(3)
    y = np.arange(20) % 2
    X = rng.random((20, 3, 160, 150))
    X[y == 1, 1] += .5
    net = "x = image channels 160 150\nh = conv 2 10 10 0 x\nscore = full classes h"
    model = drps.NetClassifier(net, epochs=5, batch_size=5).fit(X, y)
    assert model.plan_["field_count"] == 72000 and model.score(X, y) > .9


def test_matrices_of_mostly_zeros_are_entries():
    rng = np.random.default_rng(4)
    y = np.arange(100) % 2
    X = rng.random((100, 400)) * (rng.random((100, 400)) < .02)
    X[:, 7] = y
    net = "x = numbers 400\nscore = full classes x"
    model = drps.NetClassifier(net, lr=.1, batch_size=10).fit(X, y)
    assert "numbers" not in model.plan_ and model.score(X, y) == 1
    assert drps.NetClassifier(net, epochs=1).fit(np.maximum(X, 1e-9), y).plan_["numbers"]


@pytest.mark.parametrize("net", OF_FEATURES)
def test_nets_with_a_name_learn_two_classes(net):
    X, y = load_breast_cancer(return_X_y=True)
    assert drps.NetClassifier(net).fit(X, y).score(X, y) > .94


@pytest.mark.parametrize("net", OF_CLASSES)
def test_nets_with_a_name_learn_several_classes(net):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = drps.NetClassifier(net).fit(X, names)
    assert model.score(X, names) > .9
    assert model.decision_function(X).shape == (150, 3)


@pytest.mark.parametrize("scale", [1, 1000])
@pytest.mark.parametrize("net", [*OF_FEATURES, "h = bag 16\nh = relu h\nscore = full classes h # of one\n"])
def test_nets_learn_numbers(net, scale):
    X, y = load_diabetes(return_X_y=True)
    X = X * 20
    assert drps.NetRegressor(net).fit(X, y * scale / 100).score(X, y * scale / 100) > .4


def test_one_score_is_put_in_place_of_classes():
    assert nets._one_score(MLP).splitlines() == ["h = bag 64  # of all pixels", "h = relu h", "score = full 1 h"]
    assert nets._one_score("classes = bag 4#full classes\nscore=full  classes classes").endswith("score=full  1 classes\n")


@pytest.mark.parametrize("kind", [drps.NetClassifier, drps.NetRegressor])
def test_a_net_is_a_name_a_text_or_a_path(tmp_path, kind):
    X, y = load_breast_cancer(return_X_y=True)
    path = tmp_path / "net.txt"
    path.write_text(MLP)
    of_text, of_path = (kind(net, epochs=3).fit(X, y) for net in (MLP, path))
    np.testing.assert_array_equal(of_text.predict(X), of_path.predict(X))
    assert of_text.model_.info["net"].split("#")[0] == "h = bag 64  "
    named = kind("mlp", factors=5, epochs=1).fit(X, y)
    assert "x = bag 5\n" in named.model_.info["net"]


@pytest.mark.parametrize("change, says", [
    ({"net": "deepfmm"}, "there are mlp, wide-deep, deepfm, dlrm, dcn.*pathlib.Path"), ({"net": 3}, "net=3"), ({"net": None}, "net=None"),
    ({"net": "x = bag 8\nscore = ful 1 x"}, r"^net: line 2: there is no layer `ful`"),
    ({"net": "x = bag 8\nscore = full 2 x"}, r"^net: line 2: score has 2 floats"), ({"net": MLP, "factors": 4}, "leave factors None"),
    ({"fields": [0, 1]}, "does not look at fields"), ({"net": "deepfm", "fields": [0, 1]}, "30 whole numbers"),
    ({"factors": 0}, "factors"), ({"net": "x = numbers 40\nscore = full 1 x"}, "numbers 40, and the data has 30 fields"),
    ({"optimizer": "lbfgs"}, "linear models"),
])
@pytest.mark.parametrize("kind", [drps.NetClassifier, drps.NetRegressor])
def test_what_does_not_fit_is_told_of(kind, change, says):
    with pytest.raises(ValueError, match=says):
        kind(**change).fit(*load_breast_cancer(return_X_y=True))


def test_a_file_that_is_missing_is_told_of():
    with pytest.raises(FileNotFoundError, match="missing.txt"):
        drps.NetClassifier(pathlib.Path("missing.txt")).fit(*clicks())


def test_several_classes_need_a_score_each():
    X, y = load_iris(return_X_y=True)
    for net in ("deepfm", FM):
        with pytest.raises(ValueError, match="full classes"):
            drps.NetClassifier(net).fit(X, y)
        assert drps.NetClassifier(net)._get_tags()["binary_only"]
    with pytest.raises(ValueError, match="one class"):
        drps.NetClassifier().fit(X[:50], y[:50])
    assert not drps.NetClassifier()._get_tags()["binary_only"]


def test_explanations_are_refused():
    X, y = clicks()
    with pytest.raises(ValueError, match="no sum over features"):
        drps.NetClassifier(epochs=1).fit(X, y).explain(X[:1])


def test_fields():
    X, y = clicks()
    with pytest.raises(ValueError, match="300 columns are too many"):
        drps.NetClassifier("deepfm").fit(X, y)
    model = drps.NetClassifier("deepfm", fields=np.arange(300) % 4, lr=.03).fit(X, y)
    assert model.score(X, y) > .8
    other = drps.NetClassifier("deepfm", fields=np.arange(300) // 75, lr=.03).fit(X, y)
    assert not np.array_equal(model.decision_function(X), other.decision_function(X))


def test_a_net_that_multiplies_learns_what_linear_models_do_not():
    rng = np.random.default_rng(2)
    X = np.zeros((2000, 12))
    a, b = rng.integers(0, 6, 2000), rng.integers(0, 6, 2000)
    X[np.arange(2000), a] = X[np.arange(2000), 6 + b] = 1
    y = a % 2 == b % 2
    for net in ("deepfm", FM):
        assert drps.NetClassifier(net, fields=np.arange(12) // 6, lr=.05).fit(X, y).score(X, y) > .98


def test_pickles_score_alike_whatever_is_set_since():
    X, y = load_iris(return_X_y=True)
    for net in (MLP, "dcn"):
        model = drps.NetClassifier(net, epochs=5).fit(X, y)
        expected = model.predict_proba(X)
        text = pickle.dumps(model)
        np.testing.assert_array_equal(model.set_params(net="mlp" if net == "dcn" else "dcn").predict_proba(X), expected)
        del model
        gc.collect()
        np.testing.assert_array_equal(pickle.loads(text).predict_proba(X), expected)


def test_fits_repeat_and_seeds_differ():
    X, y = load_breast_cancer(return_X_y=True)
    scores = [drps.NetClassifier("deepfm", random_state=s, epochs=3).fit(X, y).decision_function(X) for s in (None, None, 6)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


def test_nothing_is_left_behind(tmp_path):
    X, y = clicks()
    model = drps.NetRegressor("mlp", epochs=1).fit(X, y)
    assert os.path.exists(model.model_path_)
    del model
    gc.collect()
    assert not [n for n in os.listdir(tmp_path) if n.startswith("drps-")]


def test_clone_and_grid_search():
    X, y = load_iris(return_X_y=True)
    assert clone(drps.NetClassifier(MLP)).get_params()["net"] == MLP
    search = GridSearchCV(drps.NetClassifier(), {"net": ["mlp", "dcn", MLP]}, cv=3).fit(X, y)
    assert search.score(X, y) > .9


def test_an_eval_set_ends_training():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = drps.NetClassifier(epochs=300, lr=.05, patience=2).fit(X[:1000], y[:1000], eval_set=(X[1000:], y[1000:]))
    assert model.n_iter_ < 300 and len(model.history_["test_loss"]) == model.n_iter_


def test_partial_fit_goes_on():
    X, y = load_iris(return_X_y=True)
    model = drps.NetClassifier("dcn", epochs=10, lr=.03).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    model.set_params(net="mlp")
    for _ in range(3):
        model.partial_fit(X, y)
    assert model.score(X, y) > .8 and 2 in model.predict(X)
    assert "cross" in model.model_.info["net"]
    two = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.partial_fit(X, y).predict_proba(X), two.partial_fit(X, y).predict_proba(X))


def test_weights_of_samples_and_classes():
    X, y = load_iris(return_X_y=True)
    rare = np.r_[0:5, 50:150]
    for given in ({"class_weight": "balanced"}, {"class_weight": {0: 10.0}}):
        model = drps.NetClassifier(**given).fit(X[rare], y[rare])
        assert (model.predict(X[:50]) == 0).mean() > .9
    weight = np.where(y == 2, 1e-3, 1.0)
    assert (drps.NetClassifier(epochs=20).fit(X, y, sample_weight=weight).predict(X) == 2).mean() < .2


def test_frames_of_categories():
    X, y = frame()
    for net in ("deepfm", "mlp"):
        model = drps.NetClassifier(net, lr=.03, epochs=40).fit(X, y, eval_set=frame(200, 4))
        assert model.score(*frame(300, 5)) > .9
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    names = np.where(X["colour"] == "red", "r", np.where(X["city"] == "Bonn", "b", "c"))
    assert drps.NetClassifier("dlrm", lr=.03, epochs=40).fit(X, names).score(X, names) > .95


def test_files(tmp_path):
    X, y = clicks()
    path = write_libsvm(tmp_path / "d.svm", X, y)
    model = drps.NetClassifier(batch_size=100, epochs=3, settings={"format": "libsvm"}).fit(path, eval_set=path)
    other = drps.NetClassifier(batch_size=100, epochs=3).fit(X, y)
    np.testing.assert_array_equal(model.classes_, [0, 1])
    np.testing.assert_array_equal(model.predict(path), other.predict(X))
    with pytest.raises(ValueError, match="needs fields, and format libsvm has none"):
        drps.NetClassifier("deepfm", settings={"format": "libsvm"}).fit(path)


def test_files_of_several_classes(tmp_path):
    X, y = load_iris(return_X_y=True)
    with open(tmp_path / "iris.csv", "w") as file:
        file.write("a,b,c,d,label\n")
        for row, label in zip(X, y):
            file.write(",".join(map(str, row)) + f",kind{label}\n")
    model = drps.NetClassifier(epochs=100, batch_size=5, lr=.05).fit(tmp_path / "iris.csv")
    assert model.classes_.tolist() == ["kind0", "kind1", "kind2"]
    assert np.mean(model.predict(tmp_path / "iris.csv") == [f"kind{label}" for label in y]) > .9


def test_out_of_core_training_gives_the_same_model():
    X, y = clicks(4000, columns=3000, each=20)
    models = [
        drps.NetClassifier(epochs=2, batch_size=50, settings=settings).fit(X, y).decision_function(X)
        for settings in (None, {"store": "relay"}, {"store": "file"})
    ]
    np.testing.assert_array_equal(models[0], models[1])
    np.testing.assert_array_equal(models[0], models[2])
