define double @f(double %a, double %b)
{
entry:
  %0 = fcmp olt double %a, %b
  %1 = select i1 %0, double 0x3ff0000000000000, double 0x0
  %2 = fcmp une double %1, 0x0
  %3 = fcmp une double %1, 0x0
  %4 = fdiv double %a, %b
  %5 = xor i1 %3, -1
  %6 = fcmp une double %1, 0x0
  %7 = select i1 %6, double %4, double 0x4004000000000000
  ret double %7
}
