define double @f(double %a, double %b)
{
entry:
  %0 = fcmp olt double %a, %b
  %1 = fcmp uno double %a, %a
  %2 = or i1 %0, %1
  %3 = select i1 %2, double %a, double %b
  %4 = fcmp ogt double %a, %b
  %5 = fcmp uno double %a, %a
  %6 = or i1 %4, %5
  %7 = select i1 %6, double %a, double %b
  %8 = fadd double %3, %7
  ret double %8
}
