"""The outcome of one look."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and, for a problem, how to fix it."""

    name: str
    found: str
    fix: str | None = None
    required: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing needs fixing."""
        return self.fix is None

    @property
    def breaks(self) -> bool:
        """Whether the sidecar cannot do its work."""
        return self.required and not self.ok

    def as_dict(self) -> dict[str, Any]:
        """The outcome for machines."""
        return {"ok": self.ok, **asdict(self)}
