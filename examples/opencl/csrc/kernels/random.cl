// Random numbers of Philox4x32-10. A variant defines
//   OUT      the dtype of the result
//   UNIFORM, NORMAL, BERNOULLI, INTEGERS   what to draw
//
// The numbers depend on the generator's state only: subsequence t, at the place `offset` of the
// state, makes the elements from 4 * t on, for all devices alike.

uint4 philox(ulong seed, ulong offset, ulong subsequence) {
  uint4 counter = (uint4)((uint)offset, (uint)(offset >> 32), (uint)subsequence,
                          (uint)(subsequence >> 32));
  uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  for (int round = 0; round < 10; ++round) {
    const uint high0 = mul_hi(0xD2511F53U, counter.x), low0 = 0xD2511F53U * counter.x;
    const uint high1 = mul_hi(0xCD9E8D57U, counter.z), low1 = 0xCD9E8D57U * counter.z;
    counter = (uint4)(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += (uint2)(0x9E3779B9U, 0xBB67AE85U);
  }
  return counter;
}

#define TWO_TO_MINUS_24 0x1p-24f

// In [0, 1).
float unit(uint bits) { return (bits >> 8) * TWO_TO_MINUS_24; }

// The same with as many digits as a dtype has, so that none is rounded to 1.
#define unit_f32(bits) unit(bits)
#define unit_f16(bits) unit((bits) & 0xffe00000U)
#define unit_bf16(bits) unit((bits) & 0xff000000U)

// Two numbers of the normal distribution, by Box and Muller; the logarithm is not of 0.
float2 normal_pair(uint one, uint other) {
  const float radius = sqrt(-2 * log(((one >> 8) + 1) * TWO_TO_MINUS_24));
  const float angle = unit(other) * 6.28318530717958648f;
  return (float2)(radius * cos(angle), radius * sin(angle));
}

typedef long INDEX;

// `x` and `y` are: the limits; the mean and the standard deviation; the probability. Integers are
// from `base` on, as many as `range`, or any if it is 0.
kernel void draw(long count, ulong seed, ulong offset, float x, float y, long base, ulong range,
                 global JOIN(memory_, OUT) * out, long out_begin) {
  out += out_begin;
#ifdef INTEGERS
  const long each = 2;  // numbers of 64 bits
#else
  const long each = 4;
#endif
  EACH(t, (count + each - 1) / each) {
    const uint4 bits = philox(seed, offset, t);
#ifdef INTEGERS
    const ulong some[2] = {(ulong)bits.x << 32 | bits.y, (ulong)bits.z << 32 | bits.w};
    for (int i = 0; i < 2; ++i) {
      const long value = (long)(range == 0 ? some[i] : some[i] % range) + base;
#else
    const uint all[4] = {bits.x, bits.y, bits.z, bits.w};
#ifdef NORMAL
    const float2 first = normal_pair(bits.x, bits.y), second = normal_pair(bits.z, bits.w);
    const float some[4] = {first.x, first.y, second.x, second.y};
#endif
    for (int i = 0; i < 4; ++i) {
#if defined(NORMAL)
      const float value = x + y * some[i];
#elif defined(UNIFORM)
      const float some = x + (y - x) * JOIN(unit_, OUT)(all[i]);
      const float value = some < y ? some : x;
#else
      const int value = unit(all[i]) < x;
#endif
#endif
      if (t * each + i < count) JOIN(store_, OUT)(out, t * each + i, value);
    }
  }
}
