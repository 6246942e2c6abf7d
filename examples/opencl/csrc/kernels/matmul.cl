// Products of matrices: out = alpha * a b + beta * added, for a batch of matrices, of which some
// may be summed. Sums have the precision of Number. A variant defines
//   INDEX          int, or long where an offset needs it
//   TYPE, OUT      the dtypes of the factors, and of the result and what is added
//   ADDED          if there is something to add
//   WINDOW_A, WINDOW_B  if that factor is made of the windows of a convolution; see Window
//   ON_CPU         then also TILE_M, TILE_N, TILE_K, the sizes of the blocks in local memory, and
//                  ROWS and VECTOR, the rows and the width of the block in registers

typedef JOIN(number_, TYPE) Number;
typedef JOIN(memory_, TYPE) Memory;

// In elements. A batch is made of groups; what differs in `sum` is added up.
typedef struct {
  INDEX batch, group, sum, row, column;
} Strides;

// A factor of a convolution that exists only here. Its row is (channel, y, x in the kernel), its
// column (y, x of a window): the element that this window multiplies with that weight. It is at
// (window * step + weight * dilation + begin) / divisor, or 0 if that is no place in the image.
// With a divisor above 1, the step is 1.
typedef struct {
  INDEX kernel_y, kernel_x, columns;
  INDEX step_y, step_x, dilation_y, dilation_x, begin_y, begin_x, divisor_y, divisor_x;
  INDEX size_y, size_x, channel, y, x;  // of the image: its sizes, then its strides
} Window;

typedef struct {
  INDEX m, n, k, sums, groups, tile_m, tile_n;
  Strides a, b, out, added;
#if defined WINDOW_A || defined WINDOW_B
  Window window;
#endif
} Problem;

#define BATCH(strides, z) ((z) / p.groups * (strides).batch + (z) % p.groups * (strides).group)

#if defined WINDOW_A || defined WINDOW_B
// A place in the image, or -1.
INDEX along(INDEX scaled, INDEX divisor, INDEX size) {
  if (divisor == 1) return scaled < size ? scaled : -1;
  return scaled >= 0 && scaled % divisor == 0 && scaled / divisor < size ? scaled / divisor : -1;
}

INDEX row_of(const Window* w, INDEX row, INDEX window_y) {
  const INDEX weight = row / w->kernel_x % w->kernel_y;
  return along(window_y * w->step_y + weight * w->dilation_y + w->begin_y, w->divisor_y, w->size_y);
}

INDEX column_of(const Window* w, INDEX row, INDEX window_x) {
  const INDEX weight = row % w->kernel_x;
  return along(window_x * w->step_x + weight * w->dilation_x + w->begin_x, w->divisor_x, w->size_x);
}

Number window_at(global const Memory* image, const Window* w, INDEX row, INDEX column) {
  const INDEX y = row_of(w, row, column / w->columns);
  const INDEX x = column_of(w, row, column % w->columns);
  if (y < 0 || x < 0) return 0;
  const INDEX channel = row / (w->kernel_x * w->kernel_y);
  return JOIN(load_, TYPE)(image, channel * w->channel + y * w->y + x * w->x);
}
#endif

#ifdef WINDOW_A
#define A_AT(r, c) window_at(a, &p.window, r, c)
#else
#define A_AT(r, c) JOIN(load_, TYPE)(a, (r)*p.a.row + (c)*p.a.column)
#endif
#ifdef WINDOW_B
#define B_AT(r, c) window_at(b, &p.window, r, c)
#else
#define B_AT(r, c) JOIN(load_, TYPE)(b, (r)*p.b.row + (c)*p.b.column)
#endif

#ifdef ADDED
#define ADDED_ARGUMENT , Number beta, global const JOIN(memory_, OUT) * added, long added_begin
#define RESULT(total, r, c) \
  alpha * total + beta * JOIN(load_, OUT)(added, (r)*p.added.row + (c)*p.added.column)
#else
#define ADDED_ARGUMENT
#define RESULT(total, r, c) alpha * total
#endif
#define STORE(total, r, c) \
  JOIN(store_, OUT)(out, (r)*p.out.row + (c)*p.out.column, RESULT(total, r, c))

// The tile of a work group, in a grid of one dimension: devices limit the others. Sets the first
// row and column, and the number in the batch.
#define FIND_TILE                                                             \
  const ulong tiles_n = (ulong)((p.n + p.tile_n - 1) / p.tile_n);             \
  const ulong tiles_m = (ulong)((p.m + p.tile_m - 1) / p.tile_m);             \
  const ulong tile = get_group_id(0);                                         \
  const INDEX column = (INDEX)(tile % tiles_n) * p.tile_n;                    \
  const INDEX row = (INDEX)(tile / tiles_n % tiles_m) * p.tile_m;             \
  const INDEX z = (INDEX)(tile / tiles_n / tiles_m)

