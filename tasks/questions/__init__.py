"""Files of questions on passages, for both tasks that answer them."""
