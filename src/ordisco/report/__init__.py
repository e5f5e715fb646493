"""What people see: curves, confusion matrices, sample grids, tables, summaries, the terminal.

Figures use matplotlib's object interface on the Agg backend, never pyplot; both it and Pillow are imported
only when a figure is drawn.
"""
