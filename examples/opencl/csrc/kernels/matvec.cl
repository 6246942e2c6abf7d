// The product of a matrix, whose rows are dense, and a vector: out = alpha * matrix vector
// + beta * added. There is nothing to keep in blocks: each element of the matrix is read once. A
// variant defines INDEX, TYPE, OUT and ADDED as kernels/matmul.cl has them.

typedef JOIN(number_, TYPE) Number;
typedef JOIN(memory_, TYPE) Memory;

#ifdef ON_CPU
#define GROUP 1
#define LANES 32  // sums beside each other, which can be vectorized
#else
#define GROUP 64
#define LANES 1
#endif

#ifdef ADDED
#define ADDED_ARGUMENT \
  , Number beta, global const JOIN(memory_, OUT) * added, long added_begin, INDEX added_apart
#define RESULT(total) \
  alpha * total + beta * JOIN(load_, OUT)(added + added_begin, row * added_apart)
#else
#define ADDED_ARGUMENT
#define RESULT(total) alpha * total
#endif

// The sum of the elements that a work item of a group takes.
Number row_product(global const Memory* row, global const Memory* vector, INDEX columns,
                   int item) {
  Number sums[LANES];
  for (int lane = 0; lane < LANES; ++lane) sums[lane] = 0;
  INDEX i = item * LANES;
  for (; i + LANES <= columns; i += LANES * GROUP) {
    for (int lane = 0; lane < LANES; ++lane) {
      sums[lane] += JOIN(load_, TYPE)(row, i + lane) * JOIN(load_, TYPE)(vector, i + lane);
    }
  }
  Number sum = 0;
  for (; i < columns; ++i) {  // on a GPU there is no rest
    sum += JOIN(load_, TYPE)(row, i) * JOIN(load_, TYPE)(vector, i);
  }
  for (int lane = 0; lane < LANES; ++lane) sum += sums[lane];
  return sum;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void matvec(
    INDEX rows, INDEX columns, INDEX apart, INDEX out_apart, Number alpha,
    global JOIN(memory_, OUT) * out, long out_begin, global const Memory* matrix,
    long matrix_begin, global const Memory* vector, long vector_begin ADDED_ARGUMENT) {
  local Number sums[GROUP];
  const int item = get_local_id(0);
  for (INDEX row = get_group_id(0); row < rows; row += get_num_groups(0)) {
    sums[item] = row_product(matrix + matrix_begin + row * apart, vector + vector_begin, columns,
                             item);
    for (int rest = GROUP / 2; rest > 0; rest /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (item < rest) sums[item] += sums[item + rest];
    }
    if (item == 0) JOIN(store_, OUT)(out + out_begin, row * out_apart, RESULT(sums[0]));
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
