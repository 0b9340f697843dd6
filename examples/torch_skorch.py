"""SelfPacedLoss in skorch: a network that is a scikit-learn estimator.

skorch sees that the criterion is a CrossEntropyLoss: ``predict_proba`` returns probabilities. Rows of a validation part
(``train_split``) have no gradient and are not counted.

    python examples/torch_skorch.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from skorch import NeuralNetClassifier
from torch import nn

from selfpaced.datasets import flip_symmetric
from selfpaced.torch import SelfPacedLoss


def main(epochs=30):
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(scale(X).astype(np.float32), y, test_size=0.3, random_state=0, stratify=y)
    given, _ = flip_symmetric(y, 0.4, random_state=0)
    scores = {}
    for name, criterion in (("cross entropy", nn.CrossEntropyLoss), ("self-paced", SelfPacedLoss)):
        torch.manual_seed(0)
        options = {"criterion__n": len(X)} if criterion is SelfPacedLoss else {}
        net = NeuralNetClassifier(
            nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)),
            criterion=criterion,
            optimizer=torch.optim.Adam,
            lr=2e-3,
            batch_size=128,
            max_epochs=epochs,
            iterator_train__shuffle=True,
            train_split=None,
            verbose=0,
            **options,
        )
        scores[name] = net.fit(X, given).score(X_test, y_test)
    return scores, net, X_test


if __name__ == "__main__":
    scores, net, _ = main()
    print({name: round(score, 3) for name, score in scores.items()})
    print(net.criterion_.termination)
