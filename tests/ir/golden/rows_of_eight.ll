define internal i1 @f.rows(ptr %columns, i64 %start, ptr noalias %out, i64 %vectors)
{
entry:
  %0 = getelementptr ptr, ptr %columns, i64 0
  %1 = load ptr, ptr %0, align 4
  %2 = getelementptr ptr, ptr %columns, i64 1
  %3 = load ptr, ptr %2, align 4
  br label %head
head:
  %index = phi i64 [0, %entry], [%4, %body]
  %5 = phi i1 [0, %entry], [%5, %body]
  %6 = icmp slt i64 %index, %vectors
  br i1 %6, label %body, label %done
body:
  %7 = mul i64 %index, 8
  %8 = add i64 %start, %7
  %9 = getelementptr double, ptr %1, i64 %8
  %10 = load <8 x double>, ptr %9, align 8
  %11 = getelementptr double, ptr %3, i64 %8
  %12 = load <8 x double>, ptr %11, align 8
  %13 = fmul <8 x double> %10, %10
  %14 = fmul <8 x double> %12, %12
  %15 = fadd <8 x double> %13, %14
  %16 = call <8 x double> @llvm.sqrt.v8f64(<8 x double> %15)
  %17 = getelementptr double, ptr %out, i64 %7
  store <8 x double> %16, ptr %17, align 8
  %4 = add i64 %index, 1
  br label %head
done:
  ret i1 %5
}
