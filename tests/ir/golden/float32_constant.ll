define float @f(float %a)
{
entry:
  %0 = fmul float 0x3fb99999a0000000, %a
  %1 = fadd float %0, 0x36a0000000000000
  ret float %1
}
