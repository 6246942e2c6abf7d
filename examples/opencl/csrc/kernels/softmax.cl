// softmax and its logarithm, and their gradients, of rows of neighbours. A variant defines
//   IN, OUT   the dtypes of what is read and written
//   GRAD      for a gradient: the dtype of the result's
//   LOG       for log_softmax
#include "rows.cl"

READER(read_in, IN)
WRITER(write_out, OUT)
ACROSS(sum_across, t + a)
ACROSS(max_across, (a > t) | (a != a) ? a : t)

kernel void forward(long count, long n, global JOIN(memory_, OUT) * out, long out_begin,
                    global const JOIN(memory_, IN) * in, long in_begin) {
  local Number shared[GROUP];
  EACH_JOB(job, count) {
    const long row = min(job, count - 1) * n, length = job < count ? n : 0;
    global const JOIN(memory_, IN)* from = in + in_begin + row;
    Wide t = (Wide)(-INFINITY);
    EACH_PLACE(k, length) {
      const Wide a = read_in(from, k, length - k, -INFINITY);
      t = (a > t) | (a != a) ? a : t;
    }
    const Number most = max_across(t, shared);
    Wide sum = 0;
    EACH_BLOCK(first, length) {
      t = 0;
      EACH_PLACE_OF(k, first, length) t += exp(read_in(from, k, length - k, -INFINITY) - most);
      sum += t;
    }
    const Number total = sum_across(sum, shared);
#ifdef LOG
    const Number rest = log(total);
#else
    const Number factor = 1 / total;
#endif
    EACH_PLACE(k, length) {
      const Wide a = read_in(from, k, length - k, -INFINITY) - most;
#ifdef LOG
      write_out(out + out_begin + row, k, length - k, a - rest);
#else
      write_out(out + out_begin + row, k, length - k, exp(a) * factor);
#endif
    }
  }
}

#ifdef GRAD
READER(read_grad, GRAD)

// From the gradient of the result, and from the result, `y`.
kernel void backward(long count, long n, global JOIN(memory_, OUT) * out, long out_begin,
                     global const JOIN(memory_, GRAD) * grad, long grad_begin,
                     global const JOIN(memory_, IN) * y, long y_begin) {
  local Number shared[GROUP];
  EACH_JOB(job, count) {
    const long row = min(job, count - 1) * n, length = job < count ? n : 0;
    Wide sum = 0;
    EACH_BLOCK(first, length) {
      Wide t = 0;
      EACH_PLACE_OF(k, first, length) {
        const Wide g = read_grad(grad + grad_begin + row, k, length - k, 0);
#ifdef LOG
        t += g;
#else
        t += g * read_in(y + y_begin + row, k, length - k, 0);
#endif
      }
      sum += t;
    }
    const Number total = sum_across(sum, shared);
    EACH_PLACE(k, length) {
      const Wide g = read_grad(grad + grad_begin + row, k, length - k, 0);
      const Wide b = read_in(y + y_begin + row, k, length - k, 0);
#ifdef LOG
      write_out(out + out_begin + row, k, length - k, g - exp(b) * total);
#else
      write_out(out + out_begin + row, k, length - k, (g - total) * b);
#endif
    }
  }
}
#endif
