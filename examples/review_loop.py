"""The review loop in Python: fit, ask a person about the suspects, correct the table, fit again with the answers.

The person here knows the truth. The picture shows how many wrong labels are left after each round of answers: about
suspects of the self-paced model, and about rows drawn at random.

    python examples/review_loop.py [out.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from selfpaced import SelfPacedLogisticRegression, suspects
from selfpaced.tables import apply_decisions

ROUNDS, A_ROUND = 8, 15


def dirty_table(rate=0.15, seed=0):
    """Tumours by twelve measures, with wrong diagnoses among them, and the truth."""
    source = load_breast_cancer(as_frame=True)
    truth = source.target.map({0: "malignant", 1: "benign"}).to_numpy()
    wrong = np.random.default_rng(seed).random(truth.size) < rate
    given = np.where(wrong, np.where(truth == "benign", "malignant", "benign"), truth)
    return source.data.iloc[:, :12].assign(diagnosis=given), truth


def review(table, truth):
    """Wrong labels left after every round."""
    left, trusted = [int(np.sum(table["diagnosis"] != truth))], np.zeros(len(table), dtype=bool)
    for number in range(1, ROUNDS + 1):
        X, y = table.drop(columns="diagnosis"), table["diagnosis"].to_numpy()
        model = SelfPacedLogisticRegression().fit(X, y, trusted=trusted)
        asked = suspects(model, X, y, n=A_ROUND, all_rows=True)
        asked["decision"] = np.where(asked["given"] == truth[asked["row"]], "keep", "relabel")
        reviewed = apply_decisions(table, asked, target="diagnosis")
        table, trusted = reviewed.corrected, trusted | reviewed.confirmed
        left.append(int(np.sum(table["diagnosis"] != truth)))
        print(f"round {number}: {reviewed}; {left[-1]} wrong labels left")
    return left


def main():
    table, truth = dirty_table()
    left = review(table, truth)
    answers = A_ROUND * np.arange(ROUNDS + 1)
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.plot(answers, left, color="#0b62c4", lw=2, marker="o", label="suspects, fitted again after every round")
    axes.plot(answers, left[0] * (1 - answers / len(table)), color="#8c8c8c", ls="--", label="rows at random")
    axes.set(xlabel="answers of a person", ylabel="wrong labels left", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "review_loop.png", dpi=110)


if __name__ == "__main__":
    main()
