"""How contextual words are: measured on sentences, over a corpus, and shown (chapter 02)."""
