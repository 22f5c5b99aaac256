"""Estimators as scikit-learn's users expect them."""
import copy
import gc
import os
import pickle
import signal

import numpy as np
import pytest

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import drps
from conftest import clicks, write_libsvm
from drps.estimators import _folder

CLASSIFIERS = [drps.LogisticRegression, drps.SGDClassifier, drps.LinearSVC, drps.FMClassifier, drps.FFMClassifier]
REGRESSORS = [drps.LinearRegression, drps.SGDRegressor, drps.FMRegressor]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS, ids=lambda k: k.__name__)
def test_checks_of_scikit_learn(kind):
    estimator_checks.check_estimator(kind())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS, ids=lambda k: k.__name__)
def test_the_check_that_a_tag_takes_out_holds_for_weights_of_one(kind):
    estimator_checks.check_sample_weights_invariance(kind.__name__, kind(), kind="ones")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [drps.LogisticRegression, drps.LinearRegression], ids=lambda k: k.__name__)
def test_a_weight_of_zero_leaves_a_sample_out(kind):
    X, y = load_iris(return_X_y=True)
    keep = np.arange(150) % 3 > 0
    left = kind(settings={"tolerance": 1e-7}).fit(X[keep], y[keep])
    zero = kind(settings={"tolerance": 1e-7}).fit(X, y, sample_weight=keep.astype(float))
    np.testing.assert_allclose(left.predict(X), zero.predict(X), rtol=1e-2, atol=1e-3)


def test_logistic_regression_has_the_optimum_of_scikit_learn():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = drps.LogisticRegression(C=.5, epochs=500).fit(X, y)
    theirs = linear_model.LogisticRegression(C=.5, tol=1e-8, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=5e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)
    np.testing.assert_allclose(ours.decision_function(X), X @ ours.coef_[0] + ours.intercept_[0], atol=1e-4)


def test_softmax_regression_has_the_optimum_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = drps.LogisticRegression(epochs=500).fit(X, y)
    theirs = linear_model.LogisticRegression(tol=1e-8, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-2)


def test_linear_regression_has_the_optimum_of_ridge():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = drps.LinearRegression(alpha=3, epochs=500).fit(X, y)
    theirs = linear_model.Ridge(alpha=3).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=.1)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-4)


def test_too_few_epochs_for_the_optimum_are_told_of():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="100 epochs"):
        drps.LogisticRegression().fit(X, y)


def test_no_step_at_all_is_told_of(monkeypatch):
    result = {"ended": "stalled", "epochs": [{"accepted": 1}, {"accepted": 0}]}
    monkeypatch.setattr(drps.tools, "train", lambda *_, **__: result)
    with pytest.warns(ConvergenceWarning, match="nothing was learnt; scale the data"):
        drps.LogisticRegression().fit(*clicks())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda k: k.__name__)
def test_defaults_learn_classes(kind):
    X, y = load_breast_cancer(return_X_y=True)
    assert kind().fit(X, y).score(X, y) > .92


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [k for k in CLASSIFIERS if not k._binary_only], ids=lambda k: k.__name__)
def test_defaults_learn_several_classes(kind):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = kind().fit(X, names)
    assert model.score(X, names) > .9
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.decision_function(X).shape == (150, 3)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("scale", [1, 1000])
@pytest.mark.parametrize("kind, least", [(drps.LinearRegression, .5), (drps.SGDRegressor, .35), (drps.FMRegressor, .2)], ids=lambda k: str(k))
def test_defaults_learn_numbers(kind, least, scale):
    X, y = load_diabetes(return_X_y=True)
    assert kind().fit(X * 20, y * scale / 100).score(X * 20, y * scale / 100) > least


def test_dense_and_sparse_data_of_one_kind_give_one_model():
    X, y = clicks()
    sparse_one = drps.SGDClassifier().fit(X, y)
    dense_one = drps.SGDClassifier().fit(X.toarray(), y)
    np.testing.assert_array_equal(sparse_one.predict_proba(X), dense_one.predict_proba(X.toarray()))


def test_coefficients_are_in_units_of_the_data():
    X, y = load_breast_cancer(return_X_y=True)
    model = drps.SGDClassifier().fit(X, y)
    assert model._scaler.shift is not None
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_[0], model.decision_function(X), rtol=1e-3, atol=1e-3)


