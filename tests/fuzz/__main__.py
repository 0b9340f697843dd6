"""``python -m fuzz [SUBJECT [NUMBER]] [--cases N]``, from the folder of the tests."""

from __future__ import annotations

import argparse
import sys

from .cases import SUBJECTS, findings, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("subject", nargs="?", choices=SUBJECTS)
    parser.add_argument("number", nargs="?", type=int, help="this case alone, with its traceback")
    parser.add_argument("--cases", type=int, default=10_000, help="of all subjects together (default: 10,000)")
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    args = parser.parse_args()
    if args.number is not None:
        run(args.subject, args.number)
        return 0
    subjects = [args.subject] if args.subject else list(SUBJECTS)
    each, found, tried = -(-args.cases // len(subjects)), 0, 0
    for subject in subjects:
        for finding in findings(subject, range(args.start, args.start + each)):
            found += 1
            print(finding, flush=True)
        tried += each
        print(f"{subject}: {each:,} cases", file=sys.stderr, flush=True)
    print(f"{tried:,} cases, {found:,} came out as they must not")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
