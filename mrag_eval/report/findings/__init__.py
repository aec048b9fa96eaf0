"""What runs show, in a few sentences, between the tidy table and every output."""
