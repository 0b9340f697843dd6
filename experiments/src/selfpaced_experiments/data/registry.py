"""The data files the library knows: names, checksums, shapes and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MFEAT", "SPAMBASE", "SVMGUIDE1", "DataFile"]


@dataclass(frozen=True)
class DataFile:
    """One published file.

    Parameters
    ----------
    name : str
        Path below a data directory, with forward slashes.
    sha256 : str
        Checksum of the bytes.
    values_sha256 : str
        Checksum of the parsed values (little-endian float64, row by row). A copy with other line endings or
        spacing has other bytes and the same values, and is as good.
    shape : tuple of int
        Rows and columns of the parsed table, the label column included.
    kind : str
        ``"csv"``, ``"whitespace"`` or ``"svmlight"``.
    openml : int or None
        OpenML's id of the data set, where it has one.
    url : str or None
        The publisher's address, used where OpenML has none.
    """

    name: str
    sha256: str
    values_sha256: str
    shape: tuple[int, int]
    kind: str
    openml: int | None = None
    url: str | None = None


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"

SPAMBASE = DataFile(
    name="spambase.data",
    sha256="ebec58cfca94ea61c77df632314acae15bad410f4769d38b1a66cb41050e3431",
    values_sha256="706f0f74d9834f661de15274da6727d81955b258cdd7c50a4d80d15f15e5e5b4",
    shape=(4601, 58),
    kind="csv",
    openml=44,
)

SVMGUIDE1 = (
    DataFile(
        name="svmguide1",
        sha256="2b9ab55b6236f62cee6b7739b52f9e7cb033771f39b9c22c1f1790d80ef14d7f",
        values_sha256="2f59d65e383655868e59f72d5cc9745d5b9fb8e0d9d1bfef300b08624a5ebf97",
        shape=(3089, 5),
        kind="svmlight",
        url=_LIBSVM + "svmguide1",
    ),
    DataFile(
        name="svmguide1.t",
        sha256="f9c2fd4c725172aeb4476fc1e2327d537f7fbc2f53f49dfd073f80efbe1ba8f7",
        values_sha256="0a0a4e8d915cf316b7da5f6df35dff15da79bb5f5b17b969df8602f816e1b9c7",
        shape=(4000, 5),
        kind="svmlight",
        url=_LIBSVM + "svmguide1.t",
    ),
)


def _mfeat(view: str, sha256: str, values: str, width: int, openml: int) -> DataFile:
    return DataFile(f"mfeat/mfeat-{view}", sha256, values, (2000, width), "whitespace", openml)


MFEAT = {
    "fou": _mfeat(
        "fou",
        "ab09233b93df29fef4dd85bd5c2e7a82eea2df0964fa0124627df796b2f82d34",
        "02b7797e21bd296fb602e2144e9667ca3423907ae2bbee1b95dc0a6218330c91",
        76,
        14,
    ),
    "fac": _mfeat(
        "fac",
        "45853e2ddbb690d9f82a043ab916ad95e160d4e7d0a2d5404ecf099d633e839f",
        "9b0ec35b591d5e71c3e72762dcb14280997659bd3a5db689903d6ed7a00f0717",
        216,
        12,
    ),
    "kar": _mfeat(
        "kar",
        "4a59b77369b991a8ddcff64068010e7122795f23f361821bfa17c939bfe29542",
        "96e4613832c7458d092e9d06500f9982944256b42fea99583751badc7283749e",
        64,
        16,
    ),
    "pix": _mfeat(
        "pix",
        "a5ea6ccf4202175f3dd8e8c07fbec6a3975a6447e01b2c8612822b75411d1524",
        "e8bdfbd1d74394d5954e186f2aab1bccd259b28c334318e5a670bba2de48b9e0",
        240,
        20,
    ),
    "zer": _mfeat(
        "zer",
        "6f00608edea2d1434eeb800cc466769e2f5373132173ce77d8e30449995e6d16",
        "a942b80c25bb3096d391efc30a737659dfb7147b1d36419f9648cb4a56882e17",
        47,
        22,
    ),
    "mor": _mfeat(
        "mor",
        "96fbcd7e0b411223671013a2267ce0b4670f739001df6b9e7b812165ca436880",
        "a3f2453c73acf36b59c8add222626f605d1ee610bfaae054234608e6871147e5",
        6,
        18,
    ),
}
