"""Nets: layers over embeddings, as docs/nets.md has them."""
from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple, Optional

import numpy as np

from .. import tools
from .._matrix import Matrix
from ..errors import SettingError
from ._base import DrpsEstimator, Samples
from ._folder import Folder
from ._labels import Classes, Numbers
from .factorization import MOST_FIELDS, fields_of_columns
from .linear import _documented, _STEPS

#: Nets that the library has, and whether each looks at fields, and has a score for each class.
NAMED = {
    "mlp": (False, True), "wide-deep": (True, False), "deepfm": (True, False), "dlrm": (True, True), "dcn": (True, True),
    "lenet": (True, True), "alexnet": (True, True),
}
#: Channels, rows and columns of the images that a net reads; None: as many channels as the data have.
_OF_IMAGES = {"lenet": (1, 28, 28), "alexnet": (None, 224, 224)}
#: How many columns data must have at least: two, or the numbers of an image.
_COLUMNS = {name: (channels or 1) * rows * columns for name, (channels, rows, columns) in _OF_IMAGES.items()}
_MOST_NUMBERS = 1 << 22  # of a sample

_NET = """
    net : str or pathlib.Path
        The name of a net: "mlp", "deepfm", "wide-deep", "dlrm", "dcn", "lenet" or "alexnet". A string with a ``=`` is the text of a net, a line a
        layer; a path is a file with such a text. ``docs/nets.md`` has the language.
    factors : int, optional
        Length of the embeddings of a net with a name. None is 16. A text has this number itself.
    fields : array of shape (n_features,), optional
        The field of each column, from 0, for nets that look at fields: all but "mlp", and texts with `embedding`, `numbers` or
        `image`.
        None: each column is a field of its own, as a column of a table is. Columns of a DataFrame with categories are fields,
        too.
    l2 : float
        Penalty of features' weights and factors, added with every sample that has the feature. `dropout` is for the net.
"""
_START = """
    init_scale : float, optional
        Factors start between minus and plus this.
"""

_PRODUCTS = "products of matrices differ in the last bits of a float with the place of a sample among others"


class _Text(NamedTuple):
    """What a net is: its name or its text, and what it needs to be given."""

    name: Optional[str]
    text: Optional[str]
    path: Optional[str]
    has_fields: bool
    has_classes: bool
    has_features: bool = True  # weights or factors of their own, for each field those of its columns
    image: Optional[tuple] = None  # as in _OF_IMAGES; None: it reads no image


def _layers(text: str) -> list[list[str]]:
    """The words behind the ``=`` of each line. What is wrong with a line is for the library to say."""
    lines = (line.partition("#")[0].partition("=")[2].split() for line in text.splitlines())
    return [words for words in lines if words]


def _read(net: Any) -> _Text:
    """A net as the user has given it."""
    if isinstance(net, os.PathLike):
        path = os.fspath(net)
        with open(path, encoding="utf-8", errors="replace") as file:
            return _of_text(file.read(), str(path))
    if not isinstance(net, str):
        raise ValueError(f"net={net!r}: a name, the text of a net or a pathlib.Path is needed")
    if "=" in net:
        return _of_text(net, None)
    if net not in NAMED:
        raise ValueError(
            f"net={net!r}: no net has this name; there are {', '.join(NAMED)}. "
            "The text of a net has a `=` in each line, and a file is given as a pathlib.Path"
        )
    return _Text(net, None, None, *NAMED[net], has_features=net not in _COLUMNS, image=_OF_IMAGES.get(net))


def _of_text(text: str, path: Optional[str]) -> _Text:
    layers = _layers(text)
    return _Text(
        None, text, path, any(words[0] in ("embedding", "numbers", "image") for words in layers),
        any(words[:2] == ["full", "classes"] for words in layers),
        any(words[0] in ("embedding", "bag", "linear") for words in layers),
        next((_image_of(words) for words in layers if words[0] == "image"), None),
    )


def _image_of(words: list[str]) -> Optional[tuple]:
    """The shape in a line `image C H W`; None where it has none, which the library then says."""
    sizes = words[1:4]
    if len(sizes) < 3 or not all(size.isdigit() for size in sizes[1:]) or not (sizes[0].isdigit() or sizes[0] == "channels"):
        return None
    return (int(sizes[0]) if sizes[0].isdigit() else None, int(sizes[1]), int(sizes[2]))