def test_fits_repeat_and_seeds_differ():
    X, y = clicks()
    scores = [drps.FMClassifier(random_state=seed, epochs=3).fit(X, y).decision_function(X) for seed in (None, None, 5, 5, 6)]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[2], scores[3])
    assert not np.array_equal(scores[2], scores[4])


@pytest.mark.parametrize("limit", [_folder.PICKLE_BYTES, 0], ids=["bytes", "path"])
def test_pickles_score_alike(monkeypatch, limit):
    monkeypatch.setattr(_folder, "PICKLE_BYTES", limit)
    X, y = clicks()
    model = drps.LogisticRegression().fit(X, y)
    expected = model.predict_proba(X)
    text = pickle.dumps(model)
    del model
    gc.collect()
    np.testing.assert_array_equal(pickle.loads(text).predict_proba(X), expected)
    np.testing.assert_array_equal(copy.deepcopy(pickle.loads(text)).predict_proba(X), expected)


def test_temporary_folders_go_with_the_object(tmp_path):
    X, y = clicks()
    model = drps.LogisticRegression().fit(X, y)
    path = model.model_path_
    assert os.path.isdir(path)
    model.fit(X, y)
    assert not os.path.exists(path)
    del model
    gc.collect()
    assert not [n for n in os.listdir(tmp_path) if n.startswith("drps-")]


def test_a_work_dir_keeps_the_model(tmp_path):
    X, y = clicks()
    model = drps.LogisticRegression(work_dir=tmp_path / "kept").fit(X, y)
    path, expected = model.model_path_, model.predict_proba(X)[:, 1]
    del model
    gc.collect()
    np.testing.assert_array_equal(drps.Model(path).score(X), expected)


def test_clone_and_grid_search():
    X, y = clicks()
    assert clone(drps.FMClassifier(factors=3)).get_params()["factors"] == 3
    search = GridSearchCV(drps.LogisticRegression(), {"C": [1e-4, 1]}, cv=3).fit(X, y)
    assert search.best_params_ == {"C": 1} and search.score(X, y) > .9
    assert cross_val_score(make_pipeline(StandardScaler(with_mean=False), drps.LinearSVC()), X, y, cv=2).mean() > .8


def test_two_processes_search(tmp_path):
    X, y = clicks(400)
    search = GridSearchCV(drps.LogisticRegression(), {"C": [.1, 1]}, cv=2, n_jobs=2).fit(X, y)
    assert search.score(X, y) > .9


def test_an_eval_set_measures_epochs_and_ends_training():
    X, y = clicks(2000)
    model = drps.FMClassifier(epochs=200, lr=.5, patience=2).fit(X[:1000], y[:1000], eval_set=(X[1000:], y[1000:]))
    assert model.n_iter_ < 200
    assert len(model.history_["test_loss"]) == model.n_iter_
    assert np.nanargmin(model.history_["test_loss"]) < model.n_iter_ - 1
    held = drps.FMClassifier(epochs=3, validation_fraction=.2).fit(X, y)
    assert held.plan_["test_samples"] > 200


def test_patience_without_held_out_samples_is_refused():
    X, y = clicks()
    with pytest.raises(ValueError, match="eval_set"):
        drps.FMClassifier(patience=2).fit(X, y)
    assert drps.FMClassifier(patience=2, settings={"test_fraction": .1}).fit(X, y).n_iter_ > 0
    assert drps.FMClassifier(patience=2, validation_fraction=.1).fit(X, y).n_iter_ > 0


def test_partial_fit_goes_on():
    X, y = clicks(3000)
    model = drps.SGDClassifier()
    for begin in range(0, 3000, 1000):
        model.partial_fit(X[begin : begin + 1000], y[begin : begin + 1000], classes=[0, 1])
        if begin == 0:
            first = model.score(X, y)
    assert model.score(X, y) > max(.8, first)


def test_partial_fit_keeps_columns_that_come_no_more():
    X, y = clicks(1000)
    model = drps.SGDClassifier().partial_fit(X, y)
    before = model.coef_[0].copy()
    few = X.copy()
    few.data[few.indices >= 150] = 0
    few.eliminate_zeros()
    model.partial_fit(few, y)
    np.testing.assert_array_equal(model.coef_[0][150:], before[150:])
    assert not np.array_equal(model.coef_[0][:150], before[:150])


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda k: k.__name__)
def test_partial_fit_may_begin_with_one_class(kind):
    X, y = clicks()
    model = kind(**({"fields": np.arange(300) % 3} if kind is drps.FFMClassifier else {}))
    model.partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    for _ in range(5):
        model.partial_fit(X, y)
    assert model.score(X, y) > .7


