define double @f(double %a)
{
entry:
  %0 = fneg double %a
  %1 = call double @shine.exp.f64(double %0)
  %2 = fadd double 0x3ff0000000000000, %1
  %3 = fdiv double 0x3ff0000000000000, %2
  %4 = fcmp ogt double %a, 0x0
  %5 = fcmp uno double %a, %a
  %6 = or i1 %4, %5
  %7 = select i1 %6, double %a, double 0x0
  %8 = fadd double %3, %7
  ret double %8
}
