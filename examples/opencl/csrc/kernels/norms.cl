// Normalization of rows of neighbours. A variant defines
//   IN, OUT   the dtypes of what is read and written
//   WEIGHT    the dtype of the factors, if there are any; BIAS of the summands; GRAD of a gradient
#include "rows.cl"

READER(read_in, IN)
#ifdef OUT
WRITER(write_out, OUT)
#endif
#ifdef WEIGHT
READER(read_weight, WEIGHT)
#else
#define WEIGHT f32
#define read_weight(from, place, left, other) ((Wide)1)
#endif
#ifdef BIAS
READER(read_bias, BIAS)
#else
#define BIAS f32
#define read_bias(from, place, left, other) ((Wide)0)
#endif
ACROSS(sum_across, t + a)

// Each row with the factors and summands of its places; its mean, and one by its deviation.
#ifdef OUT
kernel void layer(long count, long n, float eps, global JOIN(memory_, OUT) * out, long out_begin,
                  global float* means, long means_begin, global float* rstds, long rstds_begin,
                  global const JOIN(memory_, IN) * in, long in_begin,
                  global const JOIN(memory_, WEIGHT) * weight, long weight_begin,
                  global const JOIN(memory_, BIAS) * bias, long bias_begin) {
  local Number shared[GROUP];
  EACH_JOB(job, count) {
    const long row = min(job, count - 1) * n, length = job < count ? n : 0;
    global const JOIN(memory_, IN)* from = in + in_begin + row;
    Wide sum = 0;
    EACH_BLOCK(first, length) {
      Wide t = 0;
      EACH_PLACE_OF(k, first, length) t += read_in(from, k, length - k, 0);
      sum += t;
    }
    const Number mean = sum_across(sum, shared) / n;
    sum = 0;
    EACH_BLOCK(first, length) {
      Wide t = 0;
      EACH_PLACE_OF(k, first, length) {
        const Wide d = read_in(from, k, length - k, mean) - mean;
        t += d * d;
      }
      sum += t;
    }
    const Number rstd = 1 / sqrt(sum_across(sum, shared) / n + eps);
    EACH_PLACE(k, length) {
      const Wide a = (read_in(from, k, length - k, 0) - mean) * rstd;
      const Wide w = read_weight(weight + weight_begin, k, length - k, 0);
      const Wide b = read_bias(bias + bias_begin, k, length - k, 0);
      write_out(out + out_begin + row, k, length - k, a * w + b);
    }
    if (LEADS(job, count)) {
      means[means_begin + job] = mean;
      rstds[rstds_begin + job] = rstd;
    }
  }
}
#endif

// a * in + b, of the numbers of each row: those of row `i` are at `i % period`.
#ifdef OUT
kernel void scale(long count, long n, long period, global JOIN(memory_, OUT) * out, long out_begin,
                  global const JOIN(memory_, IN) * in, long in_begin, global const float* as,
                  long as_begin, global const float* bs, long bs_begin) {
  EACH_JOB(job, count) {
    const long row = min(job, count - 1), length = job < count ? n : 0;
    const Number a = as[as_begin + row % period], b = bs[bs_begin + row % period];
    EACH_PLACE(k, length) {
      const Wide x = read_in(in + in_begin + row * n, k, length - k, 0);
      write_out(out + out_begin + row * n, k, length - k, a * x + b);
    }
  }
}
#endif

#ifdef GRAD
READER(read_grad, GRAD)

#ifdef OUT
kernel void layer_backward(long count, long n, global JOIN(memory_, OUT) * out, long out_begin,
                           global const JOIN(memory_, GRAD) * grad, long grad_begin,
                           global const JOIN(memory_, IN) * in, long in_begin,
                           global const float* means, long means_begin, global const float* rstds,
                           long rstds_begin, global const JOIN(memory_, WEIGHT) * weight,
                           long weight_begin) {
  local Number shared[GROUP];
  EACH_JOB(job, count) {
    const long row = min(job, count - 1), length = job < count ? n : 0;
    const Number mean = means[means_begin + row], rstd = rstds[rstds_begin + row];
    global const JOIN(memory_, GRAD)* gs = grad + grad_begin + row * n;
    global const JOIN(memory_, IN)* xs = in + in_begin + row * n;
    Wide sum = 0, product = 0;
    EACH_BLOCK(first, length) {
      Wide t = 0, s = 0;
      EACH_PLACE_OF(k, first, length) {
        const Wide w = read_weight(weight + weight_begin, k, length - k, 0);
        const Wide g = read_grad(gs, k, length - k, 0) * w;
        t += g;
        s += g * (read_in(xs, k, length - k, mean) - mean);
      }
      sum += t;
      product += s;
    }
    const Number a = sum_across(sum, shared) / n;
    const Number b = sum_across(product, shared) * rstd * rstd / n;
    EACH_PLACE(k, length) {
      const Wide w = read_weight(weight + weight_begin, k, length - k, 0);
      const Wide g = read_grad(gs, k, length - k, 0) * w;
      const Wide d = read_in(xs, k, length - k, 0) - mean;
      write_out(out + out_begin + row * n, k, length - k, (g - a - d * b) * rstd);
    }
  }
}

