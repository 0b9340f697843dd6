"""The same formulas on torch and JAX arrays."""

import numpy as np
import pytest

from selfpaced.regularizers import REGISTRY, GroupRegularizer, from_loss, get

ELEMENTWISE = [name for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer)]
LOSS = np.array([0.0, 0.05, 0.3, 0.7, 2.0, 30.0])


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_torch_equals_numpy(torch, name):
    rule, lam = get(name), 0.4
    for method in (rule.latent, rule.weight, rule.relative_weight):
        values = method(torch.from_numpy(LOSS), lam)
        assert isinstance(values, torch.Tensor)
        np.testing.assert_allclose(values.numpy(), method(LOSS, lam), rtol=1e-9, atol=1e-12)
        assert method(torch.from_numpy(LOSS.astype(np.float32)), lam).dtype == torch.float32
    weight = rule.weight(LOSS, lam)
    duals = rule.dual(torch.from_numpy(weight), lam).numpy()
    np.testing.assert_allclose(duals, rule.dual(weight, lam), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_autograd_flows_through_the_latent_loss(torch, name):
    rule, lam = get(name), 0.4
    loss = torch.tensor(LOSS, requires_grad=True)
    rule.latent(loss, lam).sum().backward()
    np.testing.assert_allclose(loss.grad.numpy(), rule.weight(LOSS, lam), rtol=1e-6, atol=1e-9)


def test_torch_losses_are_validated(torch):
    with pytest.raises(ValueError, match=r"got -1\.0 at position 1"):
        get("welsch").weight(torch.tensor([0.0, -1.0]), 1.0)


def test_a_torch_function_becomes_a_rule_by_autodiff(torch):
    rule = from_loss(lambda loss, lam: lam**2 * (1 - torch.exp(-loss / lam**2)))
    assert rule.derivative == "autodiff"
    assert rule.opens == 1
    np.testing.assert_allclose(rule.weight(LOSS, 1.3), get("welsch").weight(LOSS, 1.3), rtol=1e-12)
    tensor = torch.tensor(LOSS, requires_grad=True)
    rule.latent(tensor, 1.3).sum().backward()
    np.testing.assert_allclose(tensor.grad.numpy(), get("welsch").weight(LOSS, 1.3), rtol=1e-9)


def test_a_numpy_free_formula_is_differentiated_by_torch_on_tensors(torch):
    rule = from_loss(lambda loss, lam: lam * loss / (lam + loss))
    weight = rule.weight(torch.from_numpy(LOSS), 2.0)
    np.testing.assert_allclose(weight.numpy(), (2 / (2 + LOSS)) ** 2, rtol=1e-12)


def test_jax_equals_numpy():
    jnp = pytest.importorskip("jax.numpy", reason="jax is not installed")
    for name in ELEMENTWISE:
        values = get(name).weight(jnp.asarray(LOSS), 0.4)
        np.testing.assert_allclose(np.asarray(values), get(name).weight(LOSS, 0.4), rtol=1e-4, atol=1e-6)
