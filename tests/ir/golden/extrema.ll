define double @f(double %a, double %b)
{
entry:
  %0 = fcmp olt double %a, %b
  %1 = select i1 %0, double %a, double %b
  %2 = fcmp ord double %a, %a
  %3 = select i1 %2, double %1, double %a
  %4 = fcmp ogt double %a, %b
  %5 = select i1 %4, double %a, double %b
  %6 = fcmp ord double %a, %a
  %7 = select i1 %6, double %5, double %a
  %8 = fadd double %3, %7
  ret double %8
}
