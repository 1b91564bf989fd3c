define double @f(double %a, double %b)
{
entry:
  %0 = fmul double %a, %a
  %1 = fmul double %a, %a
  %2 = fmul double %1, %a
  %3 = fadd double %0, %2
  %4 = call double @shine.pow.f64(double %a, double %b)
  %5 = fadd double %3, %4
  ret double %5
}
