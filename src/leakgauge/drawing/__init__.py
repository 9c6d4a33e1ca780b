"""Pictures as SVG, for the report and the reproductions: axes, pieces, and labels. No numbers are made here.

Lines differ by dashes as well as by colour. Infinite numbers are drawn at the end of the axis, never left out; every
coordinate written is finite.
"""
