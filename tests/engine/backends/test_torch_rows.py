"""Selection by torch: the candidates of each row are those of the row itself, whatever its type and its neighbours."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import narrow
from engine.config import Sampling
from engine.penalties import Used
from engine.sampling import after
from engine.trace import chances
from tests.engine.narrowing import Case, cases, outcome
from tests.engine.rows import steady

torch = pytest.importorskip("torch")
select = pytest.importorskip("engine.backends.torch_rows").select
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@settings(steady, max_examples=200)
@given(cases(), st.sampled_from(DTYPES), st.integers(0, 2))
def test_what_torch_selects_gives_what_the_whole_row_gives(case: Case, dtype: object, place: int) -> None:
    logits = torch.full((3, case.row.size), 7.0).to(dtype)
    logits[place] = torch.from_numpy(case.row).to(dtype)
    rows = select(logits, case.size, case.count, case.named)
    whole = logits[place].float().numpy()
    found = outcome(lambda: narrow.after(rows[place], case.size, case.sampling, case.used))
    assert found == outcome(lambda: after(whole, case.size, case.sampling, case.used))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("named", [(), (17, 0, 4999)])
def test_candidates_are_the_largest_and_the_named(dtype: object, named: tuple[int, ...]) -> None:
    logits = torch.randn(4, 5100, generator=torch.Generator().manual_seed(1)).to(dtype)
    logits[:, 5000:] = 99
    rows = select(logits, 5000, 60, named)
    for i, row in enumerate(logits.float().numpy()):
        found = rows[i]
        assert found.ids.dtype == np.int64
        assert found.logits.dtype == np.float32
        assert (np.diff(found.ids) > 0).all()
        np.testing.assert_array_equal(found.logits, row[found.ids])
        np.testing.assert_array_equal(found.whole(), row)
        above = np.flatnonzero(row[:5000] > found.border)
        assert {*above, *named} <= {*found.ids.tolist()}
        assert found.border == np.sort(row[:5000])[-60]
        assert len(found.ids) <= 60 + len(named)


@pytest.mark.parametrize("dtype", DTYPES)
def test_chances_are_told_where_the_logits_are(dtype: object) -> None:
    logits = (torch.randn(3, 5100, generator=torch.Generator().manual_seed(3)) * 4).to(dtype)
    logits[:, 5000:] = 99
    rows = select(logits, 5000, 60, (17, 4999))
    rows.whole = lambda _: pytest.fail("a whole row was fetched")
    for i, row in enumerate(logits.float().numpy()):
        tokens = [17, *rows[i].ids[-3:].tolist()]
        assert chances(5000, rows[i], tokens) == pytest.approx(chances(5000, row, tokens), rel=1e-4)


def test_sixteen_bits_seldom_need_the_whole_row() -> None:
    logits = (torch.randn(16, 20_000, generator=torch.Generator().manual_seed(2)) * 3).bfloat16()
    sampling = Sampling(top_k=40)
    count = narrow.wanted(sampling, 20_000, 0)
    rows = select(logits, 20_000, count, ())
    fetched: list[int] = []
    for i in range(16):
        found = rows[i]

        def whole(i: int = i) -> np.ndarray:
            fetched.append(i)
            return rows.whole(i)

        chosen = narrow.Candidates(found.ids, found.logits, found.border, whole)
        assert outcome(lambda c=chosen: narrow.after(c, 20_000, sampling, Used())) == outcome(
            lambda i=i: after(rows.whole(i), 20_000, sampling, Used())
        )
    assert not fetched


def test_a_row_that_is_nan_fails_alone() -> None:
    logits = torch.arange(200.0).repeat(2, 1)
    logits[1, 7] = math.nan
    rows = select(logits, 200, 100, ())
    good, bad = (outcome(lambda i=i: narrow.after(rows[i], 200, Sampling(), Used())) for i in range(2))
    assert len(good) == 3
    assert "NaN as the logit of token 7" in str(bad[0])
