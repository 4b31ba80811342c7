"""An encoder–decoder whose loss needs nothing but the labels."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import EncoderDecoderModel
from transformers.modeling_outputs import Seq2SeqLMOutput

__all__ = ["TranslationModel"]


class TranslationModel(EncoderDecoderModel):
    """transformers' EncoderDecoderModel, with the loss computed here.

    The library's own forward pass warns of a change of its version 4.12 whenever it computes a
    loss, at every step.
    """

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        **options: object,
    ) -> Seq2SeqLMOutput:
        """As `EncoderDecoderModel.forward`.

        Parameters
        ----------
        input_ids, attention_mask
            (b, t), of the sentences.
        labels
            (b, u), the tokens of the translations, −100 where there is none. The decoder reads
            them shifted by one place, behind the start token.
        decoder_input_ids
            (b, u), what the decoder reads instead.
        **options
            As of `EncoderDecoderModel.forward`.

        Returns
        -------
        Seq2SeqLMOutput
            ``loss`` (mean over the labels, nats a token) where there are labels, and ``logits``.
        """
        if labels is not None and decoder_input_ids is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        output = super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            **options,
        )
        if labels is not None:
            output.loss = cross_entropy(output.logits.flatten(0, 1), labels.flatten())
        return output
