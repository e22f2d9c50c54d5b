"""Format sizes and counts."""

UNITS = ("KB", "MB", "GB", "TB")


def sized(size: int) -> str:
    """Return a size in words: "812 bytes", "45 KB", "1.2 GB"."""
    if size < 1000:
        return f"{size} byte{'' if size == 1 else 's'}"
    value = float(size)
    for unit in UNITS:
        value /= 1024
        if value < 999.5 or unit == UNITS[-1]:
            break
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 line", "1,234 lines"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def singular(noun: str) -> str:
    """Return the singular of a noun of ours: "match" of "matches", "entry" of "entries"."""
    if noun.endswith("ies"):
        return f"{noun[:-3]}y"
    return noun.removesuffix("es" if noun.endswith("ches") else "s")
