"""Files of tagged sentences as tests read them."""

from tasks.tagging.tagged import TagSettings, read_tagged
from tests.tasks.one_line import message_of


def read(path, labelled="needed", **settings):
    return read_tagged(path, TagSettings(**settings), labelled=labelled)


def refused(path, labelled="needed", **settings):
    return message_of(lambda: read(path, labelled, **settings))


def sentences(rows):
    """Rows as "word/tag/tag ..." with a tag of each annotator."""
    return [
        " ".join("/".join([word, *(tags[i] or "?" for _, tags in row.annotations)]) for i, word in enumerate(row.words))
        for row in rows.rows
    ]
