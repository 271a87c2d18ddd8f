"""Writes gp_reference.txt: what scikit-learn says of Gaussian processes with a Matern-5/2 kernel.

usage: python3 gp_reference.py > gp_reference.txt      (scikit-learn 1.9.1, numpy 2.4.6)

Per case: sizes n d m, then as lines of numbers: length-scales; variance and noise; inputs (n x d, row
by row); outputs (n); new inputs (m x d); mean (m); standard deviation (m, of the function); log
likelihood; its gradient by the logarithms of length-scales, variance, noise; the highest log likelihood
that ten restarts of its own optimiser find within the bounds of the C++ code.
"""

import numpy
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel


def line(values):
    print(" ".join(repr(float(v)) for v in numpy.ravel(values)))


def kernel_of(lengths, variance, noise, bounds):
    fixed = "fixed" if bounds is None else None
    return ConstantKernel(variance, fixed or bounds[1]) * Matern(
        lengths, fixed or bounds[0], nu=2.5
    ) + WhiteKernel(noise, fixed or bounds[2])


def case(seed, n, d, m, noise):
    rng = numpy.random.default_rng(seed)
    inputs, new = rng.random((n, d)), rng.random((m, d))
    weights = rng.normal(size=d)
    outputs = numpy.sin(3 * inputs @ weights) + (inputs**2) @ weights
    outputs = (outputs - outputs.mean()) / outputs.std()
    lengths, variance = rng.uniform(0.2, 1.5, d), rng.uniform(0.5, 2)
    # alpha: what scikit-learn adds to the diagonal in any case.
    gp = GaussianProcessRegressor(kernel_of(lengths, variance, noise, None), alpha=0, optimizer=None)
    gp.fit(inputs, outputs)
    mean, deviation = gp.predict(new, return_std=True)
    # It counts the noise of WhiteKernel in the deviation of new outputs.
    deviation = numpy.sqrt(numpy.maximum(deviation**2 - noise, 0))
    # theta of a kernel is ordered as it is written: variance, length-scales, noise.
    bounds = ((0.01, 100), (0.001, 100), (1e-7, 0.01))
    free = kernel_of(lengths, variance, noise, bounds)
    gp_free = GaussianProcessRegressor(free, alpha=0, optimizer=None).fit(inputs, outputs)
    likelihood, gradient = gp_free.log_marginal_likelihood(free.theta, eval_gradient=True)
    best = GaussianProcessRegressor(free, alpha=0, n_restarts_optimizer=10, random_state=1)
    best.fit(inputs, outputs)
    print(n, d, m)
    for values in (lengths, (variance, noise), inputs, outputs, new, mean, deviation, likelihood):
        line(values)
    line(numpy.concatenate([gradient[1:-1], gradient[:1], gradient[-1:]]))
    line(best.log_marginal_likelihood_value_)


for arguments in ((1, 2, 2, 3, 1e-4), (2, 6, 1, 4, 1e-3), (3, 20, 3, 5, 1e-5), (4, 40, 6, 5, 1e-2)):
    case(*arguments)
