"""Read an encoder's layers over texts: by batch, by text (pooled), by word-piece or by word."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import regex
import torch
from tokenizers import Encoding
from torch import Tensor
from torch.nn.functional import embedding_bag

from shrink_utils.models.encoders import Encoder, evaluating
from shrink_utils.names import POOLINGS, as_texts, known_name
from shrink_utils.topology.arrays import _whole_number

MAX_LENGTH = 128  # tokens, where nobody says more or fewer
MIXES_PADDING = ("fnet", "convbert")  # models whose vectors see the padding of their batch
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
class StateBatch:
    """The hidden states of b texts, on the encoder's device."""

    rows: list[int]  # which texts
    states: tuple[Tensor, ...]  # each layer's (b, t, d), from the embedding layer to the output
    mask: Tensor  # (b, t), 1 at tokens and 0 at padding
    special: Tensor  # (b, t), true at special tokens and padding
    tokens: dict[str, Tensor]  # what the encoder was given, (b, t) each
    # Each text's tokens before padding, with their places in it; None if the tokenizer is slow.
    encodings: list[Encoding] | None


@dataclass(frozen=True)
class TokenStates:
    """Word-piece vectors of many sentences, in the order of the sentences."""

    vectors: Tensor  # (n_layers_selected, n_tokens, d), float32
    sentence: Tensor  # (n_tokens,), long: the index of the token's sentence
    token: list[str]  # the n_tokens word-pieces


def hidden_states(
    encoder: Encoder,
    texts: Iterable[str],
    *,
    layers: Sequence[int] | None = None,
    pooling: str = "cls",
    **options: Any,
) -> Tensor:
    """One vector per text from each layer.

    Parameters
    ----------
    encoder, texts
        As in `state_batches`.
    layers
        Indices out of ``encoder.layers``, negative ones from the end; all layers when None.
    pooling
        As in `pool`, at every layer: ``"first_last"`` at layer l averages the layers 0 and l.
    **options
        ``text_pairs``, ``batch_size`` and ``max_length``, as in `state_batches`.

    Returns
    -------
    Tensor
        (n_layers_selected, n, d), float32 on the CPU; layer 0 is the embedding layer.

    Raises
    ------
    ValueError
        As `state_batches` and `pool`; a text without a token (an empty one, where the tokenizer
        adds no special tokens), a layer the encoder has not, or layers of different width.

    Examples
    --------
    >>> from shrink_utils.models import load_encoder
    >>> encoder = load_encoder("tiny-random")
    >>> hidden_states(encoder, ["a text", "and another"], layers=[-1], pooling="mean").shape
    torch.Size([1, 2, 32])
    """
    texts, chosen = as_texts(texts), _chosen_layers(encoder, layers)
    rows, parts = [], []
    for batch in state_batches(encoder, texts, **options):
        for row, has_token in zip(batch.rows, batch.mask.any(dim=1).tolist(), strict=True):
            if not has_token:  # `pool` would know it by its row in the batch only
                raise ValueError(
                    f"texts: text {row}, {texts[row]!r}, has no token, so no vector; leave it out"
                )
        pooled = [pool(batch.states[: layer + 1], batch.mask, pooling=pooling) for layer in chosen]
        parts.append(_stacked(pooled))
        rows += batch.rows
    # The batches are sorted by length: column j belongs to text rows[j].
    return torch.cat(parts, dim=1)[:, torch.tensor(rows, device="cpu").argsort()]


def token_states(
    encoder: Encoder, texts: Iterable[str], *, layers: Sequence[int] | None = None, **options: Any
) -> TokenStates:
    """The vectors of all word-pieces, without special tokens and padding, from each layer.

    Parameters, and the ValueError of bad ones, are those of `hidden_states`.

    Examples
    --------
    >>> from shrink_utils.models import load_encoder
    >>> encoder = load_encoder("tiny-random")
    >>> token_states(encoder, ["a text", "and another"]).token
    ['a', 'text', 'and', 'another']
    """
    chosen = _chosen_layers(encoder, layers)
    vectors, rows, ids = [], [], []
    for batch in state_batches(encoder, texts, **options):
        pieces = ~batch.special  # (b, t)
        states = [batch.states[layer][pieces] for layer in chosen]  # (n, d) each
        vectors.append(_stacked(states))
        rows.append(torch.tensor(batch.rows, device="cpu")[pieces.nonzero()[:, 0].cpu()])
        ids.append(batch.tokens["input_ids"][pieces].cpu())
    sentence, order = torch.cat(rows).sort(stable=True)
    return TokenStates(
        vectors=torch.cat(vectors, dim=1)[:, order],
        sentence=sentence,
        token=encoder.tokenizer.convert_ids_to_tokens(torch.cat(ids)[order].tolist()),
    )


