define double @f(double %a)
{
entry:
  %0 = call double @llvm.floor.f64(double %a)
  %1 = call double @llvm.ceil.f64(double %a)
  %2 = fadd double %0, %1
  %3 = call double @llvm.fabs.f64(double %a)
  %4 = fadd double %2, %3
  %5 = fcmp oeq double %a, 0x0
  %6 = select i1 %5, double 0x0, double %a
  %7 = fcmp olt double %a, 0x0
  %8 = select i1 %7, double 0xbff0000000000000, double %6
  %9 = fcmp ogt double %a, 0x0
  %10 = select i1 %9, double 0x3ff0000000000000, double %8
  %11 = fadd double %4, %10
  ret double %11
}
