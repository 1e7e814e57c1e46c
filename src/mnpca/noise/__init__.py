"""The noise of one axis.

`estimate` goes from second moments to an `axis_precision`: variances, and the network. Whether an
edge is in the network is decided in `graph`, by the tests of `significance` and fits of `support`.
`edges` tests single edges afterwards, with an error rate.
"""
