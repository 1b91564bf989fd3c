define double @f(double %a, double %b)
{
entry:
  %0 = fmul double %a, %a
  %1 = fmul double %b, %b
  %2 = fadd double %0, %1
  %3 = fadd double %2, 0x3ff0000000000000
  %4 = call double @llvm.sqrt.f64(double %3)
  %5 = fdiv double %4, %3
  ret double %5
}