def _flat(X: Any, image: Optional[tuple]) -> Any:
    """Images as rows of numbers, channel after channel, as the library reads them; other data as they are."""
    shape = X.shape[1:] if isinstance(X, np.ndarray) else ()
    if image is None or len(shape) < 2:
        return X
    channels, sides = image[0], image[1:]
    first = len(shape) == 3 and shape[1:] == sides and channels in (None, shape[0])
    last = len(shape) == 3 and shape[:2] == sides and channels in (None, shape[2])
    if not first and not last and (shape != sides or channels not in (None, 1)):
        raise ValueError(
            f"X: images of {' x '.join(map(str, shape))} numbers, and the net reads `image {channels or 'channels'} {sides[0]} {sides[1]}`: "
            "arrays have the samples, then channels, rows and columns, or rows, columns and channels"
        )
    return (np.moveaxis(X, -1, 1) if last and not first else X).reshape(len(X), -1)


def _one_score(text: str) -> str:
    """The text with one score in place of one for each class, which is what regression needs."""
    lines = []
    for line in text.splitlines():
        layer, mark, comment = line.partition("#")
        name, equals, words = layer.partition("=")
        if words.split()[:2] == ["full", "classes"]:
            words = words.replace("classes", "1", 1)
        lines.append(name + equals + words + mark + comment)
    return "\n".join(lines) + "\n"


@functools.lru_cache
def _text_of(name: str, factors: Optional[int]) -> str:
    """The text of a net that the library has, as a plan of two samples shows it."""
    folder = Folder()
    columns = _COLUMNS.get(name, 2)
    data = Matrix(np.eye(2, columns), np.array([0, 1]), fields=np.arange(columns))
    plan: dict = tools.index(data, os.path.join(folder.path, "plan"), algo=name, factors=factors)
    return plan["net"]


class _Nets(DrpsEstimator):
    """What both share. They differ in their labels."""

    factors: Optional[int]
    fields: Any
    net: Any
    l2: float
    init_scale: Optional[float]
    _task = "classification"
    _xfail = {
        **DrpsEstimator._xfail, "check_methods_sample_order_invariance": _PRODUCTS, "check_methods_subset_invariance": _PRODUCTS,
    }
    _net: Optional[_Text] = None  # that was fitted; the parameter may have been set anew

    def _known(self) -> _Text:
        return self._net or _read(self.net)

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("_net", None)

    def _samples(self, X: Any, y: Any, weight: Any, eval_set: Any, first: bool, all_labels: Any = None) -> Samples:
        if first:
            net = _read(self.net)
            if net.text is not None and self.factors is not None:
                raise ValueError(f"factors={self.factors!r}: the text of a net has the length of its embeddings: leave factors None")
            self._net = net
        return super()._samples(X, y, weight, eval_set, first, all_labels)

    def _checked(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        return super()._checked(_flat(X, self._known().image), y, first)

    def _matrix(self, X: Any) -> Matrix:
        return super()._matrix(_flat(X, self._known().image))

    def _algorithm(self) -> dict[str, Any]:
        net = self._known()
        one_score = self._task == "regression" and net.has_classes
        if net.name is not None and not one_score:
            return {"algo": net.name, "factors": self.factors, "task": self._task}
        path = net.path
        if path is None or one_score:
            text = net.text if net.text is not None else _text_of(str(net.name), self.factors)
            path = self._net_path()
            with open(path, "w", encoding="utf-8") as file:
                file.write(_one_score(text) if one_score else text)
        return {"algo": "net", "net": path, "task": self._task}

    def _net_path(self) -> str:
        return os.path.join(self._folder.path, "net.txt")

    def _run(self, samples: Samples, index: dict, learning: dict) -> None:
        """A mistake in a text is told of by its line, without the file that the text was written to."""
        path = self._net_path()
        try:
            super()._run(samples, index, learning)
        except SettingError as why:
            if path not in str(why):
                raise
            raise SettingError(str(why).replace(path, "net"), why.code) from None

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        return {"l2": self.l2 or None, "init_scale": self.init_scale}

    def _fields(self) -> Any:
        columns = getattr(self, "n_features_in_", None)
        if columns is None:
            return None
        if self._known().has_fields:
            return fields_of_columns(self.fields, columns, MOST_FIELDS if self._known().has_features else _MOST_NUMBERS)
        if self.fields is not None:
            raise ValueError("fields: this net does not look at fields: leave them out, or take one with `embedding`")
        return None


def _of_nets(cls: type) -> type:
    """A decorator: the parameters that both have are put in place of NET, START and COMMON."""
    cls.__doc__ = (cls.__doc__ or "").replace("    NET\n", _NET.lstrip("\n")).replace("    START\n", _START.lstrip("\n"))
    return _documented(_STEPS)(cls)


@_of_nets
class NetClassifier(Classes, _Nets):
    """A net for classes: layers over embeddings of features.

    Nets with `full classes`, as "mlp", "dlrm" and "dcn" are, take any number of classes; the others take two.

    Parameters
    ----------
    NET
    class_weight : {None, "balanced"} or dict
    START
    COMMON

    Attributes
    ----------
    classes_, model_, training_, history_, n_iter_ : as of LogisticRegression

    Examples
    --------
    >>> from drps import NetClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(NetClassifier("h = bag 32\\nh = relu h\\nscore = full classes h").fit(X, y).score(X, y) > .9)
    True
    """

    def __init__(
        self, net: Any = "mlp", *, factors: Optional[int] = None, fields: Any = None, l2: float = 0.0, class_weight: Any = None,
        init_scale: Optional[float] = None, epochs: Optional[int] = None, optimizer: str = "adagrad", lr: Any = None,
        batch_size: Optional[int] = None, patience: Optional[int] = None, validation_fraction: Optional[float] = None,
        scale: Optional[str] = "auto", memory: Any = None, threads: int = 1, random_state: Any = None, verbose: bool = False,
        work_dir: Any = None, settings: Optional[dict] = None,
    ) -> None:
        self.net = net
        self.factors = factors
        self.fields = fields
        self.l2 = l2
        self.class_weight = class_weight
        self.init_scale = init_scale
        self.epochs = epochs
        self.optimizer = optimizer
        self.lr = lr
        self.batch_size = batch_size
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.scale = scale
        self.memory = memory
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose
        self.work_dir = work_dir
        self.settings = settings

    @property
    def _binary_only(self) -> bool:  # type: ignore[override]
        return not self._known().has_classes

    def _set_classes(self, classes: np.ndarray) -> None:
        try:
            super()._set_classes(classes)
        except ValueError as why:
            if len(classes) < 3:
                raise
            raise ValueError(f"{why} The net has one score; end it with `score = full classes NAME`, or take mlp, dlrm or dcn") from None

    def _coded(self, code: np.ndarray) -> np.ndarray:
        """Several classes are numbers from 10: no labels of two classes are, so they are names."""
        coded = super()._coded(code)
        return coded + 10 if len(self.classes_) > 2 else coded

    def _algorithm(self) -> dict[str, Any]:
        return {**super()._algorithm(), "class_weights": self._class_weights(self.class_weight)}

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : as of :meth:`fit`

        Returns
        -------
        numpy.ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)


