"""Chapter 06: one fine-tuning run, watched."""
