"""Strings of several columns as one bag of n-grams for each row: TF-IDF by column, one hash, one SVD."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from .cells import CellLevels

__all__ = ["JointText"]

HASHES = 1 << 15  # cost: buckets of the n-grams of all columns; eight times as many take four times as long
SHIFT = 7919  # a choice: a prime, by which the buckets of one column are moved against those of the one before
LONG = 8  # a choice: words of a cell, on average, from which words are counted and not letters
STEPS = 3  # cost: power iterations of the SVD


class JointText(BaseEstimator):
    """Strings as numbers, additive over columns.

    Each column counts alike: its cells are unit vectors of TF-IDF weights. The components of the SVD keep their sizes,
    so that the penalty of a linear model shrinks the small ones, which are mostly noise.

    Parameters
    ----------
    n_components : int
        Components of the SVD; 0 keeps the buckets, as a sparse matrix.
    random_state : int
        Of the SVD.
    """

    def __init__(self, n_components: int = 120, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, columns: dict[str, CellLevels]) -> JointText:
        """Learn the weights of the n-grams and the components.

        Parameters
        ----------
        columns : dict of str to CellLevels
            The cells of every column.

        Returns
        -------
        self
        """
        self.names_ = list(columns)
        self.long_ = [float(np.mean([text.count(" ") + 1 for text in one.texts])) >= LONG for one in columns.values()]
        self.tfidf_ = [
            TfidfTransformer(sublinear_tf=True).fit(_hashing(long).transform(levels.texts))
            for long, levels in zip(self.long_, columns.values(), strict=True)
        ]
        rows = sum(self._bag(name, levels)[levels.codes] for name, levels in columns.items())
        if not self.n_components:  # a bucket of one row only tells that row
            times = np.bincount(rows.indices, minlength=HASHES)
            self.buckets_ = np.flatnonzero(times > min(times.max() - 1, 1))
            return self
        self.svd_ = TruncatedSVD(
            min(self.n_components, min(rows.shape) - 1), n_iter=STEPS, random_state=self.random_state
        )
        self.svd_.set_output(transform="default")
        spread = float(self.svd_.fit_transform(rows).var(axis=0).sum())
        self.scale_ = float(np.sqrt(spread / len(columns))) or 1.0  # a column of text weighs as much as one of numbers
        return self

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.buckets_) if not self.n_components else len(self.svd_.components_)

    def table(self, name: str, levels: CellLevels) -> Any:
        """Return the features of every level of a column, and of a missing cell in the last row (zeros)."""
        bag = self._bag(name, levels)
        return bag[:, self.buckets_] if not self.n_components else self.svd_.transform(bag) / self.scale_

    def _bag(self, name: str, levels: CellLevels) -> Any:
        """Return the weights of a column's n-grams; the same word in another column has another bucket."""
        place = self.names_.index(name)
        bag = sparse.csr_matrix((1, HASHES), dtype=np.float32)
        if levels.texts:
            weighted = self.tfidf_[place].transform(_hashing(self.long_[place]).transform(levels.texts))
            weighted.indices = ((weighted.indices.astype(np.int64) + SHIFT * place) % HASHES).astype(np.int32)
            weighted.has_sorted_indices = False
            bag = sparse.vstack([weighted, bag], format="csr")
        return bag


def _hashing(long: bool) -> HashingVectorizer:
    grams: dict[str, Any] = {"ngram_range": (1, 2)} if long else {"analyzer": "char_wb", "ngram_range": (3, 4)}
    return HashingVectorizer(n_features=HASHES, norm=None, alternate_sign=False, dtype=np.float32, **grams)
