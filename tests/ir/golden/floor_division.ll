define double @f(double %a, double %b)
{
entry:
  %0 = call double @shine.fmod.f64(double %a, double %b)
  %1 = fsub double %a, %0
  %2 = fdiv double %1, %b
  %3 = fcmp olt double %b, 0x0
  %4 = fcmp olt double %0, 0x0
  %5 = xor i1 %3, %4
  %6 = fcmp une double %0, 0x0
  %7 = and i1 %5, %6
  %8 = fsub double %2, 0x3ff0000000000000
  %9 = select i1 %7, double %8, double %2
  %10 = call double @llvm.floor.f64(double %9)
  %11 = fsub double %9, %10
  %12 = fcmp ogt double %11, 0x3fe0000000000000
  %13 = fadd double %10, 0x3ff0000000000000
  %14 = select i1 %12, double %13, double %10
  %15 = fdiv double %a, %b
  %16 = call double @llvm.copysign.f64(double 0x0, double %15)
  %17 = fcmp oeq double %9, 0x0
  %18 = select i1 %17, double %16, double %14
  %19 = fcmp oeq double %b, 0x0
  %20 = select i1 %19, double %15, double %18
  ret double %20
}
