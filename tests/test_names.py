"""The door through which texts come in."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset

from shrink_utils.names import as_texts


@pytest.mark.parametrize(
    "make",
    [
        *(list, tuple, iter, np.array, pa.array, lambda x: np.array(x, dtype=object)),
        *(lambda x: pd.Series(x, index=[5, 0, 5]), lambda x: dict.fromkeys(x).keys()),
        *(lambda x: (t for t in x), lambda x: pd.Series(x, dtype="category"), pd.Index),
        *(lambda x: Dataset.from_dict({"t": x})["t"], lambda x: pa.chunked_array([x[:1], x[1:]])),
    ],
)
def test_texts_are_read_by_position_from_whatever_holds_them(make):
    texts = ["b", "a dog", ""]
    found = as_texts(make(texts))
    assert found == texts and {type(text) for text in found} == {str}


NO_TEXTS = (b"a", {"a": 1}, {"a"}, 3, None, np.array("a"), pd.DataFrame({"text": ["a"]}))


@pytest.mark.parametrize("given", ["one text", [], ["a", "dog \ud83d"], *NO_TEXTS])
def test_what_holds_no_texts_is_refused(given):
    with pytest.raises(ValueError, match="texts: "):
        as_texts(given)


@pytest.mark.parametrize("item", [3, None, b"a"])
def test_an_item_that_is_no_text_is_named(item):
    with pytest.raises(ValueError, match="texts: item 1 is") as error:
        as_texts(["a", item])
    assert repr(item) in str(error.value)
