"""What a weight costs: each rule against the bare NumPy expression of its formula, and what `import selfpaced` costs.

    python benchmarks/core.py [--quick] [--save]

Prints the time ratio (best of several, same run) on float64 losses and the peak of extra memory, in arrays of that
size, the result included. To hold: ratio <= 1.3, and at most two temporaries beside the result.
"""

import argparse
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

from selfpaced.regularizers import get

RESULT = Path(__file__).parent / "results" / "core.md"


def tls(loss, lam):
    return np.clip(np.sqrt(2.0) * lam / np.sqrt(np.clip(loss, lam**2 / 2, 2 * lam**2)) - 1, 0, 1)


def logistic(loss, lam):
    return (1 + np.exp(-lam)) / (1 + np.exp(loss - lam))


def channel(loss, lam):
    odds = lam / (1 - lam)
    right = np.exp(-loss)
    return (1 - odds) * right / (right + odds * (1 - right))


BARE = {
    "huber": lambda loss, lam: np.where(loss <= lam**2, 0.5, lam / (2 * np.sqrt(loss))),
    "cauchy": lambda loss, lam: 1 / (1 + loss / lam**2),
    "l1l2": lambda loss, lam: 1 / (2 * np.sqrt(lam + loss)),
    "welsch": lambda loss, lam: np.exp(-loss / lam**2),
    "geman-mcclure": lambda loss, lam: (lam**2 / (lam**2 + loss)) ** 2,
    "tukey": lambda loss, lam: np.maximum(0, 1 - loss / lam**2) ** 2,
    "barron": lambda loss, lam: (1 + loss / (1.5 * lam**2)) ** -1.5,
    "tls": tls,
    "hard": lambda loss, lam: np.where(loss < lam, 1.0, 0.0),
    "linear": lambda loss, lam: np.maximum(0, 1 - loss / lam),
    "logarithmic": lambda loss, lam: np.where(loss < lam, np.log(loss + 1 - lam) / np.log(1 - lam), 0.0),
    "mixture-jiang": lambda loss, lam: np.clip(lam * (1 / np.clip(loss, lam / 2, lam) - 1 / lam), 0, 1),
    "mixture-zhao": lambda loss, lam: np.clip(lam * (1 / np.sqrt(loss) - 1 / lam), 0, 1),
    "logistic": logistic,
    "channel": channel,
}


def best_of(repeats, *calls):
    """The best processor time of each call, taken in turns so that a busy moment hits all of them."""
    times = np.full((repeats, len(calls)), np.inf)
    for row in times:
        for column, call in enumerate(calls):
            start = time.process_time()  # of this process alone: other programs do not count
            call()
            row[column] = time.process_time() - start
    return times.min(axis=0)


def peak_arrays(call, size):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (8 * size)


def import_seconds(statement, repeats):
    command = [sys.executable, "-c", statement]
    return min(_timed(command) for _ in range(repeats))


def _timed(command):
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1e6 losses and fewer repeats instead of 1e7")
    parser.add_argument("--save", action="store_true", help=f"also write {RESULT.name}")
    arguments = parser.parse_args()
    size, repeats = (10**6, 3) if arguments.quick else (10**7, 7)
    loss = np.random.default_rng(0).exponential(size=size)
    lines = [
        f"# The cost of a weight ({size:,} float64 losses, best of {repeats})",
        "",
        "| rule | ours / bare NumPy | peak extra arrays, ours | bare |",
        "|---|---|---|---|",
    ]
    for name, bare in BARE.items():
        rule, lam = get(name), 0.2 if name == "channel" else 0.8 if name != "logarithmic" else 0.5
        assert np.allclose(rule.weight(loss[:1000], lam), bare(loss[:1000], lam))
        ours, theirs = best_of(repeats, lambda r=rule, p=lam: r.weight(loss, p), lambda b=bare, p=lam: b(loss, p))
        memory = [
            peak_arrays(call, size)
            for call in (lambda r=rule, p=lam: r.weight(loss, p), lambda b=bare, p=lam: b(loss, p))
        ]
        lines.append(f"| {name} | {ours / theirs:.2f} | {memory[0]:.2f} | {memory[1]:.2f} |")
    mine = import_seconds("import selfpaced", repeats)
    peer = import_seconds("import sklearn.linear_model", repeats)
    lines += ["", f"`import selfpaced` takes {mine / peer:.2f} of the time of `import sklearn.linear_model`."]
    print("\n".join(lines))
    if arguments.save:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
