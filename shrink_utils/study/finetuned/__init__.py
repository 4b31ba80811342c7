"""What is measured of encoders before and after fine-tuning."""
