"""The outcome of one check."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """The finding of one check, and the advice if there is a problem."""

    name: str
    found: str
    fix: str | None = None
    required: bool = True

    @property
    def ok(self) -> bool:
        """Return whether nothing needs fixing."""
        return self.fix is None

    @property
    def breaks(self) -> bool:
        """Return whether the sidecar cannot work."""
        return self.required and not self.ok

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON has it."""
        return {"ok": self.ok, **asdict(self)}