#define MATMUL                                                                         \
  kernel void matmul(Problem p, Number alpha, global JOIN(memory_, OUT) * out,         \
                     long out_begin, global const Memory* a, long a_begin,             \
                     global const Memory* b, long b_begin ADDED_ARGUMENT)

#ifdef ON_CPU

typedef JOIN(JOIN(number_, TYPE), VECTOR) Vector;
#define LOAD_VECTOR JOIN(vload, VECTOR)
#define STORE_VECTOR JOIN(vstore, VECTOR)

// Rows of blocks are longer than what they hold: else they would share lines of the cache.
#define A_LINE (TILE_K + 20)
#define B_LINE (TILE_N + 32)

// Copies a block of a matrix, as numbers, row by row.
void pack(local Number* to, int line, global const Memory* from, INDEX row, INDEX column, int rows,
          int columns) {
  if (column == 1 || row != 1) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        to[i * line + j] = JOIN(load_, TYPE)(from, i * row + j * column);
      }
    }
  } else {
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < rows; ++i) to[i * line + j] = JOIN(load_, TYPE)(from, i + j * column);
    }
  }
}

#if defined WINDOW_A || defined WINDOW_B
// One row of the same for windows: the windows of a line of the image lie one after the other.
void pack_line(local Number* to, global const Memory* from, const Window* w, INDEX row,
               INDEX window_x, int count) {
  const INDEX first = window_x * w->step_x + row % w->kernel_x * w->dilation_x + w->begin_x;
  const INDEX step = w->step_x;
  const int begin = first >= 0 ? 0 : (int)min((INDEX)count, (step - 1 - first) / step);
  const int end = first >= w->size_x
                      ? begin
                      : (int)max((INDEX)begin,
                                 min((INDEX)count, (w->size_x - first + step - 1) / step));
  for (int i = 0; i < begin; ++i) to[i] = 0;
  if (step == 1 && w->x == 1) {
    for (int i = begin; i < end; ++i) to[i] = JOIN(load_, TYPE)(from, first + i);
  } else {
    for (int i = begin; i < end; ++i) {
      to[i] = JOIN(load_, TYPE)(from, (first + i * step) * w->x);
    }
  }
  for (int i = end; i < count; ++i) to[i] = 0;
}

// The same with a divisor: of the windows, one in so many meets an element of the image.
void pack_spread_line(local Number* to, global const Memory* from, const Window* w, INDEX row,
                      INDEX window_x, int count) {
  const INDEX apart = w->divisor_x;
  const INDEX first = window_x + row % w->kernel_x * w->dilation_x + w->begin_x;
  for (int i = 0; i < count; ++i) to[i] = 0;
  for (INDEX i = (apart - first % apart) % apart; i < count; i += apart) {
    const INDEX x = (first + i) / apart;
    if (first + i >= 0 && x < w->size_x) to[i] = JOIN(load_, TYPE)(from, x * w->x);
  }
}

void pack_windows(local Number* to, int line, global const Memory* image, const Window* w,
                  INDEX row, INDEX column, int rows, int columns) {
  for (int i = 0; i < rows; ++i, ++row) {
    const INDEX channel = row / (w->kernel_x * w->kernel_y);
    for (int done = 0; done < columns;) {
      const INDEX window_y = (column + done) / w->columns, window_x = (column + done) % w->columns;
      const int count = (int)min((INDEX)(columns - done), w->columns - window_x);
      const INDEX y = row_of(w, row, window_y);
      local Number* const place = to + i * line + done;
      if (y < 0) {
        for (int j = 0; j < count; ++j) place[j] = 0;
      } else if (w->divisor_x == 1) {
        pack_line(place, image + channel * w->channel + y * w->y, w, row, window_x, count);
      } else {
        pack_spread_line(place, image + channel * w->channel + y * w->y, w, row, window_x, count);
      }
      done += count;
    }
  }
}
#endif

#ifdef WINDOW_A
#define PACK_A pack_windows(block_a, A_LINE, a, &p.window, row, k, rows, depth)
#else
#define PACK_A                                                                                \
  pack(block_a, A_LINE, a + row * p.a.row + k * p.a.column, p.a.row, p.a.column, rows, depth)
