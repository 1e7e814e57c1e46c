"""Data with a planted signal and planted noise networks, drawn where they are used."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from mnpca.noise.axis_precision import AxisPrecision

#: Sizes of the planted components; each comes as a chain and as a clique.
SIZES = (2, 3, 4, 5)


@dataclass
class Network:
    """Components of equal size are kept together: items (c x s) and precisions (c x s x s)."""

    size: int
    groups: list
    scales: np.ndarray
    """Standard deviation of every item, applied to the correlated noise."""

    @classmethod
    def plant(cls, size, share, spread, rng):
        """Link a share of the items in chains and cliques of 2 to 5.

        Partial correlations are 0.4 to 0.7 in pairs, 0.3 to 0.45 in chains, 0.6 to 0.85 over
        s - 1 in cliques of s; signs are random in pairs and chains.
        """
        order = rng.permutation(size)
        each = int(share * size / (2 * sum(SIZES)))
        groups, start = [], 0
        for s in SIZES:
            for clique in (False, True):
                items = order[start : start + each * s].reshape(each, s)
                start += each * s
                groups.append((items, _blocks(each, s, clique, rng)))
        return cls(size, groups, np.exp(spread * rng.standard_normal(size)))

    def precision(self):
        """Return the precision, scales included."""
        rows, cols, values = [np.arange(self.size)], [np.arange(self.size)], [np.ones(self.size)]
        for items, blocks in self.groups:
            c, a, b = np.nonzero(blocks * (1 - np.eye(blocks.shape[1])))
            rows.append(items[c, a])
            cols.append(items[c, b])
            values.append(blocks[c, a, b])
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols)))
        scale = sp.diags_array(1.0 / self.scales)
        return sp.csr_array(scale @ sp.csr_array(entries, shape=(self.size, self.size)) @ scale)

    def edges(self):
        """Return the edges as numbers i * size + j, i < j."""
        upper = sp.triu(self.precision(), k=1, format="coo")
        return np.asarray(upper.coords[0], np.int64) * self.size + upper.coords[1]

    def color_rows(self, noise):
        """Give the rows of white noise this network's covariance, in place."""
        room = max(2**28 // noise.shape[1], 1)
        for items, blocks in self.groups:
            roots = np.linalg.cholesky(np.linalg.inv(blocks))
            for first in range(0, len(items), max(room // items.shape[1], 1)):
                part = slice(first, first + max(room // items.shape[1], 1))
                places = torch.as_tensor(items[part], device=noise.device)
                root = torch.as_tensor(roots[part], device=noise.device, dtype=noise.dtype)
                noise[places] = root @ noise[places]
        noise *= torch.as_tensor(self.scales, device=noise.device, dtype=noise.dtype)[:, None]


def _blocks(count, size, clique, rng):
    blocks = np.tile(np.eye(size), (count, 1, 1))
    if size == 2:
        strength = rng.uniform(0.4, 0.7, count) * rng.choice([-1, 1], count)
        blocks[:, 0, 1] = blocks[:, 1, 0] = strength
    elif clique:
        strength = rng.uniform(0.6, 0.85, count) / (size - 1)
        blocks -= strength[:, None, None] * (1 - np.eye(size))
    else:
        for a in range(size - 1):
            strength = rng.uniform(0.3, 0.45, count) * rng.choice([-1, 1], count)
            blocks[:, a, a + 1] = blocks[:, a + 1, a] = strength
    return blocks


@dataclass
class Planted:
    """A matrix and its truth."""

    Y: torch.Tensor
    left: np.ndarray
    right: np.ndarray
    """Factors of signal and mean row together."""
    row: Network
    col: Network

    def squared_error(self, left, right):
        """Return the mean square of ``left right' - truth`` from the factors."""
        left = np.column_stack([left, -self.left])
        right = np.column_stack([right, self.right])
        return float(np.sum((left.T @ left) * (right.T @ right)) / (len(left) * len(right)))

    def noise_sides(self):
        """Return the true A and B."""
        return tuple(
            AxisPrecision.from_precision(side.precision()) for side in (self.row, self.col)
        )


def plant(n, p, rank, *, strength, device, seed, row_share=0.3, col_share=0.5):
    """Draw ``Y = X W' + 1 mean' + E`` with entries of X W' of size `strength` per component."""
    rng = np.random.default_rng(seed)
    row, col = Network.plant(n, row_share, 0.2, rng), Network.plant(p, col_share, 0.3, rng)
    left = np.column_stack([rng.standard_normal((n, rank)), np.ones(n)])
    right = np.column_stack([strength * rng.standard_normal((p, rank)), rng.standard_normal(p)])
    generator = torch.Generator(device=device).manual_seed(seed)
    Y = torch.randn((n, p), device=device, generator=generator)
    row.color_rows(Y)
    root = np.linalg.cholesky(np.linalg.inv(col.precision().toarray()))
    root, thin = (torch.as_tensor(part, device=device, dtype=Y.dtype) for part in (root, left))
    wide = torch.as_tensor(right, device=device, dtype=Y.dtype)
    for first in range(0, n, 65536):
        part = slice(first, first + 65536)
        Y[part] = Y[part] @ root.T + thin[part] @ wide.T
    return Planted(Y, left, right, row, col)
