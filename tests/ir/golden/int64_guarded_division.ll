define i64 @f(i64 %b, ptr %failed)
{
entry:
  %0 = icmp ne i64 %b, 0
  %1 = icmp eq i64 %b, 0
  %2 = icmp eq i64 %b, -1
  %3 = and i1 %1, %0
  %4 = or i1 %1, %2
  %5 = select i1 %4, i64 1, i64 %b
  %6 = sub i64 0, 7
  %7 = sdiv i64 7, %5
  %8 = select i1 %2, i64 %6, i64 %7
  %9 = mul i64 %8, %b
  %10 = sub i64 7, %9
  %11 = xor i64 %10, %b
  %12 = icmp slt i64 %11, 0
  %13 = icmp ne i64 %10, 0
  %14 = and i1 %12, %13
  %15 = sub i64 %8, 1
  %16 = select i1 %14, i64 %15, i64 %8
  %17 = xor i1 %0, -1
  %18 = icmp ne i64 %b, 0
  %19 = select i1 %18, i64 %16, i64 -1
  %20 = zext i1 %3 to i8
  store i8 %20, ptr %failed
  ret i64 %19
}
