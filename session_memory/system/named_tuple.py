"""`typing.NamedTuple` without `typing`, which takes half as long to import as Python to start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _Making(type):
        """Makes a named tuple of a class body: the annotated names are its fields, their values the defaults."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = list(body.pop("__annotations__", {}))
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for attribute, value in body.items():
                if attribute != "__module__":
                    setattr(made, attribute, value)
            return made

    class NamedTuple(metaclass=_Making):
        """The base of classes that are to become named tuples."""
