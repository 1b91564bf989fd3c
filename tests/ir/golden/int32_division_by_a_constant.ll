define i32 @f(i32 %a)
{
entry:
  %0 = sdiv i32 %a, 7
  %1 = sdiv i32 %a, 7
  %2 = mul i32 %1, 7
  %3 = sub i32 %a, %2
  %4 = xor i32 %3, 7
  %5 = icmp slt i32 %4, 0
  %6 = icmp ne i32 %3, 0
  %7 = and i1 %5, %6
  %8 = sub i32 %1, 1
  %9 = select i1 %7, i32 %8, i32 %1
  %10 = add i32 %0, %9
  %11 = sdiv i32 %a, 7
  %12 = mul i32 %11, 7
  %13 = sub i32 %a, %12
  %14 = xor i32 %13, 7
  %15 = icmp slt i32 %14, 0
  %16 = icmp ne i32 %13, 0
  %17 = and i1 %15, %16
  %18 = add i32 %13, 7
  %19 = select i1 %17, i32 %18, i32 %13
  %20 = add i32 %10, %19
  ret i32 %20
}
