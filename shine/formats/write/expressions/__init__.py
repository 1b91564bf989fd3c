"""The base for forms that hold a formula in one nested expression: LaTeX, Excel, SQL, NumPy, SymPy.

`translation` walks a formula and applies one rule a primitive; a rule may make any object (of SymPy, say). `infix`
makes text from the phrases that rules return; its `Corrected` adds functions that spreadsheets and databases lack.
"""
