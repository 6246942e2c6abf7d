// Elements of `data` at places that tensors of indices say: read into a result, written, or added
// to. A variant defines
//   INDEX     int, or long where an offset needs it
//   READ, WRITE, or ADD   the direction; ADD needs TYPE, one of f32, i32, i64
//   RAW       the unsigned type of the elements' size
//   INDICES   how many tensors of indices there are, 1 to 4
//   LINES     if the indices are the same along the first dimension
//   WRAP      if an index may count from the end
//   SKIP      if the elements of one index are left alone

#define MOST 8
#define MOST_INDICES 4

// The sizes and strides of the dimensions, the fastest first. `data` has stride 0 where indices
// choose; its `steps` are what an index is multiplied with.
typedef struct {
  INDEX rank, sizes[MOST], data[MOST], other[MOST], indices[MOST_INDICES][MOST];
  INDEX steps[MOST_INDICES];
  INDEX limits[MOST_INDICES], dims[MOST_INDICES];  // for an index, and the name of its dimension
  INDEX skipped;                                   // an index whose elements are left alone
} Layout;

// What an operator did with an index that is out of range: the first one is kept. `found` is 0, 1
// while the rest is written, and then 2.
typedef struct {
  int found, unused;
  long op, index, dim, size;
} Fault;

INDEX report(global Fault* fault, ulong op, long index, INDEX dim, INDEX size) {
  if (atomic_cmpxchg((volatile global int*)&fault->found, 0, 1) == 0) {
    fault->op = op;
    fault->index = index;
    fault->dim = dim;
    fault->size = size;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_xchg((volatile global int*)&fault->found, 2);
  }
  return -1;
}

#ifdef ADD

typedef JOIN(number_, TYPE) Element;

// OpenCL 1.2 adds no floats at once: tries until nobody else has written meanwhile.
void add_f32(volatile global float* to, float value) {
  volatile global uint* const bits = (volatile global uint*)to;
  uint old = *bits;
  for (;;) {
    const uint seen = atomic_cmpxchg(bits, old, as_uint(as_float(old) + value));
    if (seen == old) return;
    old = seen;
  }
}

void add_i32(volatile global int* to, int value) { atomic_add(to, value); }

#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
void add_i64(volatile global long* to, long value) { atom_add(to, value); }
#endif

#else
typedef RAW Element;
#endif

#ifdef ON_CPU
#define PART 256  // elements of a line for which a work item computes the place once
#else
#define PART 1
#endif

#define INDEX_ARGUMENT(i) , global const long *index_##i, long index_begin_##i

// Adds what an index contributes to the place, or -1 for an element that is left alone.
#define CHOOSE(i, offset)                                                                \
  if (place >= 0) {                                                                      \
    long index = index_##i[index_begin_##i + (offset)];                                  \
    const long given = index;                                                            \
    if (WRAPS && index < 0) index += l.limits[i];                                        \
    if (SKIPS && given == l.skipped) {                                                   \
      place = -1;                                                                        \
    } else if (index < 0 || index >= l.limits[i]) {                                      \
      place = report(fault, op, given, l.dims[i], l.limits[i]);                          \
    } else {                                                                             \
      place += (INDEX)index * l.steps[i];                                                \
    }                                                                                    \
  }

#ifdef WRAP
#define WRAPS 1
#else
#define WRAPS 0
#endif

#ifdef SKIP
#define SKIPS 1
#else
#define SKIPS 0
#endif

#if INDICES > 1
#define SECOND(macro) macro(1)
#define CHOOSE_SECOND(more) CHOOSE(1, at[1] + (more)*l.indices[1][0])
#else
#define SECOND(macro)
#define CHOOSE_SECOND(more)
#endif
#if INDICES > 2
#define THIRD(macro) macro(2)
#define CHOOSE_THIRD(more) CHOOSE(2, at[2] + (more)*l.indices[2][0])
#else
#define THIRD(macro)
#define CHOOSE_THIRD(more)
#endif
#if INDICES > 3
#define FOURTH(macro) macro(3)
#define CHOOSE_FOURTH(more) CHOOSE(3, at[3] + (more)*l.indices[3][0])
#else
#define FOURTH(macro)
#define CHOOSE_FOURTH(more)
#endif

// The place of the element `more` of a line, in `data`.
#define FIND_PLACE(more)                     \
  INDEX place = data_at;                     \
  CHOOSE(0, at[0] + (more)*l.indices[0][0]); \
  CHOOSE_SECOND(more);                       \
  CHOOSE_THIRD(more);                        \
  CHOOSE_FOURTH(more)

#if defined READ
#define MOVE(place, other) to[other] = from[place]
#elif defined WRITE
#define MOVE(place, other) to[place] = from[other]
#else
#define MOVE(place, other) JOIN(add_, TYPE)(to + (place), from[other])
#endif

kernel void index(INDEX count, Layout l, global Element* to, long to_begin,
                  global const Element* from, long from_begin, global Fault* fault, ulong op
                      INDEX_ARGUMENT(0) SECOND(INDEX_ARGUMENT) THIRD(INDEX_ARGUMENT)
                          FOURTH(INDEX_ARGUMENT)) {
  to += to_begin;
  from += from_begin;
  const INDEX parts = (l.sizes[0] + PART - 1) / PART;
  EACH(job, count / l.sizes[0] * parts) {
    const INDEX first = job % parts * PART, end = min(first + PART, l.sizes[0]);
    INDEX line = job / parts, data_at = 0, other_at = 0, at[MOST_INDICES] = {0};
    for (int d = 1; d < l.rank; ++d) {
      const INDEX position = line % l.sizes[d];
      line /= l.sizes[d];
      data_at += position * l.data[d];
      other_at += position * l.other[d];
      for (int i = 0; i < INDICES; ++i) at[i] += position * l.indices[i][d];
    }
#ifdef LINES
    FIND_PLACE(0);
    if (place < 0) continue;
    if (l.data[0] == 1 && l.other[0] == 1) {
      for (INDEX i = first; i < end; ++i) MOVE(place + i, other_at + i);
    } else {
      for (INDEX i = first; i < end; ++i) {
        MOVE(place + i * l.data[0], other_at + i * l.other[0]);
      }
    }
#else
    for (INDEX i = first; i < end; ++i) {
      FIND_PLACE(i);
      if (place >= 0) MOVE(place + i * l.data[0], other_at + i * l.other[0]);
    }
#endif
  }
}
