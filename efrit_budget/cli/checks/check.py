"""The outcome of one check."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """One check with its finding and advice for a problem."""

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
        """Return the outcome for programs."""
        return {"ok": self.ok, **asdict(self)}
