"""Which module has the kernels of an operator, so that a model imports those that it needs.

It repeats the modules' KERNELS tuples; tests/unit/cpu/test_kernel_families.py keeps both equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FAMILIES: Mapping[str, Mapping[str, str]] = {
    "activation": {
        "": (
            "Celu Clip Elu Gelu HardSigmoid IsInf LeakyRelu PRelu Selu Shrink SwiGLU Swish "
            "ThresholdedRelu"
        )
    },
    "attention": {"": "Attention RotaryEmbedding"},
    "binary": {
        "": (
            "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater "
            "GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Xor"
        )
    },
    "cast": {"": "BitCast Cast CastLike"},
    "control_flow": {"": "If Loop SequenceMap"},
    "conv": {"": "Conv"},
    "conv_integer": {"": "ConvInteger QLinearConv"},
    "conv_transpose": {"": "ConvTranspose"},
    "detection": {"": "MaxRoiPool RoiAlign"},
    "draw": {
        "": (
            "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform "
            "RandomUniformLike"
        )
    },
    "einsum": {"": "Einsum"},
    "experimental": {
        "": (
            "Affine Crop DynamicSlice ImageScaler MeanVarianceNormalization ParametricSoftplus "
            "Scale ScaledTanh ThresholdedRelu"
        )
    },
    "fill": {
        "": (
            "BlackmanWindow Constant ConstantOfShape EyeLike HammingWindow HannWindow "
            "MelWeightMatrix Range"
        )
    },
    "gather": {"": "Gather GatherElements GatherND"},
    "grid": {"": "AffineGrid DeformConv GridSample"},
    "images": {"": "ImageDecoder"},
    "matmul": {"": "Det Gemm MatMul"},
    "matmul_integer": {"": "MatMulInteger QLinearMatMul"},
    "ngrams": {"": "TfIdfVectorizer"},
    "norm": {
        "": (
            "BatchNormalization GroupNormalization InstanceNormalization LRN "
            "LayerNormalization LpNormalization MeanVarianceNormalization RMSNormalization"
        )
    },
    "pool": {
        "": ("AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxUnpool")
    },
    "quantize": {"": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear"},
    "rearrange": {"": "Col2Im DepthToSpace SpaceToDepth"},
    "recurrent_attention": {"": "CausalConvWithState LinearAttention"},
    "reduce": {
        "": (
            "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
            "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
        )
    },
    "resize": {"": "Resize Upsample"},
    "rnn": {"": "GRU LSTM RNN"},
    "scan": {"": "Scan"},
    "scatter": {"": "Scatter ScatterElements ScatterND TensorScatter"},
    "select": {"": "Compress CumProd CumSum NonZero OneHot TopK Unique"},
    "sequence": {
        "": (
            "ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt "
            "SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
            "SplitToSequence"
        )
    },
    "shape": {
        "": (
            "Concat Expand Flatten Identity Reshape Shape Size Split Squeeze Tile Transpose "
            "Unsqueeze"
        )
    },
    "signal": {"": "DFT STFT"},
    "slicing": {"": "CenterCropPad Pad ReverseSequence Slice Trilu"},
    "softmax": {"": "Hardmax LogSoftmax NegativeLogLikelihoodLoss Softmax SoftmaxCrossEntropyLoss"},
    "suppress_boxes": {"": "NonMaxSuppression"},
    "text": {"": "RegexFullMatch StringConcat StringNormalizer StringSplit"},
    "training": {"ai.onnx.preview.training": "Adagrad Adam Momentum"},
    "unary": {
        "": (
            "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor "
            "HardSwish IsNaN Log Mish Neg Not Reciprocal Relu Round Sigmoid Sign Sin Sinh "
            "Softplus Softsign Sqrt Tan Tanh"
        )
    },
    "where": {"": "Where"},
    "contrib_attention": {"com.microsoft": "Attention MultiHeadAttention QAttention"},
    "contrib_channels_last": {"com.microsoft": "NhwcMaxPool QLinearAveragePool QLinearConv"},
    "contrib_conv": {"com.microsoft": "FusedConv FusedGemm"},
    "contrib_fused": {
        "": "SimplifiedLayerNormalization",
        "com.microsoft": (
            "BiasGelu EmbedLayerNormalization FastGelu FusedMatMul Gelu QEmbedLayerNormalization "
            "QuickGelu "
            "SimplifiedLayerNormalization SkipLayerNormalization "
            "SkipSimplifiedLayerNormalization TransposeMatMul"
        ),
    },
    "contrib_group_attention": {"com.microsoft": "GroupQueryAttention RotaryEmbedding"},
    "contrib_cut": {"com.microsoft": "CropAndResize DynamicTimeWarping UnfoldTensor"},
    "contrib_hash": {"com.microsoft": "MurmurHash3"},
    "contrib_lstm": {"com.microsoft": "DynamicQuantizeLSTM"},
    "contrib_matmul": {
        "com.microsoft": "DynamicQuantizeMatMul MatMulInteger16 MatMulIntegerToFloat QGemm"
    },
    "contrib_nbits": {"com.microsoft": "GatherBlockQuantized MatMulBnb4 MatMulNBits"},
    "contrib_experts": {"com.microsoft": "MoE QMoE"},
    "contrib_sparse": {"com.microsoft": "SparseToDenseMatMul"},
    "contrib_plain": {
        "com.microsoft": (
            "CDist DequantizeLinear ExpandDims GatherND GridSample Inverse NGramRepeatBlock "
            "Pad QuantizeLinear Range Trilu Unique"
        )
    },
    "contrib_quant": {
        "com.microsoft": (
            "QLinearAdd QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul "
            "QLinearSigmoid QLinearSoftmax QLinearWhere"
        )
    },
    "contrib_text": {"com.microsoft": "Tokenizer"},
    "ml_categories": {"ai.onnx.ml": "LabelEncoder OneHotEncoder"},
    "ml_svm": {"ai.onnx.ml": "LinearClassifier SVMClassifier SVMRegressor"},
    "ml_tree": {"ai.onnx.ml": "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor"},
    "ml_values": {
        "ai.onnx.ml": (
            "CastMap CategoryMapper DictVectorizer FeatureVectorizer LinearRegressor Normalizer "
            "Scaler ZipMap"
        )
    },
}
"""Operators by module and domain; modules in the order in which their kernels are looked at."""
