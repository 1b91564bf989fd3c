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
  %5 = phi i1 [0, %entry], [%6, %body]
  %7 = icmp slt i64 %index, %vectors
  br i1 %7, label %body, label %done
body:
  %8 = mul i64 %index, 16
  %9 = add i64 %start, %8
  %10 = getelementptr i32, ptr %1, i64 %9
  %11 = load <16 x i32>, ptr %10, align 4
  %12 = getelementptr i32, ptr %3, i64 %9
  %13 = load <16 x i32>, ptr %12, align 4
  %14 = icmp eq <16 x i32> %13, splat (i32 0)
  %15 = icmp eq <16 x i32> %13, splat (i32 -1)
  %16 = or <16 x i1> %14, %15
  %17 = select <16 x i1> %16, <16 x i32> splat (i32 1), <16 x i32> %13
  %18 = sub <16 x i32> splat (i32 0), %11
  %19 = sdiv <16 x i32> %11, %17
  %20 = select <16 x i1> %15, <16 x i32> %18, <16 x i32> %19
  %21 = mul <16 x i32> %20, %13
  %22 = sub <16 x i32> %11, %21
  %23 = xor <16 x i32> %22, %13
  %24 = icmp slt <16 x i32> %23, splat (i32 0)
  %25 = icmp ne <16 x i32> %22, splat (i32 0)
  %26 = and <16 x i1> %24, %25
  %27 = sub <16 x i32> %20, splat (i32 1)
  %28 = select <16 x i1> %26, <16 x i32> %27, <16 x i32> %20
  %29 = getelementptr i32, ptr %out, i64 %8
  store <16 x i32> %28, ptr %29, align 4
  %30 = bitcast <16 x i1> %14 to i16
  %31 = icmp ne i16 %30, 0
  %6 = or i1 %5, %31
  %4 = add i64 %index, 1
  br label %head
done:
  ret i1 %5
}
