define double @f(double %a, double %b)
{
entry:
  %0 = fadd double %a, %b
  %1 = fmul double %a, %b
  %2 = fneg double %a
  %3 = fdiv double %1, %2
  %4 = fsub double %0, %3
  ret double %4
}
