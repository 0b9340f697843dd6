"""What a batch costs and counts: torch's own losses while plain, weighted by the library's rules when paced."""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn
from torch.nn import functional as F

from selfpaced.pacing import Fixed, Geometric, LossSketch, Quantile, lam_at
from selfpaced.regularizers import REGISTRY, GroupRegularizer, get
from selfpaced.torch import SelfPacedLoss

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
    """Rows weigh less the larger their residual is beside the median; with a given pace the first epoch is plain."""
    draw = torch.Generator().manual_seed(0)
    output, target = torch.randn(shape, generator=draw).requires_grad_(), torch.randn(shape, generator=draw)
    given = SelfPacedLoss(loss(reduction="none"), n=1000, trusted=0.5)
    torch.testing.assert_close(given(output, target), loss()(output, target))
    square = (output - target).detach().square().reshape(len(output), -1).mean(1)
    each = loss(reduction="none")(output, target).reshape(len(output), -1).mean(1)
    expected = ((1 + square / square.median()).rsqrt() * each).mean()
    automatic = SelfPacedLoss(loss(reduction="none"), n=1000)
    automatic(output, target)
    torch.testing.assert_close(automatic(output, target), expected)


def test_a_function_of_the_user():
    output, labels = batch()

    def margin(output, labels):
        return F.multi_margin_loss(output, labels, reduction="none")

    torch.testing.assert_close(SelfPacedLoss(margin, n=1000)(output, labels), F.multi_margin_loss(output, labels))


def rows_counted(criterion):
    """Labels that the criterion has counted since its first epoch, for a criterion that ends no epoch by itself."""
    criterion.step_epoch()
    return criterion.evidence[1].sum()


@pytest.mark.parametrize("validate", ["eval", "no_grad", "detached"])
def test_rows_without_a_gradient_get_the_plain_loss_and_are_not_counted(validate):
    criterion, (logits, labels) = SelfPacedLoss(), batch()
    criterion(logits, labels)
    state = criterion.state_dict()["_extra_state"]
    if validate == "eval":
        loss = criterion.eval()(logits, labels)
    elif validate == "no_grad":
        with torch.no_grad():
            loss = criterion(logits, labels)
    else:
        loss = criterion(logits.detach(), labels)
    torch.testing.assert_close(loss, F.cross_entropy(logits, labels))
    assert torch.equal(criterion.state_dict()["_extra_state"], state)
    assert rows_counted(criterion.train()) == 64


def test_validation_between_the_epochs_changes_nothing(digits, network, train, accuracy):
    """The same training, and one whose validation passes through the same criterion."""
    nets, criteria = [], []
    for validates in (False, True):
        criterion, net = SelfPacedLoss(n=len(digits["X"])), network(64, 10)
        for epoch in range(10):
            train(net, digits["X"], digits["given"], criterion, 1, seed=epoch)
            if validates:
                with torch.no_grad():
                    criterion(net(digits["X_test"]), digits["y_test"])
        nets.append(net)
        criteria.append(criterion)
    assert repr(criteria[0].history) == repr(criteria[1].history)
    assert all(torch.equal(a, b) for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(), (4, 3)])
def test_reductions(reduction, shape):
    logits, labels = batch(shape=shape)
    ours = SelfPacedLoss(n=10**6, reduction=reduction)(logits, labels)
    torch.testing.assert_close(ours, F.cross_entropy(logits, labels, reduction=reduction))


def test_losses_that_are_all_zero_keep_the_pace():
    for pacing in (Geometric(), Quantile(0.5, 0.9)):
        criterion = SelfPacedLoss(nn.MSELoss(reduction="none"), pacing=pacing)
        for _ in range(3):
            criterion(torch.zeros(8, 1, requires_grad=True), torch.zeros(8, 1))
            criterion.step_epoch()
        assert criterion.lam > 0


def test_one_criterion_for_heads_of_different_width_is_refused():
    criterion = SelfPacedLoss(n=1000)
    criterion(*batch(classes=5))
    with pytest.raises(ValueError, match="outputs of width 5 and now gets 3: give each head a SelfPacedLoss"):
        criterion(*batch(classes=3))