def test_partial_fit_of_several_classes_may_begin_with_two():
    X, y = load_iris(return_X_y=True)
    for model, least in ((drps.SGDClassifier(epochs=10), .8), (drps.SGDClassifier("hinge", epochs=10), .6)):
        model.partial_fit(X[:100], y[:100], classes=[0, 1, 2])
        assert model.decision_function(X).shape == (150, 3)
        for _ in range(3):
            model.partial_fit(X, y)
        assert model.score(X, y) > least and 2 in model.predict(X)


def test_partial_fit_goes_on_after_pickling():
    X, y = clicks()
    one, two = drps.SGDClassifier().partial_fit(X, y), None
    two = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.partial_fit(X, y).coef_, two.partial_fit(X, y).coef_)
    fitted = pickle.loads(pickle.dumps(drps.SGDClassifier().fit(X, y)))
    with pytest.raises(ValueError, match="pickled after fit"):
        fitted.partial_fit(X, y)


def frame(n=600, seed=3):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
        "city": rng.choice(["Bonn", "Ulm, Danube", 'the "Pott"'], n),
        "price": rng.normal(100, 30, n),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), "h"),
    })
    X.loc[::50, "price"] = np.nan
    y = np.where((X["colour"] == "red") ^ (X["city"] == "Bonn"), "yes", "no")
    return X, y


def test_frames_of_categories_and_dates():
    X, y = frame()
    for kind in (drps.FMClassifier(lr=.1, epochs=60), drps.FFMClassifier(lr=.2, epochs=60)):
        model = kind.fit(X, y, eval_set=frame(200, 4))
        assert model.score(*frame(300, 5)) > .9
        assert model.feature_names_in_.tolist() == ["colour", "city", "price", "day"]
    assert model.plan_["test_samples"] == 200
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert any(f["feature"].startswith("city") for f in model.explain(X[:3])[0]["features"])
    with pytest.raises(AttributeError, match="weights"):
        drps.LogisticRegression(optimizer="adagrad").fit(X, y).coef_


def test_line_breaks_in_texts_of_frames_are_blanks():
    X, y = frame()
    model = drps.FMClassifier(epochs=2).fit(X.assign(city=X["city"].str.replace(" ", "\r\n")), y)
    np.testing.assert_array_equal(model.decision_function(X), drps.FMClassifier(epochs=2).fit(X, y).decision_function(X))
    X["city"] = X["city"].str.replace(" ", "\n").astype("category")
    assert model.decision_function(X).shape == y.shape
    assert any("Ulm, Danube" in f["feature"] for row in model.explain(X[:20]) for f in row["features"])


def test_frames_with_weights_and_more_samples():
    X, y = frame()
    model = drps.LogisticRegression(optimizer="adagrad", epochs=5)
    model.fit(X, y, sample_weight=np.where(y == "yes", 100.0, 1.0))
    assert (model.predict(X) == "yes").mean() > .9
    more = drps.FMClassifier(lr=.1, epochs=10).partial_fit(X, y)
    for _ in range(3):
        more.partial_fit(X, y)
    assert more.score(X, y) > .8


@pytest.mark.parametrize("name", ["a,b", "a:b", "drps_label", 3])
def test_frames_whose_names_cannot_be_written_are_refused(name):
    X, y = frame()
    with pytest.raises((ValueError, TypeError), match="column|string"):
        drps.FMClassifier().fit(X.rename(columns={"city": name}), y)


def test_frames_of_numbers_name_their_columns():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = drps.SGDClassifier().fit(X, y)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert {f["feature"] for f in model.explain(X[:1])[0]["features"]} == set(X.columns)


