"""The training script: what PyTorch trains is what NumPy quantises (needs the extra ``train``)."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'slipstick[train]'")


def test_layers_compute_what_pytorch_computes() -> None:
    import train_digits
    from float_layers import run_float

    torch.manual_seed(0)
    network = train_digits.DigitsNetwork()
    x = np.random.default_rng(0).random((4, 8, 8, 1), dtype=np.float32)
    logits = network(torch.from_numpy(x.transpose(0, 3, 1, 2))).detach().numpy()
    layers = network.layers()
    np.testing.assert_allclose(run_float(layers, x)["logits"], logits, atol=1e-5)
    assert train_digits.count_macs(layers, x[:1]) == 252_672


def test_shift_moves_whole_images() -> None:
    import train_digits

    images = np.zeros((50, 8, 8, 1), np.float32)
    images[:, 3:5, 3:5] = 1
    moved = train_digits.shift(images, np.random.default_rng(0))
    assert np.all(moved.sum(axis=(1, 2, 3)) == 4)
    corners = {tuple(np.argwhere(image)[0][:2].tolist()) for image in moved}
    assert corners == {(y, x) for y in (2, 3, 4) for x in (2, 3, 4)}