def state_batches(
    encoder: Encoder,
    texts: Iterable[str],
    *,
    text_pairs: Iterable[str] | None = None,
    batch_size: int = 64,
    max_length: int | None = None,
) -> Iterator[StateBatch]:
    """Forward passes over texts sorted by length, one batch of hidden states at a time.

    Parameters
    ----------
    encoder
        Run in evaluation mode, on the device where it is.
    texts, text_pairs
        n texts, and n second texts when the encoder reads pairs, by position: lists, columns,
        arrays, generators, … (see `names.as_texts`).
    batch_size
        Texts in a forward pass. Texts of like length go together, which changes the result only by
        rounding.
    max_length
        Longest input in tokens, special tokens included; longer ones are cut. None: 128, or what
        the encoder can read where that is less.

    Raises
    ------
    ValueError
        No texts, an item that is not a text, another number of pairs than of texts,
        ``max_length`` beyond what the encoder can read, or that leaves no token of a text beside
        the special ones, a token that it has no embedding of, or an encoder that does not give the
        layers that its configuration names, or whose vectors depend on padding (FNet, ConvBERT).

    Examples
    --------
    >>> from shrink_utils.models import load_encoder
    >>> encoder = load_encoder("tiny-random")
    >>> [batch.rows for batch in state_batches(encoder, ["a long text", "short"], batch_size=1)]
    [[1], [0]]
    """
    texts = as_texts(texts)
    text_pairs = None if text_pairs is None else as_texts(text_pairs, argument="text_pairs")
    if text_pairs is not None and len(text_pairs) != len(texts):
        raise ValueError(f"text_pairs: {len(text_pairs)} texts beside {len(texts)} in texts")
    _whole_number(batch_size, "batch_size", 1)
    if (kind := encoder.model.config.model_type) in MIXES_PADDING:
        raise ValueError(f"encoder: the vectors of a {kind} depend on padding; take another model")
    limit, tokenizer = encoder.max_length, encoder.tokenizer
    max_length = min(MAX_LENGTH, limit) if max_length is None else max_length
    special = tokenizer.num_special_tokens_to_add(pair=text_pairs is not None)
    least = special + (1 if text_pairs is None else 2)  # of each text one
    if not least <= max_length <= limit:
        expected = f"expected {least} to {limit} tokens ({encoder.name})"
        raise ValueError(f"max_length: {max_length}, {expected}")
    options = {"truncation": True, "max_length": max_length, "return_special_tokens_mask": True}
    found = tokenizer(texts, text_pairs, **options)
    n_known = _refuse_unknown_tokens(encoder, found["input_ids"])
    pad = tokenizer.pad_token_id
    padding = {  # 0 in all other inputs
        # Some tokenizers were given a token for padding that the model does not know.
        "input_ids": pad if pad is not None and pad < n_known else 0,
        "token_type_ids": tokenizer.pad_token_type_id,
        "special_tokens_mask": 1,
    }

    device = encoder.model.device

    # Of like length; so no text is beside a much longer one.
    order = sorted(range(len(texts)), key=lambda row: len(found["input_ids"][row]))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        tokens = {
            name: _padded([of_text[i] for i in rows], padding.get(name, 0)).to(device)
            for name, of_text in found.items()
        }
        special = tokens.pop("special_tokens_mask").bool()
        encodings = [found.encodings[i] for i in rows] if found.is_fast else None
        states = _states(encoder, tokens)
        yield StateBatch(rows, states, tokens["attention_mask"], special, tokens, encodings)


def _chosen_layers(encoder: Encoder, layers: Sequence[int] | None) -> list[int]:
    """Indices from 0, all of them for None; a ValueError for others than the encoder's, or none."""
    if layers is None:
        return list(encoder.layers)
    n = len(encoder.layers)
    if not len(layers) or any(not -n <= layer < n for layer in layers):
        raise ValueError(f"layers: {list(layers)}, expected indices out of {encoder.layers}")
    return [layer % n for layer in layers]


