define i32 @f(i32 %a, i32 %b, ptr %failed)
{
entry:
  %0 = icmp eq i32 %b, 0
  %1 = icmp eq i32 %b, -1
  %2 = or i1 %0, %1
  %3 = select i1 %2, i32 1, i32 %b
  %4 = sub i32 0, %a
  %5 = sdiv i32 %a, %3
  %6 = select i1 %1, i32 %4, i32 %5
  %7 = zext i1 %0 to i8
  store i8 %7, ptr %failed
  ret i32 %6
}
