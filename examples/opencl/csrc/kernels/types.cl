// How each dtype lies in memory, and how it is read and written. Numbers of 16 bits are computed in
// float, bool and small integers in int. Every kernel source begins with this file, after the macros
// of its variant.

#define JOIN_(left, right) left##right
#define JOIN(left, right) JOIN_(left, right)

// How it lies in memory.
#define memory_f32 float
#define memory_f16 half
#define memory_bf16 ushort
#define memory_i64 long
#define memory_i32 int
#define memory_bool uchar
#define memory_u8 uchar
#define memory_i16 short

// What a kernel computes with.
#define number_f32 float
#define number_f16 float
#define number_bf16 float
#define number_i64 long
#define number_i32 int
#define number_bool int
#define number_u8 int
#define number_i16 int

#define load_f32(from, place) (from)[place]
#define load_f16(from, place) vload_half(place, from)
#define load_bf16(from, place) as_float((uint)(from)[place] << 16)
#define load_i64(from, place) (from)[place]
#define load_i32(from, place) (from)[place]
#define load_bool(from, place) ((from)[place] != 0)
#define load_u8(from, place) (from)[place]
#define load_i16(from, place) (from)[place]

#define store_f32(to, place, value) (to)[place] = (value)
#define store_f16(to, place, value) store_half(value, place, to)
#define store_bf16(to, place, value) (to)[place] = rounded_to_bf16(value)
#define store_i64(to, place, value) (to)[place] = (value)
#define store_i32(to, place, value) (to)[place] = (value)
#define store_bool(to, place, value) (to)[place] = (value) != 0
#define store_u8(to, place, value) (to)[place] = (value)
#define store_i16(to, place, value) (to)[place] = (value)

// Drivers differ in the bits of a NaN, which the CPU's conversion leaves no choice.
void store_half(float value, long place, global half* to) {
  if (isnan(value)) {
    ((global ushort*)to)[place] = 0x7e00;
  } else {
    vstore_half_rte(value, place, to);
  }
}

ushort rounded_to_bf16(float value) {
  const uint bits = as_uint(value);
  if (isnan(value)) return 0x7fc0;
  return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The part of `count` elements that a work item computes. A CPU's work item takes neighbours, which
// its vector unit computes together; on a GPU, neighbouring work items take them.
#ifdef ON_CPU
#define EACH(place, count)                                                                   \
  for (INDEX place = (INDEX)((ulong)(count)*get_global_id(0) / get_global_size(0)),          \
             last_ = (INDEX)((ulong)(count) * (get_global_id(0) + 1) / get_global_size(0)); \
       place < last_; ++place)
#else
#define EACH(place, count) \
  for (INDEX place = get_global_id(0); place < (count); place += get_global_size(0))
#endif

// In place, an element is read and written by the same step, so steps do not depend on each other.
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