# ------------------------------------------------------------------------------------------------- while paced


def weights_of(criterion, logits, labels):
    """The weights of a batch, class factors included."""
    criterion.reduction = "none"
    return (criterion(logits, labels) / F.cross_entropy(logits, labels, reduction="none")).detach()


def paced_criterion(**options):
    """After one epoch of a given pace."""
    criterion = SelfPacedLoss(trusted=0.6, **options)
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
    weight = weights_of(criterion, logits, labels)
    for k in range(5):
        assert weight[labels == k].mean().item() == pytest.approx(1.0, abs=0.05)


def test_the_gradient_is_the_weighted_one():
    criterion = paced_criterion()
    logits, labels = batch(seed=9)
    weight = weights_of(criterion, logits, labels)
    expected = grad_of((weight * F.cross_entropy(logits, labels, reduction="none")).mean(), logits)
    criterion.reduction = "mean"
    torch.testing.assert_close(grad_of(criterion(logits, labels), logits), expected)


def test_the_mean_weight_of_every_rule_grows_along_the_paper_s_pace():
    """L1-L2 too, whose raw weight opens as lam falls: here weights are relative to their maximum."""
    for name in ("l1l2", "welsch", "cauchy"):
        criterion = SelfPacedLoss(nn.MSELoss(reduction="none"), name, pacing=Geometric(mu=1.3, fraction=0.4))
        output, means = torch.randn(500, 1, generator=torch.Generator().manual_seed(0)).requires_grad_(), []
        for _ in range(6):
            criterion.reduction = "mean"
            criterion(output, torch.zeros(500, 1), torch.arange(500))
            criterion.step_epoch()
            criterion(output, torch.zeros(500, 1), torch.arange(500))
            means.append(criterion.weights().mean())
        assert means[0] == pytest.approx(0.4, abs=0.03)
        assert all(a < b for a, b in itertools.pairwise(means))


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
    criterion = SelfPacedLoss(pacing=Fixed(0.1))
    for _ in range(2):
        criterion(logits.requires_grad_(), target, torch.arange(2))
        criterion.step_epoch()
    np.testing.assert_allclose(criterion.weights(), [1.0, 1.0], atol=1e-4)


# ------------------------------------------------------------------------------------------------- what is counted


def test_agreement_is_counted_by_confidence():
    criterion = SelfPacedLoss()
    logits, labels = batch(500)
    for part in torch.arange(500).split(64):
        criterion(logits[part], labels[part])
    criterion.step_epoch()
    contradict, agree = criterion.evidence[1]
    assert agree.sum() == int((logits.argmax(1) == labels).sum())
    assert contradict.sum() + agree.sum() == 500
    p = logits.detach().softmax(1).max(1).values
    odds = np.repeat(criterion.evidence[0], (contradict + agree).astype(int))
    np.testing.assert_allclose(odds, np.sort(torch.logit(p).numpy()).clip(0.125), atol=0.13)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_the_pace_is_read_from_all_losses_of_the_epoch(q):
    criterion = SelfPacedLoss(regularizer="hard", trusted=q)
    logits, labels = batch(500)
    for part in torch.arange(500).split(64):
        criterion(logits[part], labels[part])
    criterion.step_epoch()
    level = F.cross_entropy(logits, labels, reduction="none").detach().numpy()
    assert criterion.lam == pytest.approx(LossSketch.of(level).quantile(q), rel=0.03)


def test_the_order_of_rows_does_not_matter():
    logits, labels = batch(256)
    order = torch.randperm(256, generator=torch.Generator().manual_seed(1))
    counts = []
    for rows in (torch.arange(256), order):
        criterion = SelfPacedLoss(n=10_000)
        for part in rows.split(32):
            criterion(logits[part], labels[part])
        counts.append(criterion.state_dict()["_extra_state"])
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
    assert criterion.evidence[1].sum() == pytest.approx(20)


