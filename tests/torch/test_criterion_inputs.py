"""What is refused, and how it is said."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn

from selfpaced.pacing import Fixed
from selfpaced.torch import SelfPacedLoss

LABELS = torch.zeros(4, dtype=torch.long)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss, nn.MSELoss, nn.BCEWithLogitsLoss])
def test_a_criterion_that_reduces(loss, reduction):
    with pytest.raises(ValueError, match=rf"reduction='none', got {loss.__name__}\(reduction='{reduction}'\)"):
        SelfPacedLoss(loss(reduction=reduction))


def test_a_function_that_reduces():
    with pytest.raises(ValueError, match=r"one loss per row, unreduced .* got shape \(\) for 4 rows"):
        SelfPacedLoss(lambda output, target: output.mean())(torch.zeros(4, 2), LABELS)


@pytest.mark.parametrize("returned", [None, [0.0] * 4])
def test_a_function_that_returns_no_tensor(returned):
    with pytest.raises(ValueError, match=f"one loss per row, unreduced .* got {type(returned).__name__} for 4 rows"):
        SelfPacedLoss(lambda output, target: returned)(torch.zeros(4, 2), LABELS)


@pytest.mark.parametrize(
    ("output", "target", "said"),
    [
        (torch.zeros(4), LABELS, r"logits must be \[B, K\]"),
        (torch.zeros(4, 1), LABELS, "at least two classes, got one.*BCEWithLogitsLoss"),
        (torch.zeros(4, 3), torch.zeros(5, dtype=torch.long), r"got logits and target \(4, 3\) and \(5,\)"),
        (torch.zeros(4, 3, 2, 2), torch.zeros(4, 2, dtype=torch.long), r"\(4, 3, 2, 2\) and \(4, 2\)"),
        (torch.zeros(4, 3), torch.zeros(4), r"integer labels .* got torch.float32 of shape \(4,\).*MSELoss"),
        (torch.zeros(4, 3), torch.zeros(4, dtype=torch.bool), "integer labels .* got torch.bool"),
        (torch.zeros(4, 3, dtype=torch.complex64), LABELS, "logits must be real numbers, got torch.complex64"),
    ],
)
def test_outputs_and_labels_that_do_not_fit(output, target, said):
    with pytest.raises(ValueError, match=said):
        SelfPacedLoss(n=10)(output, target)


@pytest.mark.parametrize("loss", [nn.BCEWithLogitsLoss, nn.MSELoss])
def test_targets_of_another_shape(loss):
    with pytest.raises(ValueError, match=r"must have one shape, got \(4, 3\) and \(4,\)"):
        SelfPacedLoss(loss(reduction="none"), n=10)(torch.zeros(4, 3), torch.zeros(4))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 0}, "n must be the number of training rows, an integer >= 1, got 0"),
        ({"n": 10.5}, "got 10.5"),
        ({"reduction": "max"}, "reduction must be 'mean', 'sum' or 'none', got 'max'"),
        ({"regularizer": "welch"}, "did you mean 'welsch'"),
        ({"regularizer": "diversity"}, "by its own loss alone, got the grouped rule 'diversity'"),
        ({"pacing": "fast"}, "pacing must be 'auto' or a Pacing of selfpaced.pacing, got 'fast'"),
        ({"trusted": 0.0}, r"trusted must be a share in \(0, 1\], got 0.0"),
        ({"trusted": 0.5, "pacing": Fixed(1.0)}, "give trusted or pacing, not both"),
        ({"label_smoothing": 1.0}, r"label_smoothing must be in \[0, 1\), got 1.0"),
        ({"criterion": nn.MSELoss(reduction="none"), "label_smoothing": 0.1}, "belong to the criterion"),
    ],
)
def test_parameters(options, said):
    with pytest.raises(ValueError, match=said):
        SelfPacedLoss(**options)


def test_a_criterion_that_is_none():
    with pytest.raises(TypeError, match="criterion must be a loss module or function"):
        SelfPacedLoss("cross_entropy")
    with pytest.raises(TypeError, match="criterion must be a loss module or function"):
        SelfPacedLoss(nn.MSELoss)


def test_weights_of_another_number_of_classes():
    with pytest.raises(ValueError, match=r"one value for each of 3 classes, got \(2,\)"):
        SelfPacedLoss(n=10, weight=torch.ones(2))(torch.zeros(4, 3), LABELS)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (torch.arange(3), r"ids must be a tensor of 4 row numbers.*got \(3,\)"),
        ([0, 1, 2, 3], "ids must be a tensor of 4 row numbers.*got list"),
        (torch.zeros(4), "ids must be a tensor of 4 row numbers"),
        (torch.tensor([0, 1, 2, -3]), r"ids must be row numbers >= 0 and < 2\*\*31, got -3"),
    ],
)
def test_ids_that_are_no_row_numbers(ids, said):
    with pytest.raises(ValueError, match=said):
        SelfPacedLoss(n=10)(torch.zeros(4, 3, requires_grad=True), LABELS, ids)


def test_weights_without_ids():
    criterion = SelfPacedLoss(n=10)
    criterion(torch.zeros(4, 3, requires_grad=True), LABELS)
    with pytest.raises(RuntimeError, match=r"weights\(\) needs row numbers: call criterion\(output, target, ids\)"):
        criterion.weights()


def logits(rows=64):
    return torch.zeros(rows, 3, requires_grad=True), torch.zeros(rows, dtype=torch.long)


def test_n_of_another_order_of_magnitude_is_warned_about_once():
    criterion = SelfPacedLoss(n=10)
    with pytest.warns(UserWarning, match="one batch holds 64 rows, but n=10"):
        criterion(*logits())
    criterion(*logits())
    much = SelfPacedLoss(n=10_000)
    much(*logits())
    with pytest.warns(UserWarning, match=r"step_epoch\(\) was called after 64 rows, but n=10000"):
        much.step_epoch()


def test_n_ten_times_too_large_is_seen_when_the_loader_restarts():
    criterion = SelfPacedLoss(n=640)
    batches = torch.arange(64).split(16)
    for ids in (*batches, batches[2]):
        criterion(*logits(16), ids)
    with pytest.warns(UserWarning, match="80 rows have passed, 64 of them different, but n=640"):
        criterion(*logits(16), batches[0])


@pytest.mark.filterwarnings("error")
def test_rows_that_are_drawn_with_replacement_are_no_restart():
    criterion, draw = SelfPacedLoss(n=200), torch.Generator().manual_seed(0)
    for _ in range(30):
        criterion(*logits(16), torch.randint(200, (16,), generator=draw))


def test_labels_of_one_class_only():
    torch.manual_seed(0)
    net, criterion = nn.Linear(4, 3), SelfPacedLoss(n=1000)
    inputs, optimizer = torch.randn(1000, 4), torch.optim.Adam(net.parameters(), 0.05)
    for _ in range(8):
        for rows in torch.arange(1000).split(100):
            optimizer.zero_grad()
            criterion(net(inputs[rows]), torch.zeros(100, dtype=torch.long)).backward()
            optimizer.step()
    assert criterion.phase == "plain"
    assert criterion.rate == 0.0


def test_without_torch_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import selfpaced, pytest\n"
        "with pytest.raises(ImportError, match=r'pip install \"selfpaced\\[torch\\]\"'): import selfpaced.torch\n"
        "with pytest.raises(ImportError, match=r'selfpaced\\[torch\\]'): selfpaced.torch\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_library_does_not_import_torch():
    code = "import sys, selfpaced; assert 'torch' not in sys.modules; selfpaced.torch; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