// a * grad + b * (in - m) + c, of the numbers of each row.
kernel void scale_backward(long count, long n, long period, global JOIN(memory_, OUT) * out,
                           long out_begin, global const JOIN(memory_, GRAD) * grad, long grad_begin,
                           global const JOIN(memory_, IN) * in, long in_begin,
                           global const float* as, long as_begin, global const float* bs,
                           long bs_begin, global const float* cs, long cs_begin,
                           global const float* ms, long ms_begin) {
  EACH_JOB(job, count) {
    const long row = min(job, count - 1), length = job < count ? n : 0;
    const long i = row % period;
    const Number a = as[as_begin + i], b = bs[bs_begin + i], c = cs[cs_begin + i];
    const Number m = ms[ms_begin + i];
    EACH_PLACE(k, length) {
      const Wide g = read_grad(grad + grad_begin + row * n, k, length - k, 0);
      const Wide x = read_in(in + in_begin + row * n, k, length - k, 0);
      write_out(out + out_begin + row * n, k, length - k, a * g + b * (x - m) + c);
    }
  }
}
#endif

// Of each row the sums of the gradient, and of it times the distance from the row's number `m`.
kernel void row_sums(long count, long n, long period, global float* sums, long sums_begin,
                     global float* products, long products_begin,
                     global const JOIN(memory_, GRAD) * grad, long grad_begin,
                     global const JOIN(memory_, IN) * in, long in_begin, global const float* ms,
                     long ms_begin) {
  local Number shared[GROUP];
  EACH_JOB(job, count) {
    const long row = min(job, count - 1), length = job < count ? n : 0;
    const Number m = ms[ms_begin + row % period];
    Wide sum = 0, product = 0;
    EACH_BLOCK(first, length) {
      Wide t = 0, s = 0;
      EACH_PLACE_OF(k, first, length) {
        const Wide g = read_grad(grad + grad_begin + row * n, k, length - k, 0);
        t += g;
        s += g * (read_in(in + in_begin + row * n, k, length - k, m) - m);
      }
      sum += t;
      product += s;
    }
    const Number all = sum_across(sum, shared), all_products = sum_across(product, shared);
    if (LEADS(job, count)) {
      sums[sums_begin + job] = all;
      products[products_begin + job] = all_products;
    }
  }
}

// The same of each column, for some of the rows; here each row has a mean and a factor. A work item
// takes columns that are neighbours.
kernel void column_sums(long count, long n, long parts, global float* sums, long sums_begin,
                        global float* products, long products_begin,
                        global const JOIN(memory_, GRAD) * grad, long grad_begin,
                        global const JOIN(memory_, IN) * in, long in_begin,
                        global const float* means, long means_begin, global const float* rstds,
                        long rstds_begin) {
#ifdef ON_CPU
#define BLOCK 8
#else
#define BLOCK 1
#endif
  const long blocks = (n + BLOCK * WIDTH - 1) / (BLOCK * WIDTH), jobs = blocks * parts;
  EACH_JOB(job, jobs) {
    if (job >= jobs) return;
    const long part = job / blocks, begin = job % blocks * BLOCK * WIDTH, left = n - begin;
    Wide t[BLOCK], s[BLOCK];
    for (int b = 0; b < BLOCK; ++b) t[b] = s[b] = 0;
    for (long row = count * part / parts; row < count * (part + 1) / parts; ++row) {
      const Number mean = means[means_begin + row], rstd = rstds[rstds_begin + row];
      global const JOIN(memory_, GRAD)* gs = grad + grad_begin + row * n + begin;
      global const JOIN(memory_, IN)* xs = in + in_begin + row * n + begin;
      for (int b = 0; b < BLOCK && b * WIDTH < left; ++b) {
        const Wide g = read_grad(gs, b * WIDTH, left - b * WIDTH, 0);
        t[b] += g;
        s[b] += g * (read_in(xs, b * WIDTH, left - b * WIDTH, 0) - mean) * rstd;
      }
    }
    for (int b = 0; b < BLOCK; ++b) {
      Number one[WIDTH], other[WIDTH];
      SPREAD(t[b], one);
      SPREAD(s[b], other);
      for (int w = 0; w < WIDTH && b * WIDTH + w < left; ++w) {
        sums[sums_begin + part * n + begin + b * WIDTH + w] = one[w];
        products[products_begin + part * n + begin + b * WIDTH + w] = other[w];
      }
    }
  }
}
#endif
