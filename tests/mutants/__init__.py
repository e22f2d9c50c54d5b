"""A mutation check: whether the tests notice when the code is changed in small ways.

`sites` finds what can be changed and `draw` picks from it, `reach` records which tests reach which
lines, `judge` runs those tests against one change at a time, `results` counts. The files in
`inside` are loaded by the processes under test.
"""
