define double @f(double %a, double %b)
{
entry:
  %0 = call double @shine.fmod.f64(double %a, double %b)
  %1 = fcmp olt double %b, 0x0
  %2 = fcmp olt double %0, 0x0
  %3 = xor i1 %1, %2
  %4 = fadd double %0, %b
  %5 = select i1 %3, double %4, double %0
  %6 = fcmp oeq double %0, 0x0
  %7 = call double @llvm.copysign.f64(double 0x0, double %b)
  %8 = select i1 %6, double %7, double %5
  ret double %8
}
