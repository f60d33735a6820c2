"""The account of a file as it is printed: counts first, a line a name, one line for many of one reason."""

from bert.interop.load_report import LoadReport


def test_a_report_tells_everything():
    report = LoadReport(
        "model.safetensors",
        used=["a", "b"],
        ignored={"c": "a buffer; computed here", **{f"m{i}": "the optimizer's memory" for i in range(5)}},
        fresh=["pooler"],
        replaced={"classifier.bias": "a sequence_classifier of 3 classes"},
        missing=["d"],
        notes=["taken for one of sequences"],
    )
    assert str(report).splitlines() == [
        "model.safetensors: 2 tensors used, 6 ignored, 1 missing, 1 replaced",
        "  ignored c: a buffer; computed here",
        "  ignored m0 and 4 more: the optimizer's memory",
        "  replaced classifier.bias: a sequence_classifier of 3 classes",
        "  pooler: new",
        "  missing d",
        "  note: taken for one of sequences",
    ]


def test_up_to_four_names_of_one_reason_are_all_told():
    lines = str(LoadReport("x", ignored=dict.fromkeys("abcd", "a buffer"))).splitlines()
    assert lines[1:] == [f"  ignored {name}: a buffer" for name in "abcd"]


def test_names_that_would_pass_for_lines_are_spelled_out():
    """A line end or an escape code in a name, a path or a reason makes no line and steers no terminal."""
    report = LoadReport("a\nb", ignored={"w\nerror: fake": "a \x1b[2Jbuffer"}, missing=["\u202egpj"], notes=["x\r\ny"])
    assert str(report).splitlines() == [
        r"a\nb: 0 tensors used, 1 ignored, 1 missing",
        r"  ignored w\nerror: fake: a \x1b[2Jbuffer",
        r"  missing \u202egpj",
        r"  note: x\r\ny",
    ]