def test_some_pixels_of_a_large_batch_are_counted():
    criterion, (logits, labels) = SelfPacedLoss(regularizer="hard", trusted=0.7), batch(20, shape=(64, 64))
    criterion(logits, labels)
    criterion.step_epoch()
    level = F.cross_entropy(logits, labels, reduction="none").detach().numpy().ravel()
    assert criterion.lam == pytest.approx(np.quantile(level, 0.7), rel=0.1)


def test_the_state_takes_less_than_a_megabyte():
    for groups in (10, 1000, 1500, 50_000):
        criterion = SelfPacedLoss(n=10**6)
        criterion(*batch(2, classes=groups))
        assert criterion.state_dict()["_extra_state"].nbytes < 1e6


def test_batches_wait_to_be_counted_and_none_is_lost():
    criterion = SelfPacedLoss()
    for _ in range(200):
        criterion(*batch())
    assert rows_counted(criterion) == 200 * 64


def test_more_classes_than_are_counted_one_by_one():
    criterion = SelfPacedLoss(trusted=0.5)
    for _ in range(2):
        loss = criterion(*batch(50, classes=2500))
        criterion.step_epoch()
    assert loss.isfinite()


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
    assert loss.item() == pytest.approx(0.5**0.5)  # three rows of one residual, at half its square
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
    kinds = [
        (None, (32, 4), torch.zeros(32, dtype=torch.long), {}),
        (None, (8, 4, 5, 5), torch.zeros(8, 5, 5, dtype=torch.long), {}),
        (None, (32, 4), torch.ones(32, 4) / 4, {"label_smoothing": 0.1}),
        (nn.BCEWithLogitsLoss(reduction="none"), (32, 4), torch.zeros(32, 4), {}),
        (nn.MSELoss(reduction="none"), (32, 4), torch.zeros(32, 4), {}),
    ]
    for loss, shape, target, options in kinds:
        criterion = SelfPacedLoss(loss, trusted=0.5 if phase == "paced" else None, **options)
        criterion(torch.randn(shape, requires_grad=True), target)
        criterion.step_epoch()
        value = criterion(torch.empty(shape, device="meta", requires_grad=True), target.to("meta"))
        assert value.device.type == "meta"
        assert value.shape == ()


def test_the_network_compiles_as_one_graph():
    net = nn.Linear(5, 3)
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    criterion = SelfPacedLoss(n=64)
    for _ in range(3):
        criterion(compiled(torch.randn(64, 5)), torch.arange(64) % 3).backward()
    assert criterion.epoch == 3


@pytest.mark.filterwarnings("ignore")  # the compiler warns about itself
@pytest.mark.parametrize("loss", [None, nn.MSELoss(reduction="none"), nn.BCEWithLogitsLoss(reduction="none")])
def test_a_step_with_the_criterion_compiles_as_one_graph(loss):
    """And gives what it gives without the compiler, in all phases."""
    torch.manual_seed(0)
    inputs, labels = torch.randn(64, 5), torch.arange(64) % 3
    target = labels if loss is None else nn.functional.one_hot(labels).float()
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        net, criterion = nn.Linear(5, 3), SelfPacedLoss(loss, n=64, trusted=0.7)

        def step(inputs, target, ids, net=net, criterion=criterion):
            return criterion(net(inputs), target, ids)

        step = torch.compile(step, backend="aot_eager", fullgraph=True) if compiles else step
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(4):
            optimizer.zero_grad()
            step(inputs, target, torch.arange(64)).backward()
            optimizer.step()
        found.append((net.weight.detach(), criterion.weights(), criterion.epoch, criterion.lam))
    torch.testing.assert_close(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)
    assert found[0][2:] == pytest.approx(found[1][2:])


def test_gradient_accumulation_adds_up():
    logits, labels = batch(64)
    whole = grad_of(SelfPacedLoss(n=1000)(logits, labels), logits)
    criterion, parts = SelfPacedLoss(n=1000), torch.zeros_like(logits)
    for rows in torch.arange(64).split(16):
        parts += grad_of(criterion(logits[rows], labels[rows]) / 4, logits)
    torch.testing.assert_close(parts, whole)
