"""Every operator of the library, small, with its options."""

SPECS = """
matmul:5,6,7 matmul:5,6,7:float64 matmul:5,6,7:int32 matmul:5,6,7:float16 matmul:5,6,7:bfloat16
matmul:5,6,7,acc_dtype=float16:float16 matmul:5,6,7,acc_dtype=bfloat16:bfloat16
matmul:4,5,6,transpose_a=true matmul:4,5,6,transpose_b=true matmul:4,5,6,batch=3
matmul:4,5,6,transpose_a=true,transpose_b=true,batch=2x3 matmul:4,5,6,bias=true,activation=gelu
matmul:4,5,6,bias=true,activation=gelu_tanh matmul:4,5,6,activation=silu
matmul:4,5,6,activation=tanh matmul:4,5,6,activation=leaky_relu matmul:4,5,6,activation=sigmoid
matmul:4,5,6,activation=relu:int32 matmul:4,5,64,out_dtype=int32:int8
matmul:4,5,64,out_dtype=int32,bias=true:uint8 matmul:4,5,64,out_dtype=float32:float16
matmul:4,5,64,acc_dtype=float32:float16 matmul:4,5,64,acc_dtype=float32:bfloat16
matmul:4,5,6,out_dtype=float32:float8_e4m3fn matmul:4,5,6,acc_dtype=float32:float8_e5m2
matmul:4,5,64,out_dtype=float32,bias=true:bfloat16 batch_matmul:2,3,4,5
batch_matmul:2,3,4,5,transpose_b=true batch_matmul:2,3,4,5,transpose_a=true,out_dtype=int32:int8
mm_relu:4,5,6 matmul_bias_relu:4,5,6 linear_relu:3,4,5 dense:4,5,6
dense:4,5,6,bias=true,activation=relu conv1d:2,3,12,4,3 conv1d:2,4,12,6,3,2,1,2,2
conv1d:2,4,12,6,3,1,1,layout=NWC,groups=2,bias=true,activation=relu conv2d:2,3,8,8,4,3
conv2d:1,3,8,9,4,3,2,1 conv2d:1,4,9,9,6,3,1,2,2,2 conv2d:1,4,5,5,4,1 conv2d:1,3,12,12,4,7,2,3
conv2d:2,4,7,9,6,3x2,2x1,1x0 conv2d:2,4,7,9,6,3,padding=1x0x2x1 conv2d:2,4,7,9,6,3,1,1,layout=NHWC
conv2d:2,4,7,9,6,3,2,1,2,2,layout=NHWC conv2d:2,4,7,9,6,3,1,1,layout=NHWC,bias=true,activation=gelu
conv2d:1,4,7,9,6,3,1,1,out_dtype=int32:int8 conv3d:1,2,5,6,7,4,3,1,1
conv3d:1,2,5,6,7,4,3x2x1,2,1,layout=NDHWC conv3d:1,4,5,5,5,4,2,1,0,2,2 conv2d_transpose:2,3,5,4,4,3
conv2d_transpose:2,3,5,4,4,3,2,1,1 conv2d_transpose:1,2,3,5,3,2,3,1,2
conv2d_transpose:1,3,5,4,4,4x3,2x3,1x2,1x0,bias=true,activation=relu depthwise_conv2d:2,3,8,9,3
conv2d_winograd:1,3,7,9,4 conv2d_winograd:2,3,8,8,4,1,4
conv2d_winograd:1,2,7,5,3,0x1x2x1,2:float64
conv2d_winograd:1,3,9,9,4,1,4,bias=true,activation=relu conv2d_nchwc:2,8,7,6,12,3,2,1,1,4,6
conv2d_nchwc:1,8,6,6,8,3x1,1,1x0,1,8,4 conv2d_nchwc:1,16,4,4,16,1,out_dtype=int32:int8
depthwise_conv2d:1,3,9,9,3,2,1,2 depthwise_conv2d:2,3,8,9,3,2,1,layout=NHWC
depthwise_conv2d:2,3,8,9,3,1,1,multiplier=2
depthwise_conv2d:2,3,8,9,3x5,1,1x2,multiplier=2,layout=NHWC,bias=true max_pool2d:2,3,8,9,2
max_pool2d:2,3,8,9,3,2,1 max_pool2d:2,3,8,9,3,2,1,ceil_mode=true
max_pool2d:2,3,8,9,3x2,2x3,1x1,layout=NHWC,ceil_mode=true max_pool2d:1,2,9,9,3,1,1,2
max_pool2d:1,2,9,9,3,2,1:int32 avg_pool2d:2,3,8,9,2 avg_pool2d:2,3,8,9,3,2,1
avg_pool2d:2,3,8,9,3,2,1,count_include_pad=false avg_pool2d:2,3,8,9,3,2,1,ceil_mode=true
avg_pool2d:1,2,7,7,2,3,ceil_mode=true
avg_pool2d:2,3,8,9,3,2,1,ceil_mode=true,count_include_pad=false
avg_pool2d:2,3,7,10,3x2,2x3,1x0,ceil_mode=true,layout=NHWC
avg_pool2d:1,2,8,8,3,3,1x0x0x1,count_include_pad=false softmax:4,9 softmax:7 softmax:2,3,4
softmax:2,3,4,axis=1 softmax:2,3,4,axis=0 log_softmax:5,9 log_softmax:2,3,4,axis=1 layer_norm:4,9
layer_norm:2,3,4 layer_norm:2,3,4,axis=1 layer_norm:3,4,epsilon=0.1 rms_norm:3,8
rms_norm:2,3,4,axis=1,epsilon=0.01 batch_norm:2,3,4,5 batch_norm:2,3,4,axis=2 attention:2,2,5,6,4
attention:1,2,6,6,4,causal=true attention:1,2,4,6,4,causal=true,scale=0.3 gelu:3,4
gelu:3,4,approximate=tanh leaky_relu:3,4,negative_slope=0.2 clip:3,4,a_min=-0.5
clip:3,4,a_min=-2,a_max=3:int32 cast:3,4,out_dtype=int32 cast:3,4,out_dtype=bfloat16
cast:3,4,out_dtype=float32:int8 abs:3,4 abs:3,4:int32 ceil:3,4 cos:3,4 erf:3,4 exp:3,4 floor:3,4
log:3,4 negative:3,4 negative:3,4:int32 relu:2,3,4 round:3,4 rsqrt:3,4 sigmoid:3,4 silu:3,4 sin:3,4
sqrt:3,4 tan:3,4 tanh:3,4 trunc:3,4 add:7 add:3,4,other=4 add:3,4,other=3x1 add:4,other=2x3x1
divide:3,4,other=1x4 maximum:3,4 minimum:3,4:int32 multiply:2,3,4,other=3x1 power:3,4
subtract:3,4,other=1 sum:3,4,5 sum:3,4,5,axis=1 sum:3,4,5,axis=0x2 sum:3,4,5,axis=-1,keepdims=true
sum:3,4,5:int32 sum:3,4,5,axis=0x2,keepdims=true mean:3,4,5,axis=1x2 mean:3,4 max:3,4,5,axis=0
min:3,4,5,axis=0x1,keepdims=true prod:3,4,axis=1 row_sum:3,9 argmax:3,4,5,axis=1 argmax:3,4,5
argmax:3,4,5,axis=0x2 argmax:3,4,5,axis=0x2,keepdims=true argmax:20,50:int8 argmin:3,4,axis=-1
argmin:20,50,axis=1:int32 topk:3,9,k=4
lstm_cell:3,5,4 gru_cell:3,5,4
lstm_cell:2,8,4:bfloat16 gru_cell:2,8,4:float16 topk:2,3,40,k=3,largest=false
topk:5,k=5 topk:4,33,k=8:bfloat16
argmin:7 transpose:3,5 transpose:2,3,4 transpose:2,3,4,axes=1x0x2
transpose:5 concat:2,3 concat:2,3,axis=1 concat:2,3,sizes=1x4x2,axis=-1 pad:3,4
pad:3,4,pad_before=1x0,pad_after=2x3,pad_value=1.5 pad:3,4,pad_before=0,pad_after=1:int32
take:6,4,indices=5 take:6,4,indices=2x3,axis=1 take:3,6,4,indices=5,axis=1,index_dtype=int64
gather:4,8 gather:4,8,indices=4x3,axis=1 gather:4,8,indices=2x5 embedding:10,4,7
embedding:10,4,2,3,index_dtype=int64 cumsum:9 cumsum:3,5 cumsum:3,5,axis=0
cumsum:2,3,4,axis=1:int32
mm_relu:4,5,6:bfloat16 matmul_bias_relu:4,5,6:float16 linear_relu:3,4,5:bfloat16
dense:4,5,6,bias=true,activation=gelu:float16 conv2d:2,3,8,8,4,3,bias=true,activation=relu:bfloat16
depthwise_conv2d:2,3,8,9,3:float16 conv2d_transpose:2,3,5,4,4,3:bfloat16
conv2d_nchwc:2,8,7,6,12,3,2,1,1,4,6:float16 avg_pool2d:2,3,8,9,3,2,1,ceil_mode=true:bfloat16
softmax:4,9:float16 log_softmax:5,9:bfloat16 layer_norm:4,9:bfloat16 rms_norm:3,8:float16
attention:1,2,6,6,4,causal=true:bfloat16 grouped_query_attention:1,4,2,3,7,4
layer_norm:4,9,residual=true layer_norm:2,3,4,axis=1,residual=true:bfloat16
rms_norm:3,8,residual=true:float16 rms_norm:2,3,4,axis=1,residual=true group_norm:2,6,5,groups=3
group_norm:1,4,3,5,groups=2,activation=silu group_norm:2,4,3,groups=1,epsilon=0.1:bfloat16
embedding_bag:10,4,3,5 embedding_bag:10,4,3,5,mode=mean:bfloat16 embedding_bag:10,4,3,2:int32
embedding_bag:10,4,3,5,weights=true,index_dtype=int64
grouped_query_attention:2,4,1,1,6,4,causal=true,past=5
grouped_query_attention:2,2,2,3,6,4,causal=true,past=2,mask=true,scale=0.3
grouped_query_attention:1,4,2,2,7,4,mask=true:bfloat16 sum:3,4,5,axis=1:bfloat16
prod:3,4,axis=1:float16 mean:3,4,5,axis=1x2:float16 row_sum:3,9:float8_e4m3fn cumsum:3,5:bfloat16
softmax:4,9:float8_e5m2
matmul:4,5,64,out_dtype=int32:uint8 requantize:3,4 requantize:2,3,4,axis=1,zero_point=7
requantize:3,4,zero_point=130,out_dtype=uint8 quantized_dense:4,6,20
quantized_dense:4,6,20,bias=true,input_zero_point=100,zero_point=-3,out_dtype=int8
quantized_dense:4,6,19,weight_dtype=uint8,input_zero_point=-7,out_dtype=uint8:int8
quantized_conv2d:1,8,5,6,4,3,1,1 quantized_conv2d:1,8,5,6,4,3,1,1,bias=true,input_zero_point=5
quantized_conv2d:2,4,7,6,6,3x2,2,1x0x0x1,1,2,layout=NHWC,bias=true,input_zero_point=-4:int8
quantized_dense:4,6,20,reduce_range=true
quantized_conv2d:1,8,5,6,4,3,1,1,input_zero_point=7,reduce_range=true
dense_int4:1,5,64 dense_int4:4,5,64 dense_int4:3,5,128,64,zero_point=true
dense_int4:1,5,64,16,zero_point=true:bfloat16 dense_int8:1,5,64,32 dense_int8:4,5,64
dense_int8:3,5,64,16:bfloat16 dense_int4:3,5,64,32,zero_point=true:bfloat16
embedding_bag:10,4,3,5,total=8 embedding_bag:10,4,3,5,total=8,mode=mean
embedding_bag:10,4,3,5,total=8,weights=true:bfloat16
lstm:3,2,5,4 lstm:2,3,8,4:bfloat16 gru:3,2,5,4 gru:2,2,8,4:float16
softmax:3,2,9,lengths=true softmax:4,9,2,lengths=true,axis=1:bfloat16
grouped_query_attention:3,4,2,3,7,4,lengths=true
grouped_query_attention:2,2,2,3,6,4,causal=true,past=2,mask=true,lengths=true:bfloat16
""".split()  # noqa: SIM905 - as they are typed
