"""Matrix factorization: ratings by pairs and by matrices, implicit feedback, recommendation."""
import pickle

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")
import drps


def ratings(users=40, items=25, seed=2):
    """Ratings of two groups of users, each of which likes one half of the items."""
    rng = np.random.default_rng(seed)
    u, i = np.nonzero(rng.random((users, items)) < .6)
    r = np.where((u % 2) == (i % 2), 5.0, 1.0) + rng.normal(size=len(u)) * .1
    return u, i, r


def test_ratings_of_pairs():
    u, i, r = ratings()
    X = np.array([[f"user {a}", f"item {b}"] for a, b in zip(u, i)])
    model = drps.MatrixFactorization(4, epochs=60).fit(X, r, eval_set=(X[:50], r[:50]))
    assert model.score(X, r) > .9
    assert model.predict([["user 0", "item 2"], ["user 0", "item 3"]]).round().tolist() == [5, 1]
    assert sorted(model.users_)[:2] == ["user 0", "user 1"] and len(model.items_) == 25
    assert np.isfinite(model.predict([["nobody", "item 2"], ["user 1", "nothing"]])).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert model.plan_["test_samples"] == 50


def test_a_matrix_of_ratings_gives_the_same_as_its_pairs():
    u, i, r = ratings()
    matrix = sparse.csr_matrix((r, (u, i)))
    a = drps.MatrixFactorization(4, epochs=5).fit(matrix)
    b = drps.MatrixFactorization(4, epochs=5).fit(np.column_stack([u, i]), r)
    np.testing.assert_array_equal(a.predict(np.column_stack([u, i])), b.predict(np.column_stack([u, i])))


def test_a_matrix_gives_the_model_of_the_tools(tmp_path, tool):
    u, i, r = ratings()
    r = r.astype(np.float32)
    (tmp_path / "r.tsv").write_text("".join(f"{a} {b} {c:.9g}\n" for a, b, c in zip(u, i, r)))
    tool("drps-index", tmp_path / "r.tsv", "--algo=lmf", "--factors=4", "-o", tmp_path / "plan", "-q")
    tool("drps-train", tmp_path / "plan", "-o", tmp_path / "model", "--epochs=3", "-q")
    drps.index(drps.Matrix(sparse.csr_matrix((r, (u, i)))), tmp_path / "plan2", algo="lmf", factors=4)
    drps.train(tmp_path / "plan2", tmp_path / "model2", epochs=3)
    assert drps.describe(tmp_path / "model2")["content"] == drps.describe(tmp_path / "model")["content"]


@pytest.mark.parametrize("loss", ["bpr", "warp", "wmf"])
def test_implicit_feedback(loss):
    u, i, r = ratings()
    liked = r > 3
    user_items = sparse.csr_matrix((np.ones(liked.sum(), np.float32), (u[liked], i[liked])), shape=(40, 25))
    model = drps.MatrixFactorization(8, loss=loss, epochs=50, lr=.1).fit(user_items)
    users = np.arange(40)
    items, scores = model.recommend(users, user_items, N=3)
    assert items.shape == (40, 3)
    left = np.array([sum(1 for i in range(user % 2, 25, 2) if not user_items[user, i]) for user in users])
    assert np.mean(((items % 2) == (users[:, None] % 2))[left >= 3]) > .8  # others have liked nearly all of their half
    for user in users:
        assert not set(items[user]) & set(user_items[user].indices)
    all_items, _ = model.recommend(0, user_items[0], N=3, filter_already_liked_items=False)
    assert all_items.shape == (3,)
    assert (np.diff(scores, axis=1) <= 0).all()
    similar, _ = model.similar_items(4, N=5)
    assert np.mean(similar % 2 == 0) > .7
    with pytest.raises(ValueError, match="partial_fit"):
        model.partial_fit(user_items)


def test_fewer_items_than_asked_for():
    u, i, r = ratings(items=5)
    model = drps.MatrixFactorization(2, epochs=2).fit(sparse.csr_matrix((r, (u, i))))
    items, scores = model.recommend(0, N=8)
    assert np.isfinite(scores[:5]).all() and np.isnan(scores[5:]).all()


def test_more_ratings():
    u, i, r = ratings()
    X = np.column_stack([u, i])
    first = u < 30
    model = drps.MatrixFactorization(4, epochs=4).partial_fit(X[first], r[first])
    for _ in range(15):
        model.partial_fit(X, r)
    assert len(model.users_) == 40 and model.score(X, r) > .8


def test_factors_are_arrays():
    u, i, r = ratings()
    model = drps.MatrixFactorization(4, epochs=2).fit(sparse.csr_matrix((r, (u, i))))
    assert model.user_factors_.shape == (40, 5) and model.item_factors_.shape == (25, 5)


def test_ratings_that_come_twice_count_as_their_mean():
    X = [["a", "x"], ["a", "x"], ["b", "x"], ["b", "y"]]
    model = drps.MatrixFactorization(2, epochs=1).fit(X, [1, 3, 2, 4])
    assert model.plan_["samples"] == 3


@pytest.mark.parametrize("X, y, says", [
    (np.zeros((3, 3)), np.zeros(3), "two columns"), ([["a", "b"]], [1, 2], "y has 2"), ([["a", "b"]], None, "requires y"),
    ([["a", "b"]], [np.nan], "NaN"),
])
def test_bad_ratings_are_told_of(X, y, says):
    with pytest.raises(ValueError, match=says):
        drps.MatrixFactorization().fit(X, y)


def test_unknown_users_are_told_of():
    u, i, r = ratings()
    model = drps.MatrixFactorization(2, epochs=1).fit(sparse.csr_matrix((r, (u, i))))
    with pytest.raises(KeyError, match="user"):
        model.recommend(1000)
    with pytest.raises(ValueError, match="N=0"):
        model.recommend(0, N=0)


def test_conventions_of_scikit_learn():
    """check_estimator leaves out what has no matrices of numbers, and says so; what does not fit a model holds all the same."""
    from sklearn.exceptions import NotFittedError, SkipTestWarning
    from sklearn.utils import estimator_checks as checks

    with pytest.warns(SkipTestWarning, match="categorical"):
        checks.check_estimator(drps.MatrixFactorization())
    name, model = "MatrixFactorization", drps.MatrixFactorization()
    for check in (checks.check_no_attributes_set_in_init, checks.check_get_params_invariance, checks.check_set_params):
        check(name, model)
    checks.check_parameters_default_constructible(name, model)
    with pytest.raises(NotFittedError):
        model.predict([["a", "b"]])
    with pytest.raises(NotFittedError):
        model.recommend("a")
