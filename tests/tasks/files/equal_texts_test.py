from tasks.files.equal_texts import count_shared, first_of_equal, key_of


def test_texts_are_equal_whatever_their_blanks_case_and_composition():
    same = [("A  caf\u00e9\n",), ("a cafe\u0301",), ("\ta\u00a0CAF\u00c9 ",)]
    assert len({key_of(texts) for texts in same}) == 1
    assert key_of(["a b"]) != key_of(["ab"]) != key_of(["a.b"])


def test_a_pair_equals_the_pair_in_the_other_order_and_no_other():
    assert key_of(["a", "b"]) == key_of(["B", "a "])
    assert len({key_of(texts) for texts in (["a", "b"], ["a", "c"], ["a"], ["a", "a"], ["a b"], ["a", ""])}) == 6


def test_the_first_of_equal_rows_and_how_many_both_parts_hold():
    assert first_of_equal("abacb").tolist() == [0, 1, 0, 3, 1]
    assert first_of_equal("").tolist() == []
    assert count_shared("abc", list("cdcb")) == 3
