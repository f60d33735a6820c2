"""Texts with labelled spans, as annotation tools export and import them; one file for each tool."""
