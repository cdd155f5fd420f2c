"""`NamedTuple` as `typing` has it, for type checkers the same. A search waits for 30 such classes:
`typing`, which compiles code for each, takes nearly as long as a bare Python takes to start, and
this a tenth of that. For modules that a search loads; all others use `typing`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter  # the attributes of collections.namedtuple, in C

    class NamedTuple(tuple):
        """A tuple whose items are attributes: the annotated names of the class, with the defaults
        given there."""

        _fields: tuple[str, ...] = ()
        _field_defaults: dict[str, Any] = {}

        def __init_subclass__(cls) -> None:
            names = tuple(cls.__annotations__)
            if names:  # else it only adds methods to one that has
                cls._fields = cls.__match_args__ = names
                cls._field_defaults = {
                    name: cls.__dict__[name] for name in names if name in cls.__dict__
                }
                for position, name in enumerate(names):
                    setattr(cls, name, _tuplegetter(position, None))

        def __new__(cls, *values: Any, **named: Any) -> NamedTuple:
            names = cls._fields
            if named or len(values) != len(names):
                found = {**cls._field_defaults, **dict(zip(names, values)), **named}
                if (
                    len(values) > len(names)
                    or found.keys() != set(names)
                    or named.keys() & set(names[: len(values)])
                ):
                    raise TypeError(
                        f"{cls.__name__} takes {', '.join(names)}: got {values}, {named}"
                    )
                values = tuple([found[name] for name in names])
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values: Iterable[Any]) -> NamedTuple:
            """Return one of all its values in order."""
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"{cls.__name__} takes {len(cls._fields)} values: got {len(made)}")
            return made

        def _replace(self, **named: Any) -> NamedTuple:
            """Return a copy with other values for the fields that are `named`."""
            made = self._make(map(named.pop, self._fields, self))
            if named:
                raise TypeError(f"{type(self).__name__} has no {', '.join(named)}")
            return made

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)  # for copy and pickle

        def __repr__(self) -> str:
            fields = [f"{name}={value!r}" for name, value in self._asdict().items()]
            return f"{type(self).__name__}({', '.join(fields)})"
