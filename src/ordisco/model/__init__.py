"""The model in use: deliveries in, predictions out."""