def test_files_are_fitted_without_python(tmp_path):
    X, y = clicks()
    path = write_libsvm(tmp_path / "d.svm", X, y)
    model = drps.SGDClassifier(batch_size=100, epochs=3, settings={"format": "libsvm"}).fit(path, eval_set=path)
    other = drps.SGDClassifier(batch_size=100, epochs=3).fit(X, y)
    np.testing.assert_array_equal(model.classes_, [0, 1])
    np.testing.assert_array_equal(model.predict(path), other.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    assert model.plan_["test_samples"] == 1200
    with pytest.raises(ValueError, match="leave y"):
        model.fit(path, y)


def test_files_of_several_classes(tmp_path):
    X, y = load_iris(return_X_y=True)
    with open(tmp_path / "iris.csv", "w") as file:
        file.write("a,b,c,d,label\n")
        for row, label in zip(X, y):
            file.write(",".join(map(str, row)) + f",kind{label}\n")
    for loss in ("logistic", "hinge"):
        model = drps.SGDClassifier(loss, epochs=100, batch_size=5, settings={"algo": "mlr" if loss == "logistic" else "svm"})
        model.fit(str(tmp_path / "iris.csv"))
        assert model.classes_.tolist() == ["kind0", "kind1", "kind2"]
        assert np.mean(model.predict(str(tmp_path / "iris.csv")) == [f"kind{label}" for label in y]) > (.9 if loss == "logistic" else .6)


def test_out_of_core_training_gives_the_same_model():
    X, y = clicks(4000, columns=3000, each=20)
    models = [
        drps.FMClassifier(epochs=2, batch_size=50, settings=settings).fit(X, y).decision_function(X)
        for settings in (None, {"store": "relay"}, {"store": "file"})
    ]
    np.testing.assert_array_equal(models[0], models[1])
    np.testing.assert_array_equal(models[0], models[2])
    memory = drps.FMClassifier(epochs=2, batch_size=50, memory="256M").fit(X, y)
    np.testing.assert_array_equal(models[0], memory.decision_function(X))


def test_class_weights():
    X, y = clicks()
    X, y = X[y < 2], np.where(y == 1, "a", "b")
    rare = np.concatenate([np.flatnonzero(y == "a")[:30], np.flatnonzero(y == "b")])
    plain, balanced, by_name = (
        drps.LogisticRegression(class_weight=w).fit(X[rare], y[rare]).predict(X)
        for w in (None, "balanced", {"a": (len(rare) - 30) / 30.0})
    )
    assert (plain == "a").sum() < (balanced == "a").sum()
    assert (plain == "a").sum() < (by_name == "a").sum()
    with pytest.raises(ValueError, match="none of the classes"):
        drps.LogisticRegression(class_weight={"z": 2}).fit(X, y)


@pytest.mark.parametrize("change, says", [
    ({"C": 0}, "C=0"), ({"scale": "much"}, "scale"), ({"settings": {"epoch": 3}}, "epoch"), ({"lr": "fast"}, "lr"),
    ({"optimizer": "adamax"}, "adamax"), ({"class_weight": "some"}, "class_weight='some'"),
])
def test_bad_parameters_are_told_of(change, says):
    with pytest.raises(ValueError, match=says):
        drps.LogisticRegression(**change).fit(*clicks())


def test_texts_of_documents_are_no_files():
    with pytest.raises(ValueError, match="TfidfVectorizer"):
        drps.SGDClassifier().fit(["good film", "bad film"], [1, 0])


def test_a_rate_can_be_chosen_by_trials():
    X, y = clicks()
    model = drps.SGDClassifier(lr="auto", epochs=3).fit(X, y)
    assert model.training_["optimizer"]["lr"] > 0


def test_models_that_are_not_fitted_are_told_of():
    with pytest.raises(NotFittedError):
        drps.FMClassifier().model_
    with pytest.raises(NotFittedError):
        drps.LogisticRegression().coef_


def test_ctrl_c_leaves_the_model_so_far(monkeypatch):
    X, y = clicks()
    model = drps.SGDClassifier(epochs=100)
    train = drps.tools.train
    monkeypatch.setattr(drps.tools, "train", lambda *a, **k: train(
        *a, **k, callback=lambda e: e["epoch"] == 3 and signal.raise_signal(signal.SIGINT)))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_iter_ == 3 and model.score(X, y) > .8


def test_fields_are_checked():
    X, y = clicks()
    with pytest.raises(ValueError, match="fields"):
        drps.FFMClassifier().fit(X, y)
    with pytest.raises(ValueError, match="fields"):
        drps.FFMClassifier(fields=[0, 1]).fit(X, y)
    assert drps.FFMClassifier(fields=np.arange(300) % 4).fit(X, y).score(X, y) > .8
