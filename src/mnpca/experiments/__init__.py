"""The paper's tables and figures as data x method x metric, with a runner that resumes."""
