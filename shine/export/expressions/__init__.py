"""The base for forms that hold a formula in one nested expression: LaTeX, Excel, SQL, NumPy, SymPy.

`translation` walks a formula and applies one rule a primitive, whatever a rule makes (SymPy's objects, say);
`infix` makes text of it, from the `phrases` that rules return; `corrected` adds what spreadsheets and data bases lack.
"""
