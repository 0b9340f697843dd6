"""Whatever a stranger hands us: a finite result of the right shape, or an error that names what is wrong.

``make fuzz`` tries 10,000 cases, the tests a few hundred. A case is drawn from its subject and number alone, so that
``python -m fuzz logistic 17`` (from ``tests/``) tries it again with its traceback.
"""
