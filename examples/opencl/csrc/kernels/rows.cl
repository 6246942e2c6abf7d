// How rows of neighbours are walked. A team takes a row: on a CPU one work item, whose vector unit
// computes WIDTH neighbours together; on a GPU TEAM work items of a group, which meet in local
// memory. A kernel that includes this file is written once for both. A variant defines
//   NUMBER   the dtype in which it computes
//   TEAM     the work items of a team, a power of two; 1 on a CPU

typedef JOIN(number_, NUMBER) Number;

#ifdef ON_CPU
#define WIDTH 16
#define GROUP 1
#define VECTOR(size) JOIN(JOIN(number_, NUMBER), size)
typedef VECTOR(16) Wide;
#define TO_WIDE JOIN(convert_, VECTOR(16))
#define GATHERED(some) vload16(0, some)
#define SPREAD(value, some) vstore16(value, 0, some)
#else
#define WIDTH 1
#define GROUP 256
typedef Number Wide;
#define GATHERED(some) (some)[0]
#define SPREAD(value, some) (some)[0] = (value)
#endif

#define LANE ((long)get_local_id(0) % TEAM)

// Every team of a group takes the same number of steps, since all wait for each other. So `job` may
// be beyond the last one, where a team has to read nothing (`n` is 0) and to write nothing.
#ifdef ON_CPU
#define EACH_JOB(job, jobs)                                                                \
  for (long job = (jobs) * (long)get_global_id(0) / (long)get_global_size(0),              \
            last_ = (jobs) * ((long)get_global_id(0) + 1) / (long)get_global_size(0);      \
       job < last_; ++job)
#define LEADS(job, jobs) true
#else
#define EACH_JOB(job, jobs)                                                                \
  for (long job = get_global_id(0) / TEAM; job - (long)get_local_id(0) / TEAM < (jobs);    \
       job += get_global_size(0) / TEAM)
#define LEADS(job, jobs) (LANE == 0 && (job) < (jobs))
#endif

// The places of a row at which this work item begins to compute WIDTH elements.
#define EACH_PLACE(k, n) for (long k = LANE * WIDTH; k < (n); k += TEAM * WIDTH)

// The same places in two loops, for sums: 3,000 numbers that are added one by one to a float32 leave
// four digits of their sum. Each block has a sum of its own, to be added to the row's.
#define STRIDE_OF_BLOCKS (64 * TEAM * WIDTH)
#define EACH_BLOCK(first, n) for (long first = LANE * WIDTH; first < (n); first += STRIDE_OF_BLOCKS)
#define EACH_PLACE_OF(k, first, n)                                                         \
  for (long k = first; k < min((long)(n), first + STRIDE_OF_BLOCKS); k += TEAM * WIDTH)

#define LOWEST JOIN(lowest_, NUMBER)
#define HIGHEST JOIN(highest_, NUMBER)
#define lowest_f32 (-INFINITY)
#define lowest_i64 LONG_MIN
#define lowest_i32 INT_MIN
#define lowest_bool 0
#define highest_f32 INFINITY
#define highest_i64 LONG_MAX
#define highest_i32 INT_MAX
#define highest_bool 1

// Reads WIDTH elements of a dtype; those beyond the `left` that a row still has are `other`.
// Writes as many.
#ifdef ON_CPU
#define wide_f32(from) vload16(0, from)
#define wide_f16(from) vload_half16(0, from)
#define wide_bf16(from) as_float16(convert_uint16(vload16(0, from)) << 16)
#define wide_i64(from) vload16(0, from)
#define wide_i32(from) vload16(0, from)
#define wide_bool(from) min(vload16(0, from), (uchar16)1)

#define READER(name, type)                                                                 \
  Wide name(global const JOIN(memory_, type) * from, long place, long left, Number other) { \
    if (left >= WIDTH) return TO_WIDE(JOIN(wide_, type)(from + place));                     \
    Number some[WIDTH];                                                                    \
    for (int i = 0; i < WIDTH; ++i) {                                                      \
      some[i] = i < left ? (Number)JOIN(load_, type)(from, place + i) : other;             \
    }                                                                                      \
    return GATHERED(some);                                                               \
  }

#define WRITER(name, type)                                                                 \
  void name(global JOIN(memory_, type) * to, long place, long left, Wide value) {          \
    Number some[WIDTH];                                                                    \
    SPREAD(value, some);                                                                  \
    if (left >= WIDTH) {                                                                   \
      for (int i = 0; i < WIDTH; ++i) JOIN(store_, type)(to, place + i, some[i]);          \
    } else {                                                                               \
      for (int i = 0; i < left; ++i) JOIN(store_, type)(to, place + i, some[i]);           \
    }                                                                                      \
  }
#else
#define READER(name, type)                                                                 \
  Wide name(global const JOIN(memory_, type) * from, long place, long left, Number other) { \
    return left > 0 ? (Number)JOIN(load_, type)(from, place) : other;                      \
  }

#define WRITER(name, type)                                                                 \
  void name(global JOIN(memory_, type) * to, long place, long left, Wide value) {          \
    if (left > 0) JOIN(store_, type)(to, place, value);                                    \
  }
#endif

// Makes a function that combines what the work items of a team have, and gives it to each of them.
// The expression is of `t` and `a`, numbers or vectors. `shared` is local memory for GROUP numbers.
#ifdef ON_CPU
#define HALVE(size, from, to, expression)                                                  \
  VECTOR(size) to;                                                                         \
  {                                                                                        \
    const VECTOR(size) t = from.lo, a = from.hi;                                           \
    to = expression;                                                                       \
  }
#define ACROSS(name, expression)                                                           \
  Number name(Wide mine, local Number* shared) {                                           \
    HALVE(8, mine, eight, expression)                                                      \
    HALVE(4, eight, four, expression)                                                      \
    HALVE(2, four, two, expression)                                                        \
    const Number t = two.lo, a = two.hi;                                                   \
    return expression;                                                                     \
  }
#else
#define ACROSS(name, expression)                                                           \
  Number name(Wide mine, local Number* shared) {                                           \
    const int item = get_local_id(0);                                                      \
    shared[item] = mine;                                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                                          \
    for (int half_ = TEAM / 2; half_ > 0; half_ /= 2) {                                    \
      if (LANE < half_) {                                                                  \
        const Number t = shared[item], a = shared[item + half_];                           \
        shared[item] = expression;                                                         \
      }                                                                                    \
      barrier(CLK_LOCAL_MEM_FENCE);                                                        \
    }                                                                                      \
    const Number all = shared[item - LANE];                                                \
    barrier(CLK_LOCAL_MEM_FENCE);                                                          \
    return all;                                                                            \
  }
#endif