def _stacked(layers: list[Tensor]) -> Tensor:
    """Vectors (n, d) of each layer as (layers, n, d), float32 on the CPU."""
    widths = sorted({layer.shape[1] for layer in layers})
    if len(widths) > 1:
        raise ValueError(
            f"encoder: its layers are {' and '.join(map(str, widths))} wide, expected one width; "
            "read layers of one, or take another model"
        )
    return torch.stack(layers).float().cpu()


@torch.inference_mode()
def _states(encoder: Encoder, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    with evaluating(encoder.model):
        states = encoder.model(**inputs, output_hidden_states=True).hidden_states or ()
    expected = (len(encoder.layers), inputs["input_ids"].shape)
    # PEGASUS-X gives a pair in place of its last layer.
    shapes = {state.shape[:2] if isinstance(state, Tensor) else () for state in states}
    if (len(states), *shapes) != expected:
        raise ValueError(
            f"encoder: {encoder.name} gives {len(states)} layers of (texts, tokens) "
            f"{[tuple(shape) for shape in shapes]}, expected {expected[0]} of {(*expected[1],)}; "
            "take a model that has a vector per token at every layer"
        )
    return states


def _refuse_unknown_tokens(encoder: Encoder, input_ids: list[list[int]]) -> int:
    """How many tokens the encoder has embeddings of; a ``ValueError`` for a token beyond them."""
    n_known = len(encoder.model.get_input_embeddings().weight)
    for i, ids in enumerate(input_ids):
        if max(ids, default=0) >= n_known:
            token = encoder.tokenizer.convert_ids_to_tokens(max(ids))
            raise ValueError(
                f"texts: text {i} has the token {token!r}, of which {encoder.name} has no "
                "embedding; take the tokenizer that belongs to the model, or train its embedding"
            )
    return n_known


def _padded(of_texts: list[list[int]], value: int) -> Tensor:
    """One row per text, filled up on its right to the longest of them, (b, t).

    The tokenizer's own `pad` is far slower.
    """
    length = max(1, *map(len, of_texts))  # one of padding where no text has a token
    table = np.full((len(of_texts), length), value, dtype=np.int64)
    for row, of_text in zip(table, of_texts, strict=True):
        row[: len(of_text)] = of_text
    return torch.from_numpy(table)


def pool(states: Sequence[Tensor], attention_mask: Tensor, *, pooling: str = "cls") -> Tensor:
    """One vector per text from the hidden states of an encoder; differentiable.

    Parameters
    ----------
    states
        Hidden states from the embedding layer to the last, each (b, t, d).
    attention_mask
        (b, t); 1 (or True) at tokens, 0 at padding.
    pooling
        ``"cls"``: the first token's vector in the last layer, wherever padding stands. ``"mean"``:
        the mean of the last layer over the tokens, [CLS] and [SEP] included. ``"first_last"``: the
        same mean of the average of the first and the last of ``states``. ``"last"``: the last
        token's vector in the last layer, for decoders (GPT-2, Gemma): there a token sees only those
        before it, so the first one has the same vector in every text, and the last one alone has
        read all.

    Returns
    -------
    Tensor
        (b, d).

    Raises
    ------
    ValueError
        Unknown ``pooling``, no states, shapes that do not match, or a text without a token, which
        has no mean. (``"cls"`` and ``"last"`` leave that to `hidden_states`: looking would wait for
        the GPU.)

    References
    ----------
    Reimers & Gurevych (2019), *Sentence-BERT* (cls, mean); Li et al. (2020), *On the Sentence
    Embeddings from Pre-trained Language Models* (first_last).

    Examples
    --------
    >>> states = [torch.tensor([[[1.0, 3.0], [3.0, 5.0], [9.0, 9.0]]])]
    >>> pool(states, torch.tensor([[1, 1, 0]]), pooling="mean")
    tensor([[2., 4.]])
    """
    known_name("pooling", "pooling", pooling, POOLINGS)
    if len(states) == 0:
        raise ValueError("states: empty, expected the hidden states of at least one layer")
    if states[-1].shape[:2] != attention_mask.shape:
        raise ValueError(
            f"attention_mask: shape {tuple(attention_mask.shape)} does not match states of shape "
            f"{tuple(states[-1].shape)}"
        )
    if pooling == "first_last" and states[0].shape != states[-1].shape:
        raise ValueError(f"states: {states[0].shape[2]} and {states[-1].shape[2]} wide, so no mean")
    if pooling in ("cls", "last"):  # wherever padding stands
        real = (attention_mask != 0).int()
        place = real.argmax(dim=1)  # (b,): the first token
        if pooling == "last":
            place = real.shape[1] - 1 - real.flip(1).argmax(dim=1)
        return states[-1][torch.arange(len(place), device=states[-1].device), place]
    layers = [states[-1]] if pooling == "mean" else [states[0], states[-1]]
    has_token = attention_mask.any(dim=1)
    if not has_token.all():
        row = has_token.tolist().index(False)
        raise ValueError(f"attention_mask: row {row} has no token, so no mean; leave it out")
    dtype = torch.promote_types(layers[0].dtype, layers[-1].dtype)
    if dtype in (torch.float16, torch.bfloat16):  # sums over tokens would overflow or lose digits
        layers = [layer.float() for layer in layers]
    tokens = layers[0] if len(layers) == 1 else (layers[0] + layers[1]) / 2  # (b, t, d)
    mask = attention_mask.to(tokens.dtype).unsqueeze(-1)  # (b, t, 1)
    return ((tokens * mask).sum(dim=1) / mask.sum(dim=1)).to(dtype)


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

    Examples
    --------
    >>> split_words("Don't they shrink?")
    ["don't", 'they', 'shrink']
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

    Examples
    --------
    >>> from shrink_utils.models import load_encoder
    >>> encoder = load_encoder("tiny-random")
    >>> [batch.word for batch in word_batches(encoder, ["Two words.", "one"], batch_size=1)]
    [['one'], ['two', 'words']]
    """
    texts, chosen = as_texts(texts), _chosen_layers(encoder, layers)
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

    Examples
    --------
    >>> from shrink_utils.models import load_encoder
    >>> encoder = load_encoder("tiny-random")
    >>> found = word_states(encoder, ["Two words.", "one"])
    >>> found.word, found.vectors.shape
    (['two', 'words', 'one'], torch.Size([3, 3, 32]))
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


def shared_words(*states: WordBatch) -> list[WordBatch]:
    """The words that all encoders have read, row for row.

    Parameters
    ----------
    *states : WordBatch
        `word_states` of the same texts. A word is named by its sentence and its position there,
        whatever the tokenizers; texts are cut at different words.

    Examples
    --------
    >>> from shrink_utils.models import load_encoder
    >>> encoder, texts = load_encoder("tiny-random"), ["Two words.", "one more and one more"]
    >>> cut = word_states(encoder, texts, max_length=4)
    >>> [found.word for found in shared_words(cut, word_states(encoder, texts))]
    [['two', 'words', 'one', 'more'], ['two', 'words', 'one', 'more']]
    """
    places = [[*zip(s.sentence.tolist(), s.position.tolist(), strict=True)] for s in states]
    shared = set(places[0]).intersection(*places[1:])
    kept = [torch.tensor([place in shared for place in of]).nonzero()[:, 0] for of in places]
    return [_only(words, rows) for words, rows in zip(states, kept, strict=True)]


def _only(words: WordBatch, rows: Tensor) -> WordBatch:
    """Some of the words of a batch."""
    return replace(
        words,
        vectors=words.vectors[:, rows],
        sentence=words.sentence[rows],
        position=words.position[rows],
        word=[words.word[i] for i in rows.tolist()],
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
    rows, bags = (torch.from_numpy(i).to(batch.mask.device) for i in (pieces, starts))
    flat = (batch.states[layer].flatten(0, 1).float() for layer in layers)  # (b t, d) each
    return WordBatch(
        vectors=_stacked([embedding_bag(rows, x, bags, mode="mean") for x in flat]),
        sentence=torch.from_numpy(np.array(batch.rows)[words.text[found]]),
        position=torch.from_numpy(found - words.first[words.text[found]]),
        word=[words.word[number] for number in found],
        n_texts=len(batch.rows),
    )
