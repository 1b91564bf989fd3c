define double @f(double %a)
{
entry:
  %0 = call double @shine.sin.f64(double %a)
  %1 = call double @shine.exp.f64(double %0)
  %2 = call double @llvm.sqrt.f64(double %a)
  %3 = call double @shine.log.f64(double %2)
  %4 = fadd double %1, %3
  ret double %4
}
