"""Training on many devices: whole gradients, compressed ones, averaged models, stale gradients, and
evolution.

Every trainer here is a :class:`~slipstick.training.trainer.Trainer`, so the loop trains it. A
worker's job is a pure function of what it is given: whoever does it, and however often, the bits
are the same.
"""
