"""The comparison as one picture, readable in light and dark."""

from html import escape

from ._proof import TOLD, Proof
from .words import HEEDED, rows_of

_LEFT, _WIDE, _ROW, _TOP = 232, 320, 44, 60
_STYLE = (
    "text{font:13px "
    "system-ui,sans-serif;fill:#1d1f22}.title{font-weight:650;font-size:15px}.muted{fill:#5c6168}"
    ".track{fill:#e2e2dd}.bar{fill:#215f9a}.without{fill:#8b939b}.range{stroke:#1d1f22;stroke-width:1.5}.ground{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e6e8}.muted{fill:#9ba2aa}.track{fill:#2b2f34}.bar{fill:#7db4e8}"
    ".without{fill:#6b737b}.range{stroke:#e4e6e8}.ground{fill:#121416}}"
)


def svg_of(proof: Proof) -> str:
    """Return a bar for each arm with its interval of 95 %, and the counts beside it, as SVG."""
    rows = rows_of(proof)
    height = _TOP + _ROW * len(rows) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" '
        f'height="{height}" role="img" '
        f'aria-label="{escape(HEEDED)}: '
        + escape("; ".join(f"{row.label} {row.heeded}" for row in rows))
        + '">',
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="720" height="{height}" rx="8"/>',
        f'<text class="title" x="16" y="30">{escape(HEEDED)}</text>',
    ]
    for number, row in enumerate(rows):
        y = _TOP + number * _ROW
        parts.append(f'<text x="16" y="{y + 15}">{escape(row.label)}</text>')
        parts.append(
            f'<rect class="track" x="{_LEFT}" y="{y}" width="{_WIDE}" height="20" rx="3"/>'
        )
        if row.tally.cases:
            low, high = (_LEFT + _WIDE * share for share in row.tally.interval)
            kind, wide, middle = (
                "bar" if row.arm == TOLD else "without",
                _WIDE * row.tally.share,
                y + 10,
            )
            line = f"M{low:.1f} {middle}H{high:.1f}M{low:.1f} {y + 5}v10M{high:.1f} {y + 5}v10"
            parts.append(
                f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{wide:.1f}" height="20" rx="3"/>'
            )
            parts.append(f'<path class="range" d="{line}"/>')
        parts.append(f'<text x="{_LEFT + _WIDE + 14}" y="{y + 15}">{row.heeded}</text>')
    about = "moments after another session's edit; the line is the interval of 95 %"
    parts.append(f'<text class="muted" x="16" y="{height - 14}">{about}</text></svg>')
    return "\n".join(parts) + "\n"
