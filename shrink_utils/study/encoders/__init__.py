"""What is measured of encoders as they come."""
