"""Scorers for scikit-learn's model selection: how well a simple membership attack does on each setting.

They are for comparing settings, and never for a release. A model that is chosen because it scored best in an audit of
its own training records is chosen on noise as well: of many settings the best-looking one looks better than it is, and
the attack here is a weak one, without shadow models. Choose with a scorer if you like, then audit the model that you
chose with :func:`leakgauge.audit`, on holdout records that took no part in the choice.

scikit-learn gives a scorer the fitted estimator and the test part of a split, and not what the estimator was trained
on. So a scorer is made with all records and the same ``cv``: it knows a split by the content of its test part, takes
the training part for members and the test part for non-members, and refuses records that are no test part.
"""

from leakgauge.scorers.membership import Scorer, negative_membership_advantage, negative_membership_auc

__all__ = ["Scorer", "negative_membership_advantage", "negative_membership_auc"]
