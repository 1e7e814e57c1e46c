"""The loops that fit the model. They know arrays and nothing of estimators."""
