"""Gradients of tensor programs: adjoint code in the place of declarations (Wei, Schwartz and Adve, DLVM, 2017).

`rules` has one adjoint rule for each operation, `adjoints` applies them to a function, `declarations` to a module. If
memory is short, `declarations` divides functions into segments that are computed again.
"""
