// Random numbers of Philox4x32-10. A variant defines
//   OUT      the dtype of the result
//   UNIFORM, NORMAL, BERNOULLI, INTEGERS   what to draw
//
// The numbers depend on the generator's state only, on every device: subsequence t, from `offset`
// of the state on, makes the elements from 4 * t on; of integers those from 2 * t on.

// A work item of a CPU computes several subsequences together, with its vector unit.
#ifdef ON_CPU
#define LANES 16
#define TURNS (ulong16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define VECTOR(type) JOIN(type, 16)
#define STORE(value, to) vstore16(value, 0, to)
#else
#define LANES 1
#define TURNS 0
#define VECTOR(type) type
#define STORE(value, to) (to)[0] = (value)
#endif
typedef VECTOR(uint) Bits;
typedef VECTOR(ulong) Long;
typedef VECTOR(float) Real;
#define TO_BITS VECTOR(convert_uint)
#define TO_LONG VECTOR(convert_ulong)
#define TO_REAL VECTOR(convert_float)

void philox(ulong seed, ulong offset, Long subsequence, Bits* all) {
  Bits a = (Bits)(uint)offset, b = (Bits)(uint)(offset >> 32);
  Bits c = TO_BITS(subsequence), d = TO_BITS(subsequence >> 32);
  uint one = (uint)seed, other = (uint)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Long left = TO_LONG(a) * (Long)0xD2511F53UL, right = TO_LONG(c) * (Long)0xCD9E8D57UL;
    a = TO_BITS(right >> 32) ^ b ^ one;
    c = TO_BITS(left >> 32) ^ d ^ other;
    b = TO_BITS(right);
    d = TO_BITS(left);
    one += 0x9E3779B9U;
    other += 0xBB67AE85U;
  }
  all[0] = a;
  all[1] = b;
  all[2] = c;
  all[3] = d;
}

#define TWO_TO_MINUS_24 0x1p-24f

// In [0, 1).
Real unit(Bits bits) { return TO_REAL(bits >> 8) * TWO_TO_MINUS_24; }

// The same with as many digits as a dtype has, so that fewer are rounded to 1.
#define unit_f32(bits) unit(bits)
#define unit_f16(bits) unit((bits) & 0xffe00000U)
#define unit_bf16(bits) unit((bits) & 0xff000000U)

// Pairs of numbers of the normal distribution, by Box and Muller; the logarithm is not of 0.
void normal_pair(Bits one, Bits other, Real* pair) {
  const Real radius = sqrt(-2 * log(TO_REAL((one >> 8) + 1) * TWO_TO_MINUS_24));
  const Real angle = unit(other) * 6.28318530717958648f;
  pair[0] = radius * cos(angle);
  pair[1] = radius * sin(angle);
}

#ifdef INTEGERS
#define EACH_DRAWS 2  // of 64 bits
#else
#define EACH_DRAWS 4
#endif

typedef long INDEX;

// `x` and `y` are: the limits; the mean and the standard deviation; the probability. Integers are
// from `base` on, as many as `range`, or any if it is 0.
kernel void draw(long count, ulong seed, ulong offset, float x, float y, long base, ulong range,
                 global JOIN(memory_, OUT) * out, long out_begin) {
  out += out_begin;
  EACH(turn, (count + EACH_DRAWS * LANES - 1) / (EACH_DRAWS * LANES)) {
    Bits bits[4];
    philox(seed, offset, (Long)(ulong)(turn * LANES) + TURNS, bits);
#ifdef INTEGERS
    ulong values[2][LANES];
    for (int i = 0; i < 2; ++i) {
      STORE(TO_LONG(bits[2 * i]) << 32 | TO_LONG(bits[2 * i + 1]), values[i]);
    }
#else
    float values[4][LANES];
    Real some[4];
#ifdef NORMAL
    normal_pair(bits[0], bits[1], some);
    normal_pair(bits[2], bits[3], some + 2);
#endif
    for (int i = 0; i < 4; ++i) {
#if defined(NORMAL)
      STORE(x + y * some[i], values[i]);
#elif defined(UNIFORM)
      STORE(x + (y - x) * JOIN(unit_, OUT)(bits[i]), values[i]);
#else
      STORE(unit(bits[i]), values[i]);
#endif
    }
#endif
    for (int j = 0; j < EACH_DRAWS * LANES; ++j) {
      const long place = turn * EACH_DRAWS * LANES + j;
      if (place >= count) break;
#if defined(INTEGERS)
      const ulong drawn = values[j % EACH_DRAWS][j / EACH_DRAWS];
      JOIN(store_, OUT)(out, place, (long)(range == 0 ? drawn : drawn % range) + base);
#elif defined(BERNOULLI)
      JOIN(store_, OUT)(out, place, values[j % EACH_DRAWS][j / EACH_DRAWS] < x);
#else
      JOIN(store_, OUT)(out, place, values[j % EACH_DRAWS][j / EACH_DRAWS]);
#endif
#ifdef UNIFORM
      // Rounded, it may be the upper limit, which is no result.
      if (JOIN(load_, OUT)(out, place) >= y) JOIN(store_, OUT)(out, place, x);
#endif
    }
  }
}
