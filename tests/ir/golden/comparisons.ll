define double @f(double %a, double %b)
{
entry:
  %0 = fcmp olt double %a, %b
  %1 = select i1 %0, double 0x3ff0000000000000, double 0x0
  %2 = fcmp une double %1, 0x0
  %3 = fcmp oge double %a, %b
  %4 = select i1 %3, double 0x3ff0000000000000, double 0x0
  %5 = fcmp une double %4, 0x0
  %6 = fadd double %1, %4
  %7 = fcmp oeq double %a, %b
  %8 = select i1 %7, double 0x3ff0000000000000, double 0x0
  %9 = fcmp une double %8, 0x0
  %10 = fadd double %6, %8
  %11 = fcmp une double %a, %b
  %12 = select i1 %11, double 0x3ff0000000000000, double 0x0
  %13 = fcmp une double %12, 0x0
  %14 = fadd double %10, %12
  ret double %14
}
