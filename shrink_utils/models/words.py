"""Word vectors: the mean of a word's pieces, whatever the tokenizer makes of it."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import regex
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from shrink_utils.models.encoders import Encoder
from shrink_utils.models.states import StateBatch, chosen_layers, state_batches, states_of
from shrink_utils.names import as_texts

SAMPLE = 256  # texts that are looked at for unknown pieces
SPACES = "▁Ġ"  # as SentencePiece and byte-level tokenizers spell a space
MOST_UNKNOWN = 0.9  # of the pieces; in a language that the tokenizer knows they are a few in 100
# Unicode's words (UAX 29): letters and digits with the marks, joiners and soft hyphens that belong
# to them (WB4); apostrophes and their like stand inside a word (WB6, WB7: don't is one), and so
# do Armenian marks, which are letters there. But full stops and colons end it: "the end.Next".
SPAN = r"[\p{L}\p{N}\p{Pc}][\p{L}\p{N}\p{Pc}\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*"
INNER = r"[\p{WB=MidLetter}\p{WB=MidNumLet}\p{WB=Single_Quote}\p{WB=ALetter}]"
INNER = rf"(?![\p{{L}}.:．：﹒﹕︓․]){INNER}"
WORD = regex.compile(rf"""{SPAN}(?:(?:{INNER}|(?<=\p{{Hebrew}})"(?=\p{{Hebrew}})){SPAN})*""")
INVISIBLE = regex.compile(r"\p{WB=Format}")  # soft hyphens, marks of direction
LETTER = regex.compile(r"\p{L}")
# Scripts without spaces between words. A run of katakana alone is a word as a rule.
UNSPACED = regex.compile(
    r"[\p{lb=SA}\p{Han}\p{Hiragana}\p{Katakana}ー\p{Javanese}\p{Balinese}\p{Tibetan}]+"
)
KATAKANA = regex.compile(r"[\p{Katakana}ー]+")
LONGEST_MEAN = 3.5  # letters per run; words of such scripts have fewer where they stand apart
FOREIGN_SHARE = 0.25  # of the letters: names of other scripts within a text


@dataclass(frozen=True)
class WordBatch:
    """Word vectors of some sentences, sentence after sentence."""

    vectors: Tensor  # (n_layers_selected, n_words, d), float32 on the CPU
    # (n_words,), long: the word's sentence among the texts, and its index in `split_words` of that
    # sentence. Together they name the word to any encoder.
    sentence: Tensor
    position: Tensor
    word: list[str]  # the n_words words in lower case
    n_texts: int  # how many texts these are, those without a word included


def split_words(text: str) -> list[str]:
    """The words of a text in lower case: letters and digits with their marks, inner apostrophes.

    Composed and decomposed text give the same words. Raises ValueError for a text of a script
    without spaces between words, such as Chinese or Thai, unless spaces were put there.
    """
    _refuse_unspaced([text])
    return [_spelled(word) for word in WORD.findall(text)]


def _spelled(word: str) -> str:
    """A match of `WORD` in lower case, composed and without what is not seen."""
    return unicodedata.normalize("NFC", INVISIBLE.sub("", word).lower())


def _refuse_unspaced(texts: Iterable[str]) -> None:
    """A ``ValueError`` for texts of a script without spaces: their runs of letters are no words.

    Texts of such a script whose words stand apart are welcome.
    """
    runs, total = [], 0
    for text in texts:
        total += len(LETTER.findall(text))
        if not text.isascii():
            runs += [run for run in UNSPACED.findall(text) if not KATAKANA.fullmatch(run)]
    letters = sum(len(LETTER.findall(run)) for run in runs)
    if letters > FOREIGN_SHARE * total and letters > LONGEST_MEAN * len(runs):
        longest = max(runs, key=len)
        raise ValueError(
            f"texts: {letters / total:.0%} of their letters are of a script without spaces between "
            f"words, such as {longest[:20]!r}; put spaces between the words, as a segmenter does"
        )


def word_batches(
    encoder: Encoder,
    texts: Iterable[str],
    *,
    layers: Sequence[int] | None = None,
    batch_size: int = 64,
    max_length: int | None = None,
) -> Iterator[WordBatch]:
    """Word vectors from each layer, one forward pass at a time, the shortest texts first.

    A word's vector is the mean of the vectors of its pieces. Special tokens, padding and
    punctuation never count, nor does a piece of two words or of white space alone (the lone ``▁``
    of SentencePiece). Words without pieces are left out, and so are words that ``max_length`` cuts
    through or off.

    Parameters
    ----------
    encoder, texts, batch_size, max_length
        As in `state_batches`. No more than a batch of hidden states is ever held.
    layers
        Indices out of ``encoder.layers``, negative ones from the end; all layers when None.

    Raises
    ------
    ValueError
        As `state_batches`; a layer that the encoder has not, or layers of different width; texts of
        a script without spaces between words, or whose pieces are nearly all unknown to the
        tokenizer (it is another model's, or of another language); or a tokenizer without a Rust
        implementation, which cannot tell where in a text its pieces stand.
    """
    texts, chosen = as_texts(texts), chosen_layers(encoder, layers)
    if not encoder.tokenizer.is_fast:
        raise ValueError(
            f"encoder: the tokenizer of {encoder.name} cannot tell where in a text a piece stands; "
            "take a model that has a tokenizer.json"
        )
    _refuse_unspaced(texts)
    _refuse_unknown(encoder, texts)
    for batch in state_batches(encoder, texts, batch_size=batch_size, max_length=max_length):
        words = _WordsOfBatch([texts[row] for row in batch.rows])
        owner = _owner_by_place(batch, words, cut_on=encoder.tokenizer.truncation_side)
        yield _pooled(batch, owner, words, chosen)


def word_states(
    encoder: Encoder,
    texts: Iterable[str],
    *,
    progress: Callable[[int], object] = lambda n_texts: None,
    **options: Any,
) -> WordBatch:
    """All word vectors of `word_batches` at once, in the order of the texts.

    Other parameters are those of `word_batches`; ``progress`` is called with the number of texts of
    each batch that was read. The vectors take n_layers × n_words × d × 4 bytes.
    """
    batches = []
    for batch in word_batches(encoder, texts, **options):
        batches.append(batch)
        progress(batch.n_texts)
    sentence, order = torch.cat([batch.sentence for batch in batches]).sort(stable=True)
    words = [word for batch in batches for word in batch.word]
    return WordBatch(
        vectors=torch.cat([batch.vectors for batch in batches], dim=1)[:, order],
        sentence=sentence,
        position=torch.cat([batch.position for batch in batches])[order],
        word=[words[i] for i in order.tolist()],
        n_texts=sum(batch.n_texts for batch in batches),
    )


def _refuse_unknown(encoder: Encoder, texts: list[str]) -> None:
    """A ``ValueError`` where the vectors of words would nearly all be that of the unknown piece."""
    unknown = encoder.tokenizer.unk_token_id
    sample = [text for text in texts[:SAMPLE] if WORD.search(text)]
    if unknown is None or not sample:
        return
    found = encoder.tokenizer(sample, add_special_tokens=False, verbose=False)["input_ids"]
    pieces = [piece for of_text in found for piece in of_text]
    share = pieces.count(unknown) / max(1, len(pieces))
    if share > MOST_UNKNOWN:
        raise ValueError(
            f"texts: {share:.0%} of their pieces are unknown to the tokenizer of {encoder.name}; "
            "take texts in a language that it knows, or the tokenizer that belongs to the model"
        )


class _WordsOfBatch:
    """The words of a batch's b texts in one row, numbered from 0 to w − 1."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.joined = joined = "\n".join(texts)  # no word goes across a line break
        spans = [match.span() for match in WORD.finditer(joined)]
        self.word = [_spelled(joined[start:end]) for start, end in spans]
        # (w,): where each word stands in the texts joined to one, and in which text.
        self.start, self.end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        lengths = np.array([len(text) + 1 for text in texts])
        # (b,): where a text begins in the joined one, and the number of its first word.
        self.text_start = lengths.cumsum() - lengths
        self.text = np.searchsorted(self.text_start, self.start, side="right") - 1
        self.first = np.searchsorted(self.text, np.arange(len(texts)))


def _owner_by_place(batch: StateBatch, words: _WordsOfBatch, *, cut_on: str) -> np.ndarray:
    """For each token, (b, t), its word's number; −1 for none, and for a word cut through."""
    owner = np.full(batch.special.shape, -1)
    if not words.word:
        return owner
    lengths = np.array([len(encoding) for encoding in batch.encodings])
    text, column = np.nonzero(np.arange(owner.shape[1]) < lengths[:, None])  # (n_tokens,) each
    places = [place for encoding in batch.encodings for place in encoding.offsets]
    places = np.array(places, dtype=np.int64).reshape(-1, 2)  # none at all: (0, 2)
    start, end = (places + words.text_start[text, None]).T
    piece = ~batch.special.cpu().numpy()[text, column]
    # A space that the tokenizer puts before a text has the place of its first letter.
    tokens = [token for encoding in batch.encodings for token in encoding.tokens]
    for i in np.flatnonzero(piece[:-1] & (start[:-1] == start[1:])):
        piece[i] = tokens[i].strip(SPACES) != ""
    # From where to where the encoder has read each text; one that was not cut, all of it: a
    # tokenizer may drop its first and last characters.
    cut = np.array([bool(encoding.overflowing) for encoding in batch.encodings])
    cut_left, cut_right = cut & (cut_on == "left"), cut & (cut_on == "right")
    read_from = np.where(cut_left, len(words.joined), 0)
    np.minimum.at(read_from, text[piece & cut_left[text]], start[piece & cut_left[text]])
    read_to = np.where(cut_right, 0, len(words.joined))
    np.maximum.at(read_to, text[piece], end[piece])
    # The last word that begins before the end of a token is the only one that can own it.
    last = np.searchsorted(words.start, end) - 1
    word_end = words.end[last]
    within = (last >= 0) & (start < end) & (start < word_end)
    # A piece that reaches over two words ("co" and "operate" with a soft hyphen) is of neither.
    end_before = np.append(0, words.end)  # where the word before each ends, 0 for the first
    within &= start >= end_before[last]
    whole = (read_from[text] <= words.start[last]) & (word_end <= read_to[text])
    owner[text, column] = np.where(piece & within & whole, last, -1)
    return owner


def _pooled(
    batch: StateBatch, owner: np.ndarray, words: _WordsOfBatch, layers: list[int]
) -> WordBatch:
    """Mean over the pieces of each word that has some: (n_layers, n_words, d), float32."""
    pieces = np.flatnonzero(owner >= 0)  # (n_pieces,), rows of the (b t, d) states
    numbers = owner.ravel()[pieces]
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # a word's pieces follow one another
    found = numbers[starts]  # (n_words,)
    states = states_of(batch, layers)
    rows, bags = (torch.from_numpy(i).to(states[0].device) for i in (pieces, starts))
    flat = (layer.flatten(0, 1).float() for layer in states)  # (b t, d) each
    means = torch.stack([embedding_bag(rows, x, bags, mode="mean") for x in flat])
    return WordBatch(
        vectors=means.cpu(),
        sentence=torch.from_numpy(np.array(batch.rows)[words.text[found]]),
        position=torch.from_numpy(found - words.first[words.text[found]]),
        word=[words.word[number] for number in found],
        n_texts=len(batch.rows),
    )
