"""Many small fully connected networks, trained together: what they are, how they draw, and who trains them."""
