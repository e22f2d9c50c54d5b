"""A mutation check: whether the tests notice when the code is changed in small ways.

`sites` finds what can be changed and `draw` picks from it, `reach` records which tests reach what,
`judge` runs those tests against one change at a time, `report` counts. What stands in `inside` is
loaded by the processes under test.
"""
