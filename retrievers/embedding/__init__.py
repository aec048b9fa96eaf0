"""Dense and sparse encoders."""