@_of_nets
class NetRegressor(Numbers, _Nets):
    """A net for numbers: layers over embeddings of features.

    Its score is one number: `full classes`, as in "mlp", is `full 1` here.

    Parameters
    ----------
    NET
    START
    COMMON

    Attributes
    ----------
    model_, training_, history_, n_iter_ : as of LogisticRegression

    Examples
    --------
    >>> import numpy as np
    >>> from drps import NetRegressor
    >>> X = np.linspace(-1, 1, 400)[:, None]; y = np.abs(X[:, 0])
    >>> bool(NetRegressor().fit(X, y).score(X, y) > .95)
    True
    """

    _task = "regression"

    def __init__(
        self, net: Any = "mlp", *, factors: Optional[int] = None, fields: Any = None, l2: float = 0.0,
        init_scale: Optional[float] = None, epochs: Optional[int] = None, optimizer: str = "adagrad", lr: Any = None,
        batch_size: Optional[int] = None, patience: Optional[int] = None, validation_fraction: Optional[float] = None,
        scale: Optional[str] = "auto", memory: Any = None, threads: int = 1, random_state: Any = None, verbose: bool = False,
        work_dir: Any = None, settings: Optional[dict] = None,
    ) -> None:
        self.net = net
        self.factors = factors
        self.fields = fields
        self.l2 = l2
        self.init_scale = init_scale
        self.epochs = epochs
        self.optimizer = optimizer
        self.lr = lr
        self.batch_size = batch_size
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.scale = scale
        self.memory = memory
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose
        self.work_dir = work_dir
        self.settings = settings

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        """AdaGrad's steps are as long as its rate: the usual one, 0.01, grows with the cube root of the labels' spread, as a score
        is a product of the weights of some three layers."""
        learning = super()._learning(n)
        if self.lr is None and self.optimizer == "adagrad" and n is not None and self._spread > 0:
            learning["lr"] = 0.01 * max(1.0, self._spread ** (1 / 3))
        return learning
