"""``selfpaced predict``."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from selfpaced.persistence import load, save


@pytest.fixture
def model(shop_run):
    return "run/model.skops"


def test_predictions_on_standard_output(selfpaced, shop, model):
    header, rows, _ = shop
    new = pd.DataFrame(rows[1:8], columns=header)[["city", "note", "income", "age"]]  # fewer columns, in another order
    new.loc[6] = ["Atlantis", "a new client", "12,000", ""]
    new.to_csv("new.csv", index=False)
    code, out, err = selfpaced("predict", model, "new.csv", "--quiet")
    assert code == 0, err
    table = pd.read_csv(io.StringIO(out))
    assert list(table.columns) == ["row", "line", "prediction", "p(no)", "p(yes)"]
    assert table["line"].tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert table["prediction"].tolist() == load(model).predict(new).tolist()
    np.testing.assert_allclose(table["p(no)"] + table["p(yes)"], 1.0, atol=1e-5)


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.parquet"])
def test_predictions_to_a_file(selfpaced, shop_csv, model, name):
    code, out, _ = selfpaced("predict", model, shop_csv, "--out", name)
    assert code == 0
    assert f"400 predictions written to {name}" in out
    read = pd.read_parquet if "parquet" in name else lambda path: pd.read_csv(path, sep="\t" if "tsv" in name else ",")
    assert len(read(name)) == 400
    assert selfpaced("predict", model, shop_csv, "--out", name)[0] == 2  # exists
    assert selfpaced("predict", model, shop_csv, "--out", name, "--force")[0] == 0


def test_values_are_predicted_without_probabilities(selfpaced, as_json, price_tsv):
    path, _ = price_tsv
    assert selfpaced("fit", path, "--target", "price", "--model", "ridge", "--no-report", "-q")[0] == 0
    rows = as_json("predict", "run/model.skops", path)["predictions"]
    assert set(rows[0]) == {"row", "line", "prediction"}
    assert abs(np.median([row["prediction"] for row in rows]) - 115_000) < 20_000


def test_a_missing_column_suggests_the_nearest(selfpaced, shop, model):
    header, rows, _ = shop
    pd.DataFrame(rows, columns=header).rename(columns={"income": "incomes"}).to_csv("new.csv", index=False)
    code, _, err = selfpaced("predict", model, "new.csv")
    assert code == 2
    assert "no column 'income', which the model was fitted on; did you mean 'incomes'?" in err


def test_a_strangers_model_is_refused(selfpaced, shop_csv, folder):
    with pytest.warns(UserWarning, match="numpy.save"):
        save(make_pipeline(FunctionTransformer(np.save), LogisticRegression()), "stranger.skops")
    code, _, err = selfpaced("predict", "stranger.skops", shop_csv)
    assert code == 4
    assert "stranger.skops was not opened: it holds" in err
    (folder / "p.skops").write_bytes(pickle.dumps(LogisticRegression()))
    code, _, err = selfpaced("predict", "p.skops", shop_csv)
    assert code == 4
    assert "looks like a pickle" in err
    code, _, err = selfpaced("predict", "absent.skops", shop_csv)
    assert code == 2
    assert "no model file 'absent.skops'" in err