#endif
#ifdef WINDOW_B
#define PACK_B pack_windows(block_b, B_LINE, b, &p.window, k, column, depth, columns)
#else
#define PACK_B                                                                             \
  pack(block_b, B_LINE, b + k * p.b.row + column * p.b.column, p.b.row, p.b.column, depth, \
       columns)
#endif

// Adds the product of ROWS rows and of two vectors of columns to what is in `sums`.
void multiply(local Number* sums, local const Number* a, local const Number* b, int depth) {
  Vector left[ROWS], right[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    left[i] = LOAD_VECTOR(0, sums + i * B_LINE);
    right[i] = LOAD_VECTOR(1, sums + i * B_LINE);
  }
  for (int k = 0; k < depth; ++k) {
    const Vector one = LOAD_VECTOR(0, b + k * B_LINE), two = LOAD_VECTOR(1, b + k * B_LINE);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      left[i] += a[i * A_LINE + k] * one;
      right[i] += a[i * A_LINE + k] * two;
    }
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    STORE_VECTOR(left[i], 0, sums + i * B_LINE);
    STORE_VECTOR(right[i], 1, sums + i * B_LINE);
  }
}

// A work item computes a block of the result, from blocks that fit into the cache.
__attribute__((reqd_work_group_size(1, 1, 1))) MATMUL {
  local Number block_a[TILE_M * A_LINE], block_b[TILE_K * B_LINE], sums[TILE_M * B_LINE];
  FIND_TILE;
  const int rows = (int)min((INDEX)p.tile_m, p.m - row);
  const int columns = (int)min((INDEX)p.tile_n, p.n - column);
  out += out_begin + BATCH(p.out, z);
  a += a_begin + BATCH(p.a, z);
  b += b_begin + BATCH(p.b, z);
#ifdef ADDED
  added += added_begin + BATCH(p.added, z);
#endif
  for (int i = 0; i < TILE_M * B_LINE; ++i) sums[i] = 0;
  for (INDEX sum = 0; sum < p.sums; ++sum, a += p.a.sum, b += p.b.sum) {
    for (INDEX k = 0; k < p.k; k += TILE_K) {
      const int depth = (int)min((INDEX)TILE_K, p.k - k);
      PACK_A;
      PACK_B;
      for (int j = 0; j < columns; j += 2 * VECTOR) {
        for (int i = 0; i < rows; i += ROWS) {
          multiply(sums + i * B_LINE + j, block_a + i * A_LINE, block_b + j, depth);
        }
      }
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) STORE(sums[i * B_LINE + j], row + i, column + j);
  }
}

#else

#define SIDE 64   // of the block of the result that a work group computes
#define DEPTH 16  // of the blocks of the factors; also the side of the work group
#define EACH_OF 4 // the rows and columns of a work item

__attribute__((reqd_work_group_size(DEPTH, DEPTH, 1))) MATMUL {
  local Number block_a[DEPTH][SIDE + 1], block_b[DEPTH][SIDE + 1];
  FIND_TILE;
  const int x = get_local_id(0), y = get_local_id(1);
  out += out_begin + BATCH(p.out, z);
  a += a_begin + BATCH(p.a, z);
  b += b_begin + BATCH(p.b, z);
#ifdef ADDED
  added += added_begin + BATCH(p.added, z);
#endif
  Number sums[EACH_OF][EACH_OF] = {{0}};
  for (INDEX sum = 0; sum < p.sums; ++sum, a += p.a.sum, b += p.b.sum) {
    for (INDEX k = 0; k < p.k; k += DEPTH) {
      // Neighbouring work items read neighbours of `b`, and of `a` if its rows are dense.
      for (int i = 0; i < SIDE; i += DEPTH) {
        block_a[x][y + i] = row + y + i < p.m && k + x < p.k ? A_AT(row + y + i, k + x) : 0;
        block_b[y][x + i] = column + x + i < p.n && k + y < p.k ? B_AT(k + y, column + x + i) : 0;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int d = 0; d < DEPTH; ++d) {
        for (int i = 0; i < EACH_OF; ++i) {
          for (int j = 0; j < EACH_OF; ++j) {
            sums[i][j] += block_a[d][y + i * DEPTH] * block_b[d][x + j * DEPTH];
          }
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  for (int i = 0; i < EACH_OF; ++i) {
    for (int j = 0; j < EACH_OF; ++j) {
      const INDEX to_row = row + y + i * DEPTH, to_column = column + x + j * DEPTH;
      if (to_row < p.m && to_column < p.n) STORE(sums[i][j], to_row, to_column);
    }
  }
}

#endif
