"""What a batch costs and counts: torch's own losses while plain, weighted by the library's rules when paced."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn
from torch.nn import functional as F

from selfpaced.pacing import Fixed, LossSketch, Quantile, lam_at
from selfpaced.regularizers import REGISTRY, GroupRegularizer, get
from selfpaced.torch import SelfPacedLoss
from selfpaced.torch.counts import TOGETHER, Counts

# "logarithmic" is made for losses below 1: it has no pace that gives half weight to an ordinary log-loss
ROWWISE = [n for n, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer) and n != "logarithmic"]


def batch(rows=64, classes=5, seed=0, shape=()):
    draw = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, classes, *shape, generator=draw)
    return logits.requires_grad_(), torch.randint(classes, (rows, *shape), generator=draw)


def grad_of(loss, output):
    return torch.autograd.grad(loss, output)[0]


# ------------------------------------------------------------------------------------------------- while plain


@pytest.mark.parametrize("shape", [(), (7,), (4, 3)])
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"label_smoothing": 0.1}, {"ignore_index": 2}])
def test_the_first_epoch_is_cross_entropy(shape, options):
    logits, labels = batch(shape=shape)
    options = dict(options)
    if options.pop("weighted", False):
        options["weight"] = torch.tensor([0.5, 1.0, 2.0, 3.0, 0.1])
    ours, theirs = SelfPacedLoss(n=1000, **options)(logits, labels), F.cross_entropy(logits, labels, **options)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(grad_of(ours, logits), grad_of(theirs, logits))


def test_probabilities_as_targets():
    logits, _ = batch()
    target = torch.rand(64, 5, generator=torch.Generator().manual_seed(1)).softmax(1)
    ours, theirs = (
        SelfPacedLoss(n=1000, label_smoothing=0.1)(logits, target),
        F.cross_entropy(logits, target, label_smoothing=0.1),
    )
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(grad_of(ours, logits), grad_of(theirs, logits))


@pytest.mark.parametrize(
    "criterion",
    [
        nn.CrossEntropyLoss(torch.arange(1.0, 6.0), reduction="none", label_smoothing=0.05),
        nn.NLLLoss(reduction="none", ignore_index=1),
    ],
)
def test_criteria_of_labels_keep_their_settings(criterion):
    logits, labels = batch()
    logits = logits.log_softmax(1).detach().requires_grad_()
    plain = type(criterion)(criterion.weight, ignore_index=criterion.ignore_index)
    if isinstance(criterion, nn.CrossEntropyLoss):
        plain.label_smoothing = criterion.label_smoothing
    torch.testing.assert_close(SelfPacedLoss(criterion, n=1000)(logits, labels), plain(logits, labels))


def test_multi_label_targets():
    logits, _ = batch()
    target = (torch.rand(64, 5, generator=torch.Generator().manual_seed(1)) > 0.7).float()
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    ours = SelfPacedLoss(nn.BCEWithLogitsLoss(reduction="none", pos_weight=weight), n=1000)(logits, target)
    torch.testing.assert_close(ours, F.binary_cross_entropy_with_logits(logits, target, pos_weight=weight))


@pytest.mark.parametrize("loss", [nn.MSELoss, nn.L1Loss, nn.HuberLoss, nn.SmoothL1Loss])
@pytest.mark.parametrize("shape", [(32,), (32, 3), (8, 2, 5)])
def test_values(loss, shape):
    draw = torch.Generator().manual_seed(0)
    output, target = torch.randn(shape, generator=draw).requires_grad_(), torch.randn(shape, generator=draw)
    torch.testing.assert_close(SelfPacedLoss(loss(reduction="none"), n=1000)(output, target), loss()(output, target))


def test_a_function_of_the_user():
    output, labels = batch()

    def margin(output, labels):
        return F.multi_margin_loss(output, labels, reduction="none")

    torch.testing.assert_close(SelfPacedLoss(margin, n=1000)(output, labels), F.multi_margin_loss(output, labels))


def test_eval_mode_is_plain_and_counts_nothing():
    criterion = paced_criterion()
    logits, labels = batch()
    before = criterion._counts.flat.clone()
    torch.testing.assert_close(criterion.eval()(logits, labels), F.cross_entropy(logits, labels))
    assert torch.equal(criterion._counts.flat, before)


# ------------------------------------------------------------------------------------------------- while paced


def paced_criterion(**options):
    """After one epoch of a given pace."""
    criterion = SelfPacedLoss(n_classes=5, trusted=0.6, **options)
    criterion(*batch(400, seed=7))
    criterion.step_epoch()
    assert criterion.phase == "paced"
    return criterion


@pytest.mark.parametrize("name", ROWWISE)
def test_weights_are_those_of_the_rule(name):
    criterion = paced_criterion(regularizer=name)
    logits, labels = batch(400, seed=7)
    level = F.cross_entropy(logits, labels, reduction="none").detach().numpy().astype(float)
    half = np.quantile(level, 0.6, method="inverted_cdf")
    assert criterion.lam == pytest.approx(lam_at(name, half), rel=0.05)
    raw = np.asarray(get(name).relative_weight(level, criterion.lam))
    total = np.array([raw[labels == k].mean() for k in range(5)])
    expected = np.mean(raw / np.maximum(total, 0.05)[labels] * level)
    assert criterion(logits, labels).item() == pytest.approx(expected, rel=0.03)


def test_every_class_keeps_its_total_weight():
    criterion = SelfPacedLoss(trusted=0.5)
    logits, labels = batch(3000, seed=3)
    with torch.no_grad():
        logits[labels == 4] -= 4 * F.one_hot(labels[labels == 4], 5)  # a class that is hard throughout
    criterion(logits, labels)
    criterion.step_epoch()
    rows = criterion._reader.read(logits, labels, looking=False)
    weight = criterion._weights(rows)
    for k in range(5):
        assert weight[labels == k].mean().item() == pytest.approx(1.0, abs=0.05)


def test_the_gradient_is_the_weighted_one():
    criterion = paced_criterion()
    logits, labels = batch(seed=9)
    rows = criterion._reader.read(logits, labels, looking=False)
    weight = criterion._weights(rows)
    expected = grad_of((weight * F.cross_entropy(logits, labels, reduction="none")).mean(), logits)
    torch.testing.assert_close(grad_of(criterion(logits, labels), logits), expected)


def test_a_pace_of_the_library_sets_lam():
    criterion = SelfPacedLoss(pacing=Fixed(1.7))
    criterion(*batch())
    criterion.step_epoch()
    assert criterion.lam == 1.7
    rising = SelfPacedLoss(pacing=Quantile(0.3, 0.9, stages=4))
    found = []
    for _ in range(6):
        rising(*batch(2000))
        rising.step_epoch()
        found.append(rising.lam)
    assert found[0] < found[1] < found[2] < found[3] == found[4] == found[5]


def test_a_doubtful_label_is_not_held_against_a_row_that_matches_it():
    target = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    logits = torch.tensor([[0.0, 0.0], [20.0, -20.0]])
    rows = SelfPacedLoss()._reader.read(logits, target, looking=False)
    np.testing.assert_allclose(rows.level.numpy(), [0.0, 0.0], atol=1e-6)


# ------------------------------------------------------------------------------------------------- what is counted


def test_losses_are_counted_as_the_sketch_of_the_library_counts_them():
    criterion = SelfPacedLoss(n=10_000)
    logits, labels = batch(500)
    for part in torch.arange(500).split(64):
        criterion(logits[part], labels[part])
    level = F.cross_entropy(logits, labels, reduction="none").detach().numpy()
    epoch = criterion._counts.close(500)
    exact = LossSketch.of(level)
    assert epoch.losses.total == exact.total == 500
    for q in (0.1, 0.5, 0.9):
        assert epoch.losses.quantile(q) == pytest.approx(exact.quantile(q), rel=0.02)
    assert epoch.agreement[1].sum() == int((logits.argmax(1) == labels).sum())
    assert epoch.classes.sum(1).tolist() == torch.bincount(labels, minlength=5).tolist()


def test_the_order_of_rows_does_not_matter():
    logits, labels = batch(256)
    order = torch.randperm(256, generator=torch.Generator().manual_seed(1))
    counts = []
    for rows in (torch.arange(256), order):
        criterion = SelfPacedLoss(n=10_000)
        for part in rows.split(32):
            criterion(logits[part], labels[part])
        counts.append(criterion._counts.flat)
    assert torch.equal(*counts)


@pytest.mark.parametrize(
    ("n", "rows", "size"), [(1000, 1000, 128), (1000, 896, 128), (700, 1000, 64), (1400, 1000, 100)]
)
def test_a_rough_n_still_counts_epochs(n, rows, size):
    criterion = SelfPacedLoss(n=n)
    logits, labels = batch(rows)
    for _ in range(30):
        for part in torch.arange(rows).split(size):
            criterion(logits[part], labels[part])
    assert criterion.epoch == pytest.approx(30 * rows / n, abs=1)
    assert len(criterion.history) == criterion.epoch


def test_pixels_of_an_image_count_as_one_row_of_evidence():
    criterion = SelfPacedLoss()
    criterion(*batch(20, shape=(8, 8)))
    criterion.step_epoch()
    assert criterion._verdict.rows == pytest.approx(20)


def test_counts_take_less_than_a_megabyte():
    for groups in (10, 1000, 1500, 50_000):
        assert Counts(groups, torch.device("cpu")).flat.nbytes + 4 * TOGETHER < 1e6


def test_batches_wait_to_be_counted_without_the_memory_of_their_gradients():
    criterion = SelfPacedLoss(n=10**6)
    longest = 0
    for _ in range(200):
        criterion(*batch())
        waiting = criterion._counts._waiting
        assert not any(part.requires_grad for rows in waiting for part in rows if part is not None)
        longest = max(longest, sum(rows.log_p.numel() for rows in waiting))
    assert 0 < longest < TOGETHER
    assert criterion._counts.close(0).losses.total == 200 * 64


def test_more_classes_than_are_counted_one_by_one():
    criterion = SelfPacedLoss(trusted=0.5)
    for _ in range(2):
        loss = criterion(*batch(50, classes=2500))
        criterion.step_epoch()
    assert loss.isfinite()
    assert criterion._factor.numel() == 1


# ------------------------------------------------------------------------------------------------- broken rows


def test_rows_without_a_finite_loss_are_left_out_and_warned_about_once():
    criterion = SelfPacedLoss(n=64)
    logits, labels = batch()
    whole = torch.arange(64) != 3
    broken = torch.where(whole[:, None], logits, torch.nan)
    with pytest.warns(UserWarning, match="1 of 64 rows had no finite loss and were left out"):
        loss = criterion(broken, labels)
    torch.testing.assert_close(loss, F.cross_entropy(logits[whole], labels[whole]))
    assert grad_of(loss, logits).isfinite().all()
    criterion(broken, labels)  # a second warning would be an error
    assert criterion.broken == 2


def test_a_batch_of_nan_costs_nothing_and_moves_nothing():
    criterion = paced_criterion()
    lam = criterion.lam
    logits = torch.full((8, 5), torch.nan, requires_grad=True)
    loss = criterion(logits, torch.zeros(8, dtype=torch.long))
    assert loss.item() == 0.0
    assert not grad_of(loss, logits).any()
    with pytest.warns(UserWarning, match="8 of 8 rows"):
        criterion.step_epoch()
    assert criterion.lam == lam


@pytest.mark.parametrize("bad", ["output", "target"])
def test_values_that_are_nan(bad):
    output, target = torch.ones(4, 2, requires_grad=True), torch.zeros(4, 2)
    hole = torch.zeros(4, 2)
    hole[1, 0] = torch.nan
    loss = SelfPacedLoss(nn.MSELoss(reduction="none"), n=100)(
        output + hole if bad == "output" else output, target + hole if bad == "target" else target
    )
    assert loss.item() == 1.0
    assert grad_of(loss, output).isfinite().all()


def test_a_class_that_is_ruled_out_is_not_broken():
    logits = torch.tensor([[0.0, 1.0, -math.inf]])
    assert torch.isfinite(SelfPacedLoss(n=10)(logits, torch.tensor([1])))


def test_an_empty_batch():
    assert SelfPacedLoss(n=10)(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)).item() == 0.0


# ------------------------------------------------------------------------------------------------- devices


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(dtype):
    logits, labels = batch()
    loss = SelfPacedLoss(n=1000)(logits.detach().to(dtype).requires_grad_(), labels)
    assert loss.dtype == (torch.float64 if dtype is torch.float64 else torch.float32)
    assert loss.item() == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-2)


def test_autocast():
    net, criterion = nn.Linear(5, 3), paced_criterion()
    criterion = SelfPacedLoss(trusted=0.6)
    inputs, labels = torch.randn(64, 5, generator=torch.Generator().manual_seed(0)), torch.arange(64) % 3
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            loss = criterion(net(inputs), labels)
        loss.backward()
        criterion.step_epoch()
    assert loss.dtype == torch.float32
    assert net.weight.grad.isfinite().all()


@pytest.mark.parametrize("phase", ["look", "paced"])
def test_no_batch_waits_for_the_device(phase):
    """Every operation of a call on tensors without values: whatever needed a value on the host would raise."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    kinds = [
        (None, (32, 4), torch.zeros(32, dtype=torch.long), {}),
        (None, (8, 4, 5, 5), torch.zeros(8, 5, 5, dtype=torch.long), {}),
        (None, (32, 4), torch.ones(32, 4) / 4, {"label_smoothing": 0.1}),
        (nn.BCEWithLogitsLoss(reduction="none"), (32, 4), torch.zeros(32, 4), {}),
        (nn.MSELoss(reduction="none"), (32, 4), torch.zeros(32, 4), {}),
    ]
    for loss, shape, target, options in kinds:
        criterion = SelfPacedLoss(loss, trusted=0.5 if phase == "paced" else None, **options)
        criterion(torch.randn(shape), target)
        criterion.step_epoch()
        with FakeTensorMode() as mode:
            criterion._counts.place(mode.from_tensor(criterion._counts.flat))
            if criterion._factor is not None:
                criterion._factor = mode.from_tensor(criterion._factor)
            value = criterion(torch.empty(shape, requires_grad=True), mode.from_tensor(target))
            assert criterion._counts.flat.numel()  # batches that waited are counted
        assert value.shape == ()


def test_the_network_compiles_as_one_graph():
    net = nn.Linear(5, 3)
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    criterion = SelfPacedLoss(n=64)
    for _ in range(3):
        criterion(compiled(torch.randn(64, 5)), torch.arange(64) % 3).backward()
    assert criterion.epoch == 3


def test_a_compiled_step_runs():
    torch.manual_seed(0)
    net, criterion = nn.Linear(5, 3), SelfPacedLoss(n=10_000)
    inputs, labels = torch.randn(64, 5), torch.arange(64) % 3
    step = torch.compile(lambda: criterion(net(inputs), labels), backend="eager")
    torch.testing.assert_close(step(), F.cross_entropy(net(inputs), labels))


def test_gradient_accumulation_adds_up():
    logits, labels = batch(64)
    whole = grad_of(SelfPacedLoss(n=1000)(logits, labels), logits)
    criterion, parts = SelfPacedLoss(n=1000), torch.zeros_like(logits)
    for rows in torch.arange(64).split(16):
        parts += grad_of(criterion(logits[rows], labels[rows]) / 4, logits)
    torch.testing.assert_close(parts, whole)
