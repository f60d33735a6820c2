"""Finished models on files: scores, rows to look at, predictions. One file a task, with the four functions that
launch.evaluate and launch.predict call: `settings_of`, `read_examples`, `evaluate`, `write_predictions`."""
