define double @f(double %a, double %b, double %c)
{
entry:
  %0 = fcmp olt double %a, %b
  %1 = select i1 %0, double 0x3ff0000000000000, double 0x0
  %2 = fcmp une double %1, 0x0
  %3 = fcmp ole double %b, %c
  %4 = select i1 %3, double 0x3ff0000000000000, double 0x0
  %5 = fcmp une double %1, 0x0
  %6 = select i1 %5, double %4, double %1
  %7 = fcmp une double %6, 0x0
  ret double %6
}
