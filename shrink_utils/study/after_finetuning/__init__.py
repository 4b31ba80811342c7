"""Chapter 08: the geometry of fine-tuned encoders, and what words still say."""
