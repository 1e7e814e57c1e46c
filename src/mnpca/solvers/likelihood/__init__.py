"""The likelihood algorithm of the paper: blocks of one penalized objective."""
