"""Values of columns as Arrow: what the quick way does with texts of decimals, and what it leaves to the careful one."""

import pyarrow as pa
import pytest

from connectors.jdbc.arrow import decimals
from standalone import ConnectError


@pytest.mark.parametrize("texts, scale, wanted", [
    (["15", None, "-7"], 0, [15, None, -7]), (["1.50", "-0.07"], 2, [150, -7]), (["1.5", "2"], 2, [150, 200]), (["100"], -2, [1]), (["15.0"], 0, [15]),
])  # fmt: skip
def test_texts_of_decimals_have_the_scale_of_their_column(texts, scale, wanted):
    found = decimals(pa.array(texts, pa.string()), scale).to_pylist()
    assert [each and int.from_bytes(each["unscaled"], "big", signed=True) for each in found] == wanted
    assert {each["scale"] for each in found if each} == {scale}


def test_a_decimal_that_does_not_fit_the_scale_is_an_error_and_not_another_number():
    with pytest.raises(ConnectError, match="'price' holds 1.5, which is not a decimal of scale 0"):
        decimals(pa.array(["10", "1.5"]), 0, "price")
