// One element of the result from the elements at the same place. A variant defines
//   INDEX            int, or long for tensors of more than 2^31 elements
//   OUT, NUMBER      the dtype of the result, and the one in which the expression is computed
//   INPUTS           how many tensors are read, up to 3; A, B, C: their dtypes
//   AS_NUMBER_A, AS_NUMBER_B, AS_NUMBER_C, AS_RESULT   as_f16 or as_bf16 where the number that is
//                    read, or the expression's value, is to be rounded to NUMBER; else nothing
//   EXPRESSION       of a, b, c, and of the numbers x and y
//   RANK             0: all tensors are dense and in the same order; else the number of dimensions

typedef JOIN(number_, NUMBER) Number;

// A number as a tensor of 16 bits has it.
float as_f16(float value) {
  ushort bits;
  vstore_half_rte(value, 0, (half*)&bits);
  return vload_half(0, (const half*)&bits);
}

float as_bf16(float value) { return as_float((uint)rounded_to_bf16(value) << 16); }

// As PyTorch's CPU has it: a negative power is a fraction, of which 0 is left.
long integer_power(long base, long exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  long power = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) power *= base;
  }
  return power;
}

// erf in float32, by a quotient of polynomials: a compiler makes vectors of it.
float quotient_erf(float a) {
  const float x = clamp(a, -3.92f, 3.92f), s = x * x;
  float p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * s - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return a != a ? a : fabs(a) >= 3.92f ? copysign(1.0f, a) : x * p / q;
}

// 1 - tanh(a) * tanh(a), without the digits that this would cancel.
float slope_of_tanh(float a) {
  const float e = exp(-2 * fabs(a));
  return 4 * e / ((1 + e) * (1 + e));
}

typedef struct {
  INDEX sizes[8];
  INDEX out[8];
  INDEX in[3][8];
} Layout;

#if RANK
INDEX at_place(const INDEX* sizes, const INDEX* strides, INDEX place) {
  INDEX offset = 0;
  for (int i = 0; i < RANK - 1; ++i) {
    offset += place % sizes[i] * strides[i];
    place /= sizes[i];
  }
  return offset + place * strides[RANK - 1];
}
#define OFFSET(strides) at_place(layout.sizes, strides, place)
#else
#define OFFSET(strides) place
#endif

// An input is a tensor, or a number that is the same for every element.
#define TENSOR_INPUT(type, name, begin) , global const JOIN(memory_, type) * name, long begin
#define NUMBER_INPUT(name) , Number name

#if INPUTS > 0
#ifdef NUMBER_A
#define INPUT_A NUMBER_INPUT(in_a)
#define READ_A in_a
#else
#define INPUT_A TENSOR_INPUT(A, in_a, a_begin)
#define READ_A AS_NUMBER_A((Number)JOIN(load_, A)(in_a + a_begin, OFFSET(layout.in[0])))
#endif
#else
#define INPUT_A
#endif

#if INPUTS > 1
#ifdef NUMBER_B
#define INPUT_B NUMBER_INPUT(in_b)
#define READ_B in_b
#else
#define INPUT_B TENSOR_INPUT(B, in_b, b_begin)
#define READ_B AS_NUMBER_B((Number)JOIN(load_, B)(in_b + b_begin, OFFSET(layout.in[1])))
#endif
#else
#define INPUT_B
#endif

#if INPUTS > 2
#ifdef NUMBER_C
#define INPUT_C NUMBER_INPUT(in_c)
#define READ_C in_c
#else
#define INPUT_C TENSOR_INPUT(C, in_c, c_begin)
#define READ_C AS_NUMBER_C((Number)JOIN(load_, C)(in_c + c_begin, OFFSET(layout.in[2])))
#endif
#else
#define INPUT_C
#endif

#if RANK
#define LAYOUT , Layout layout
#else
#define LAYOUT
#endif

kernel void elementwise(INDEX count LAYOUT, Number x, Number y,
                        global JOIN(memory_, OUT) * out, long out_begin INPUT_A INPUT_B INPUT_C) {
  out += out_begin;
  INDEPENDENT
  EACH(place, count) {
#if INPUTS > 0
    const Number a = READ_A;
#endif
#if INPUTS > 1
    const Number b = READ_B;
#endif
#if INPUTS > 2
    const Number c = READ_C;
#endif
    JOIN(store_, OUT)(out, OFFSET(layout.out), AS_RESULT(EXPRESSION));
  }
}
