"""Checks at run time that a value is what its type says, as far as types of the contract go."""

from __future__ import annotations

import collections.abc
from typing import Any, Iterator, List, Literal, Union, get_args, get_origin, get_type_hints


def faults(value: Any, kind: Any, at: str = "answer") -> List[str]:
    """What is not as its type says; nothing when all is."""
    origin = get_origin(kind)
    if kind is Any:
        return []
    if origin is Union:
        options = [faults(value, option, at) for option in get_args(kind)]
        return min(options, key=len)
    if origin is Literal:
        return [] if value in get_args(kind) else [f"{at}: {value!r} is not in {kind}"]
    if origin is list:
        if not isinstance(value, list):
            return [f"{at}: {type(value).__name__} is no list"]
        (item,) = get_args(kind)
        return [fault for n, one in enumerate(value) for fault in faults(one, item, f"{at}[{n}]")]
    if origin is dict:
        if not isinstance(value, dict):
            return [f"{at}: {type(value).__name__} is no dict"]
        return [
            fault for name, one in value.items() for fault in faults(one, get_args(kind)[1], f"{at}.{name}")
        ]
    if hasattr(kind, "__required_keys__"):
        return list(_faults_of_fields(value, kind, at))
    if origin is collections.abc.Iterator or not isinstance(kind, type):
        return [f"{at}: {kind} is not checked"]
    expected = (int, float) if kind is float else kind
    is_number_for_bool = isinstance(value, bool) and kind is not bool
    if isinstance(value, expected) and not is_number_for_bool:
        return []
    return [f"{at}: {value!r} is no {kind.__name__}"]


def _faults_of_fields(value: Any, kind: Any, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: {type(value).__name__} is no {kind.__name__}"
        return
    for name in kind.__required_keys__ - value.keys():
        yield f"{at}.{name} is missing"
    for name, inner in get_type_hints(kind).items():
        if name in value:
            yield from faults(value[name], inner, f"{at}.{name}")
