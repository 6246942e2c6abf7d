// One element of the result from many. What is kept has two dimensions, and so has what is reduced:
// rows of elements. A variant defines
//   A, OUT            the dtypes of the tensor and of the result
//   START             of which every total begins
//   STEP, COMBINE     a total `t` and an element `a`, or another total `a`, make a total
//   FINISH            the result of a total `t` and the number `x`
//   SHIFT             if each total has a number `m` of its own, which STEP may use
#include "rows.cl"

typedef struct {
  long kept[2];       // sizes; the last has neighbours, if it is the tensor's that lie so
  long from[2];       // strides of the tensor, for the kept dimensions
  long to[2];         // strides of the result
  long shift[2];      // strides of the numbers `m`
  long rows, length;  // sizes of the reduced dimensions
  long total;         // the elements of all rows: the last row may be shorter
  long row_stride, stride;
  long parts;         // each computes the total of some of the rows
  long part_stride;   // of the result
} Reduction;

READER(read_a, A)
ACROSS(across, COMBINE)

#ifdef SHIFT
#define READ_SHIFT(offset) shift[shift_begin + (offset)]
#define OTHER m
#else
#define READ_SHIFT(offset) START
#define OTHER START
#endif

#define FIRST_ROW(part) (r.parts == 1 ? (part) * r.rows : (part) * r.rows / r.parts)

// Divisions take longer than short rows do.
long quotient(long number, long divisor) { return divisor == 1 ? number : number / divisor; }

// Rows of neighbours: a team takes them one by one.
kernel void rows(Reduction r, float x, global JOIN(memory_, OUT) * out, long out_begin,
                 global const JOIN(memory_, A) * in, long in_begin, global const float* shift,
                 long shift_begin) {
  local Number shared[GROUP];
  const long jobs = r.kept[0] * r.kept[1] * r.parts;
  EACH_JOB(job, jobs) {
    const long kept = quotient(min(job, jobs - 1), r.parts);
    const long part = min(job, jobs - 1) - kept * r.parts;
    const long i = r.kept[0] == 1 ? 0 : kept / r.kept[1], j = kept - i * r.kept[1];
    const Number m = READ_SHIFT(i * r.shift[0] + j * r.shift[1]);
    Wide totals = (Wide)(START);
    for (long row = FIRST_ROW(part); row < FIRST_ROW(part + 1); ++row) {
      global const JOIN(memory_, A)* from =
          in + in_begin + i * r.from[0] + j * r.from[1] + row * r.row_stride;
      const long n = job < jobs ? min(r.length, r.total - row * r.length) : 0;
      Wide t = (Wide)(START);
      EACH_PLACE(k, n) {
        const Wide a = read_a(from, k, n - k, OTHER);
        t = STEP;
      }
      const Wide a = totals;
      totals = COMBINE;
    }
    const Number t = across(totals, shared);
    if (LEADS(job, jobs)) {
      out += out_begin;
      JOIN(store_, OUT)(out, i * r.to[0] + j * r.to[1] + part * r.part_stride, FINISH);
      out -= out_begin;
    }
  }
}

// Columns that are neighbours: a work item takes some of them, on a CPU as many as stay in its
// first cache, on a GPU one.
#ifdef ON_CPU
#define BLOCK 16
#else
#define BLOCK 1
#endif

kernel void columns(Reduction r, float x, global JOIN(memory_, OUT) * out, long out_begin,
                    global const JOIN(memory_, A) * in, long in_begin, global const float* shift,
                    long shift_begin) {
  const long blocks = (r.kept[1] + BLOCK * WIDTH - 1) / (BLOCK * WIDTH);
  const long jobs = r.kept[0] * blocks * r.parts;
  EACH_JOB(job, jobs) {
    if (job >= jobs) return;
    const long block = job % blocks, part = job / blocks % r.parts, i = job / blocks / r.parts;
    const long begin = block * BLOCK * WIDTH, left = r.kept[1] - begin;
    Wide all[BLOCK], totals[BLOCK], shifts[BLOCK];
    for (int b = 0; b < BLOCK; ++b) {
      totals[b] = (Wide)(START);
      Number some[WIDTH];
      for (int w = 0; w < WIDTH; ++w) {
        const long j = begin + min((long)(b * WIDTH + w), left - 1);
        some[w] = READ_SHIFT(i * r.shift[0] + j * r.shift[1]);
      }
      shifts[b] = GATHERED(some);
    }
    for (long row = FIRST_ROW(part); row < FIRST_ROW(part + 1); ++row) {
      const long n = min(r.length, r.total - row * r.length);
      for (int b = 0; b < BLOCK; ++b) all[b] = (Wide)(START);
      for (long k = 0; k < n; ++k) {
        global const JOIN(memory_, A)* from =
            in + in_begin + i * r.from[0] + begin + row * r.row_stride + k * r.stride;
        for (int b = 0; b < BLOCK && b * WIDTH < left; ++b) {
          const Wide m = shifts[b], t = all[b];
          const Wide a = read_a(from, b * WIDTH, left - b * WIDTH, START);
          all[b] = STEP;
        }
      }
      for (int b = 0; b < BLOCK; ++b) {
        const Wide t = totals[b], a = all[b];
        totals[b] = COMBINE;
      }
    }
    for (int b = 0; b < BLOCK; ++b) {
      Number some[WIDTH];
      SPREAD(totals[b], some);
      for (int w = 0; w < WIDTH && b * WIDTH + w < left; ++w) {
        const long j = begin + b * WIDTH + w;
        const Number t = some[w];
        JOIN(store_, OUT)(out + out_begin, i * r.to[0] + j * r.to[1] + part * r.part_stride, FINISH);
      }
    }
  }
}
