"""Small programs as LLVM IR written by hand, with their interfaces."""

from __future__ import annotations

from shine.aot import Order, Target, target_of
from shine.tensor.form.types import TensorType
from shine.tensor.native.code import Lowered, TensorCode
from shine.tensor.native.interface import Interface, Tensor

_PRODUCT = """
define void @"NAME"(ptr %arguments, ptr %results, ptr %arena) {
entry:
  %a = load ptr, ptr %arguments
  %second = getelementptr ptr, ptr %arguments, i32 1
  %b = load ptr, ptr %second
  %c = load ptr, ptr %results
  br label %element
element:
  %n = phi i32 [0, %entry], [%next, %written]
  %row = udiv i32 %n, 2
  %column = urem i32 %n, 2
  br label %term
term:
  %k = phi i32 [0, %element], [%following, %term]
  %sum = phi float [0.0, %element], [%more, %term]
  %row_start = mul i32 %row, 3
  %i = add i32 %row_start, %k
  %k_start = mul i32 %k, 2
  %j = add i32 %k_start, %column
  %a_place = getelementptr float, ptr %a, i32 %i
  %b_place = getelementptr float, ptr %b, i32 %j
  %x = load float, ptr %a_place
  %y = load float, ptr %b_place
  %product = fmul float %x, %y
  %more = fadd float %sum, %product
  %following = add i32 %k, 1
  %again = icmp ult i32 %following, 3
  br i1 %again, label %term, label %written
written:
  store float %more, ptr %arena
  %kept = load float, ptr %arena
  %c_place = getelementptr float, ptr %c, i32 %n
  store float %kept, ptr %c_place
  %next = add i32 %n, 1
  %left = icmp ult i32 %next, 4
  br i1 %left, label %element, label %done
done:
  ret void
}
"""


def matmul(name: str = "matmul", target: Target | None = None) -> TensorCode:
    """The product of 2x3 and 3x2 numbers, as TensorFlow's example of ahead-of-time compilation."""
    arguments = (
        Tensor("x_hold", "x_hold", TensorType("f32", (2, 3))),
        Tensor("y_hold", "scope/y:0", TensorType("f32", (3, 2))),
    )
    result = Tensor("x_y_prod", "x_y_prod", TensorType("f32", (2, 2)))
    interface = Interface(name, arguments, (result,), 4)
    text = _PRODUCT.replace("NAME", name)
    return TensorCode(Order(name, target or target_of()), "matmul.pb", lambda _: Lowered(text, interface))


def idle(arguments: tuple[Tensor, ...], results: tuple[Tensor, ...], name: str = "idle") -> TensorCode:
    """A function that does nothing, with a given interface."""
    lowered = f'define void @"{name}"(ptr %arguments, ptr %results, ptr %arena) {{\n  ret void\n}}\n'
    return TensorCode(Order.of(name), "", lambda _: Lowered(lowered, Interface(name, arguments, results, 0)))


def copy(kind: TensorType) -> TensorCode:
    """The function that returns its argument."""
    lowered = f"""
define void @"copy"(ptr %arguments, ptr %results, ptr %arena) {{
entry:
  %x = load ptr, ptr %arguments
  %y = load ptr, ptr %results
  br label %head
head:
  %n = phi i64 [0, %entry], [%next, %byte]
  %left = icmp ult i64 %n, {kind.bytes}
  br i1 %left, label %byte, label %done
byte:
  %from = getelementptr i8, ptr %x, i64 %n
  %to = getelementptr i8, ptr %y, i64 %n
  %value = load i8, ptr %from
  store i8 %value, ptr %to
  %next = add i64 %n, 1
  br label %head
done:
  ret void
}}
"""
    interface = Interface("copy", (Tensor("x", "x", kind),), (Tensor("y", "y", kind),), 0)
    return TensorCode(Order.of("copy"), "", lambda _: Lowered(lowered, interface))


def waiting(turns: int) -> TensorCode:
    """A function that reads its argument until it is not 0, at most so many times, and returns what it has read."""
    lowered = f"""
define void @"waiting"(ptr %arguments, ptr %results, ptr %arena) {{
entry:
  %x = load ptr, ptr %arguments
  %y = load ptr, ptr %results
  br label %turn
turn:
  %n = phi i64 [{turns}, %entry], [%next, %turn]
  %value = load volatile i64, ptr %x
  %next = sub i64 %n, 1
  %is_late = icmp eq i64 %next, 0
  %is_set = icmp ne i64 %value, 0
  %is_done = or i1 %is_late, %is_set
  br i1 %is_done, label %done, label %turn
done:
  store i64 %value, ptr %y
  ret void
}}
"""
    kind = TensorType("i64", (1,))
    interface = Interface("waiting", (Tensor("x", "x", kind),), (Tensor("y", "y", kind),), 0)
    return TensorCode(Order.of("waiting"), "", lambda _: Lowered(lowered, interface))
