"""The pictures of Surveyor's records."""
