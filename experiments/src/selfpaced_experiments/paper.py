"""The figures of the paper's tables, as printed.

Fan, He, Liang, Hu, "Self-Paced Learning: an Implicit Regularization Perspective" (AAAI 2017), section 4.
"""

from __future__ import annotations

from selfpaced_experiments.results import Published

__all__ = ["CLASSIFICATION", "CLUSTERING", "FACTORIZATION", "METRICS", "RULES"]

#: Rules of the paper's tables: the name in the library and the name in the paper.
RULES = {
    "hard": "SPL-hard",
    "mixture": "SPL-mixture",
    "huber": "SPL-IR-huber",
    "l1l2": "SPL-IR-L1-L2",
    "cauchy": "SPL-IR-cauchy",
    "welsch": "SPL-IR-welsch",
}

METRICS = ("ACC", "NMI", "AR", "F-score", "Purity")


def _row(names: tuple[str, ...], text: str) -> dict[str, Published]:
    """Read ``mean(std) mean(std) ...`` or plain means, in the order of the names."""
    read = {}
    for name, word in zip(names, text.split(), strict=True):
        mean, _, std = word.rstrip(")").partition("(")
        read[name] = Published(float(mean), float(std) if std else None)
    return read


_METHODS = ("LR", *RULES.values())


def _classification(**rows: str) -> dict[str, dict[str, Published]]:
    by_set = {name: _row(_METHODS, text) for name, text in rows.items()}
    return {method: {name: by_set[name][method] for name in rows} for method in _METHODS}


#: Noise rate -> method -> data set -> accuracy in percent.
CLASSIFICATION: dict[float, dict[str, dict[str, Published]]] = {
    0.0: _classification(
        Breast="97.36(2.22) 97.54(2.22) 98.25(1.65) 98.77(1.19) 97.90(1.79) 98.42(1.54) 98.25(1.65)",
        Spambase="92.35(1.47) 92.63(1.08) 92.83(1.44) 93.05(1.25) 93.00(1.36) 93.09(1.41) 93.13(1.34)",
        Svmguide1="95.39(0.95) 95.39(0.95) 95.51(1.04) 95.57(0.95) 95.57(1.10) 95.65(1.01) 95.68(0.90)",
    ),
    0.2: _classification(
        Breast="92.08(2.96) 96.13(2.15) 96.66(2.12) 96.84(2.33) 94.72(2.89) 97.54(1.90) 97.89(1.63)",
        Spambase="89.28(1.66) 89.81(1.61) 90.76(1.82) 90.92(1.65) 90.09(1.65) 90.85(1.55) 91.37(1.37)",
        Svmguide1="91.52(0.65) 92.72(1.12) 93.81(0.79) 93.54(0.75) 92.83(0.71) 93.88(1.05) 94.37(0.90)",
    ),
}

#: Method -> RMSE and MAE, means of 50 realizations (the paper gives no spread).
FACTORIZATION: dict[str, dict[str, Published]] = {
    "PRMF": _row(("RMSE", "MAE"), "0.1528 0.0994"),
    "SPL-hard": _row(("RMSE", "MAE"), "0.0949 0.0672"),
    "SPL-mixture": _row(("RMSE", "MAE"), "0.0625 0.0475"),
    "SPL-IR-huber": _row(("RMSE", "MAE"), "0.0627 0.0476"),
    "SPL-IR-L1-L2": _row(("RMSE", "MAE"), "0.0650 0.0493"),
    "SPL-IR-cauchy": _row(("RMSE", "MAE"), "0.0620 0.0472"),
    "SPL-IR-welsch": _row(("RMSE", "MAE"), "0.0596 0.0455"),
}

#: Method -> ACC, NMI, AR, F-score, purity, over 20 runs.
CLUSTERING: dict[str, dict[str, Published]] = {
    method: _row(METRICS, text)
    for method, text in {
        "FOU": "0.612(0.066) 0.628(0.029) 0.484(0.049) 0.539(0.043) 0.645(0.051)",
        "FAC": "0.588(0.044) 0.597(0.017) 0.453(0.031) 0.512(0.027) 0.631(0.032)",
        "KAR": "0.734(0.062) 0.730(0.030) 0.634(0.055) 0.672(0.049) 0.767(0.048)",
        "MOR": "0.415(0.014) 0.500(0.003) 0.295(0.004) 0.374(0.003) 0.475(0.004)",
        "PIX": "0.677(0.059) 0.701(0.031) 0.585(0.050) 0.629(0.045) 0.711(0.047)",
        "ZER": "0.524(0.033) 0.504(0.016) 0.369(0.024) 0.434(0.021) 0.551(0.022)",
        "Con-MC": "0.775(0.078) 0.773(0.037) 0.690(0.066) 0.722(0.058) 0.802(0.059)",
        "SPL-hard": "0.821(0.059) 0.758(0.029) 0.709(0.050) 0.739(0.044) 0.834(0.045)",
        "SPL-mixture": "0.845(0.068) 0.812(0.030) 0.763(0.057) 0.787(0.051) 0.861(0.050)",
        "MSPL": "0.840(0.070) 0.806(0.035) 0.751(0.064) 0.776(0.057) 0.854(0.054)",
        "SPL-IR-huber": "0.843(0.070) 0.810(0.035) 0.756(0.064) 0.781(0.057) 0.858(0.053)",
        "SPL-IR-L1-L2": "0.835(0.068) 0.801(0.034) 0.743(0.061) 0.769(0.054) 0.849(0.052)",
        "SPL-IR-cauchy": "0.845(0.071) 0.814(0.035) 0.762(0.064) 0.786(0.057) 0.861(0.053)",
        "SPL-IR-welsch": "0.862(0.071) 0.833(0.035) 0.790(0.064) 0.812(0.057) 0.878(0.053)",
    }.items()
}
