"""The MN-PCA paper's tables and figures as data x method x metric, with a runner that resumes.

Not part of the installed package: ``python -m reproduction`` runs it from a checkout.
"""
