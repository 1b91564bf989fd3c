define double @f(double %a, double %b)
{
entry:
  %0 = fcmp une double %a, 0x0
  %1 = fcmp une double %a, 0x0
  %2 = select i1 %1, double %b, double %a
  %3 = fcmp une double %2, 0x0
  %4 = xor i1 %3, -1
  %5 = fcmp oeq double %a, 0x0
  %6 = select i1 %5, double 0x3ff0000000000000, double 0x0
  %7 = fcmp une double %2, 0x0
  %8 = select i1 %7, double %2, double %6
  ret double %8
}
