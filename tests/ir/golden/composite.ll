define double @f(double %a)
{
entry:
  %0 = fneg double %a
  %1 = call double @shine.exp.f64(double %0)
  %2 = fadd double 0x3ff0000000000000, %1
  %3 = fdiv double 0x3ff0000000000000, %2
  %4 = fcmp ugt double %a, 0x0
  %5 = select i1 %4, double %a, double 0x0
  %6 = fadd double %3, %5
  ret double %6
}
