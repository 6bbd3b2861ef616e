"""Student's t: how many standard errors half of a 95 % interval has."""

_FEW = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)


def quantile(freedom):
    """The quantile of 97.5 %; of more than ten degrees of freedom by a series, within 0.02 %."""
    if freedom <= len(_FEW):
        return _FEW[freedom - 1]
    return 1.96 + 2.37 / freedom + 2.82 / freedom**2 + 2.56 / freedom**3
