"""Settings in sections: types, ranges, choices, settings without effect, flat names and paths."""

from dataclasses import dataclass

import pytest

from hgde.registry import REGISTRIES, Registry
from hgde.sections import (
    Chosen,
    Section,
    SettingsError,
    build,
    choice,
    from_dict,
    leaves,
    nested,
    overlay,
    parse_assignment,
    section,
    setting,
)

WINES = Registry("wine", "test-wines")
del REGISTRIES["test-wines"]


@WINES.register("red")
class Red:
    @dataclass(frozen=True)
    class Settings(Section):
        age: int = setting(3, "Years.", above=0, flag="red_age")


@WINES.register("white")
class White:
    pass


@dataclass(frozen=True)
class Dinner(Section):
    courses: int = setting(1, "How many.", above=0)
    pause: float = setting(0.5, "Hours between.", inert=lambda s: "there is one course" if s.courses == 1 else None)
    mix: tuple[float, float, float] = setting((1.0, 0.6, 0.1), "Shares.")
    names: tuple[str, ...] = setting((), "Guests.")
    style: str = setting("plain", "How it is served.", choices=("plain", "grand"))
    host: str | None = setting(None, "Who invites.")
    outside: bool = setting(False, "In the garden.")
    wine: Chosen = choice(WINES, "red", "What to drink.")


@dataclass(frozen=True)
class Day(Section):
    evening: Dinner = section(Dinner)


def test_values_come_in_every_form_a_file_or_a_flag_gives():
    made = from_dict(Dinner, {"mix": "1/2/3", "names": "ann, bo", "wine": {"age": 5}, "courses": 2, "pause": 1})
    assert (made.mix, made.names, made.wine.options.age, made.pause) == ((1.0, 2.0, 3.0), ("ann", "bo"), 5, 1.0)
    assert from_dict(Dinner, {"mix": [1, 2, 3]}).mix == (1.0, 2.0, 3.0)
    assert from_dict(Dinner, {"wine": "white"}).wine.name == "white"
    assert made.wine.entry is Red


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"courses": 0}, "evening.courses must be greater than 0, got 0"),
        ({"courses": 1.5}, "evening.courses must be a whole number"),
        ({"courses": True}, "evening.courses must be a whole number"),
        ({"mix": [1, 2]}, "evening.mix must be 3 numbers"),
        ({"mix": "a,b,c"}, "evening.mix must be 3 numbers"),
        ({"mix": [1, float("nan"), 2]}, "evening.mix must be a finite number"),
        ({"style": "grande"}, r"one of plain, grand, got 'grande' \(did you mean 'grand'\?\)"),
        ({"outside": "yes"}, "evening.outside must be true or false"),
        ({"curses": 2}, "unknown setting 'evening.curses'.*did you mean 'courses'"),
        ({"pause": 1}, "evening.pause has no effect: there is one course; leave it out"),
        ({"wine": {"name": "white", "age": 3}}, "the wine white has no such setting; it takes none"),
        ({"wine": "rose"}, "evening.wine: unknown wine 'rose'"),
        ({"wine": 3}, "evening.wine must name a wine, got 3"),
        ("dinner", "evening is a section of settings"),
    ],
)
def test_what_cannot_be_used_is_refused_with_words(given, words):
    with pytest.raises(SettingsError, match=words):
        from_dict(Day, {"evening": given})


def test_what_is_stored_acts_and_can_be_read_back():
    one, two = Dinner(), from_dict(Dinner, {"courses": 2, "pause": 1.0})
    assert "pause" not in one.to_dict()
    assert two.to_dict()["pause"] == 1.0
    for made in (one, two):
        assert from_dict(Dinner, made.to_dict()) == made


def test_a_change_may_silence_what_was_there_but_not_what_is_given():
    two = from_dict(Dinner, {"courses": 2, "pause": 1.0})
    assert two.replace(courses=1).to_dict()["courses"] == 1
    with pytest.raises(SettingsError, match="pause has no effect"):
        two.replace({"courses": 1, "pause": 2.0})
    assert two.replace({"wine.age": 9}).wine.options.age == 9
    assert two.replace({"wine": "white"}).to_dict()["wine"] == {"name": "white"}


def test_leaves_are_all_settings_with_their_owners():
    found = {leaf.path: leaf for leaf in leaves(Day)}
    assert set(found) == {
        *(f"evening.{name}" for name in ("courses", "pause", "mix", "names", "style", "host", "outside")),
        *("evening.wine.name", "evening.wine.age"),
    }
    age = found["evening.wine.age"]
    assert (age.flag, age.owners, age.default) == ("red_age", (("evening.wine", "red"),), 3)
    assert found["evening.wine.name"].registry is WINES


def test_overlay_keeps_what_is_not_changed_and_drops_the_settings_of_another_entry():
    below = {"wine": {"name": "red", "age": 9}, "courses": 2}
    assert overlay(below, {"wine": {"age": 4}}) == {"wine": {"name": "red", "age": 4}, "courses": 2}
    assert overlay(below, {"wine": "white"}) == {"wine": {"name": "white"}, "courses": 2}
    assert overlay(below, {"wine": {"name": "white"}})["wine"] == {"name": "white"}
    assert nested({"wine": "red", "wine.age": 4}) == nested({"wine.age": 4, "wine": "red"})
    assert nested({"wine.age": 4, "wine": {"name": "red"}}) == {"wine": {"age": 4, "name": "red"}}


def test_assignments_are_json_or_text():
    assert parse_assignment("a.b=3") == ("a.b", 3)
    assert parse_assignment("a=[1, 2]") == ("a", [1, 2])
    assert parse_assignment("a=hello=you") == ("a", "hello=you")
    with pytest.raises(SettingsError, match="expected PATH=VALUE"):
        parse_assignment("lr")


def test_build_lets_inert_settings_be():
    assert build(Dinner, {"pause": 2.0}).pause == 2.0


def test_a_choice_from_another_registry_is_refused():
    others = Registry("beer", "test-beers")
    del REGISTRIES["test-beers"]
    with pytest.raises(SettingsError, match="wine must be a choice of a wine, got one of a beer"):
        Dinner(wine=Chosen("red", Section(), others))
