// Convolutions in which every channel of the large image has a group of its own. A variant defines
//   INDEX     int, or long where an offset needs it
//   TYPE      the dtype
//   BIAS      if there is one
//   SPREAD    for the direction that fills the large image
// See convolution.h for what is large and small.

typedef JOIN(number_, TYPE) Number;
typedef JOIN(memory_, TYPE) Memory;

typedef struct {
  INDEX batches, channels, size_y, size_x;  // of the result
  INDEX from_y, from_x;                     // the sizes of the image that is read
  INDEX kernel_y, kernel_x, stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
  INDEX times;                              // channels of the small image for each of the large one
  INDEX from_strides[4], to_strides[4];
} Shape;

#define AT(strides, n, c, y, x) \
  ((n) * s.strides[0] + (c) * s.strides[1] + (y) * s.strides[2] + (x) * s.strides[3])

// A place in the image that is read, or -1: of the window at `place`, that of a weight.
#ifdef SPREAD
INDEX source(INDEX place, INDEX weight, INDEX stride, INDEX padding, INDEX dilation, INDEX size) {
  const INDEX scaled = place + padding - weight * dilation;
  return scaled >= 0 && scaled % stride == 0 && scaled / stride < size ? scaled / stride : -1;
}
#else
INDEX source(INDEX place, INDEX weight, INDEX stride, INDEX padding, INDEX dilation, INDEX size) {
  const INDEX found = place * stride - padding + weight * dilation;
  return found < size ? found : -1;
}
#endif
#define SOURCE_Y(place, weight) \
  source(place, weight, s.stride_y, s.padding_y, s.dilation_y, s.from_y)
#define SOURCE_X(place, weight) \
  source(place, weight, s.stride_x, s.padding_x, s.dilation_x, s.from_x)

#ifdef BIAS
#define BIAS_ARGUMENT , global const Memory *bias, long bias_begin
#define FIRST(channel) JOIN(load_, TYPE)(bias + bias_begin, channel)
#else
#define BIAS_ARGUMENT
#define FIRST(channel) 0
#endif

// A line of the result is computed in parts of so many elements: in registers and the first cache
// on a CPU; on a GPU a work item computes one element.
#ifdef ON_CPU
#define PART 64
#else
#define PART 1
#endif

// Adds a line of an image times a weight to a part of a line of the result, from `x` on.
void add_line(Number* sums, Shape s, global const Memory* from, Number weight, INDEX column,
              INDEX x, INDEX count) {
#ifdef SPREAD
  // One in so many elements has a source; without strides, each.
  const INDEX every = s.stride_x, step = 1;
  const INDEX first = x + s.padding_x - column * s.dilation_x;
#else
  const INDEX every = 1, step = s.stride_x;
  const INDEX first = x * s.stride_x - s.padding_x + column * s.dilation_x;
#endif
  const INDEX size = s.from_x * every;
  const INDEX begin = first >= 0 ? 0 : min(count, (step - 1 - first) / step);
  const INDEX end = size <= first ? 0 : min(count, (size - first + step - 1) / step);
  if (every * step == 1 && s.from_strides[3] == 1) {
    for (INDEX i = begin; i < end; ++i) sums[i] += weight * JOIN(load_, TYPE)(from, first + i);
  } else {
    const INDEX late = (first + begin * step) % every;
    for (INDEX i = begin + (late == 0 ? 0 : every - late); i < end; i += every) {
      const INDEX place = (first + i * step) / every;
      sums[i] += weight * JOIN(load_, TYPE)(from, place * s.from_strides[3]);
    }
  }
}

kernel void depthwise(Shape s, global Memory* to, long to_begin, global const Memory* from,
                      long from_begin, global const Memory* weight,
                      long weight_begin BIAS_ARGUMENT) {
  to += to_begin;
  from += from_begin;
  weight += weight_begin;
  const INDEX parts = (s.size_x + PART - 1) / PART;
  EACH(job, s.batches * s.channels * s.size_y * parts) {
    const INDEX x = job % parts * PART, y = job / parts % s.size_y;
    const INDEX channel = job / parts / s.size_y % s.channels;
    const INDEX n = job / parts / s.size_y / s.channels;
    const INDEX count = min((INDEX)PART, s.size_x - x);
    Number sums[PART];
    for (INDEX i = 0; i < PART; ++i) sums[i] = FIRST(channel);
#ifdef SPREAD
    const INDEX begin = channel * s.times, end = begin + s.times;
#else
    const INDEX begin = channel / s.times, end = begin + 1;
#endif
    for (INDEX other = begin; other < end; ++other) {
#ifdef SPREAD
      const INDEX filter = other;
#else
      const INDEX filter = channel;
#endif
      for (INDEX row = 0; row < s.kernel_y; ++row) {
        const INDEX line = SOURCE_Y(y, row);
        if (line < 0) continue;
        for (INDEX column = 0; column < s.kernel_x; ++column) {
          const INDEX place = (filter * s.kernel_y + row) * s.kernel_x + column;
          add_line(sums, s, from + AT(from_strides, n, other, line, 0),
                   JOIN(load_, TYPE)(weight, place), column, x, count);
        }
      }
    }
    for (INDEX i = 0; i < count; ++i) {
      JOIN(store_, TYPE)(to, AT(to_strides, n, channel, y, x + i), sums[i]);
    }
  }
}

#ifndef SPREAD

// The gradient of a weight is a sum over all windows: of the element in `from`, the large image,
// that a weight meets, times that of the small one, which `Shape` describes as the result.
#ifdef ON_CPU

#define GROUP 1
#define LANES 16  // sums beside each other, which can be vectorized

// A line of the small image.
Number line_product(Shape s, global const Memory* from, global const Memory* small, INDEX column) {
  const INDEX first = column * s.dilation_x - s.padding_x, stride = s.stride_x;
  const INDEX left = s.from_x - first + stride - 1;
  const INDEX begin = first >= 0 ? 0 : min(s.size_x, (stride - 1 - first) / stride);
  const INDEX end = left <= 0 ? 0 : min(s.size_x, left / stride);
  Number sums[LANES];
  for (int lane = 0; lane < LANES; ++lane) sums[lane] = 0;
  INDEX i = begin;
  if (stride == 1 && s.from_strides[3] == 1 && s.to_strides[3] == 1) {
    for (; i + LANES <= end; i += LANES) {
      for (int lane = 0; lane < LANES; ++lane) {
        sums[lane] += JOIN(load_, TYPE)(from, first + i + lane) *
                      JOIN(load_, TYPE)(small, i + lane);
      }
    }
  }
  Number sum = 0;
  for (; i < end; ++i) {
    sum += JOIN(load_, TYPE)(from, (first + i * stride) * s.from_strides[3]) *
           JOIN(load_, TYPE)(small, i * s.to_strides[3]);
  }
  for (int lane = 0; lane < LANES; ++lane) sum += sums[lane];
  return sum;
}

Number product(Shape s, global const Memory* from, global const Memory* small, INDEX channel,
               INDEX row, INDEX column) {
  Number sum = 0;
  for (INDEX n = 0; n < s.batches; ++n) {
    for (INDEX y = 0; y < s.size_y; ++y) {
      const INDEX line = SOURCE_Y(y, row);
      if (line < 0) continue;
      sum += line_product(s, from + AT(from_strides, n, channel / s.times, line, 0),
                          small + AT(to_strides, n, channel, y, 0), column);
    }
  }
  return sum;
}

#else

#define GROUP 128

// The part of a work item.
Number product(Shape s, global const Memory* from, global const Memory* small, INDEX channel,
               INDEX row, INDEX column) {
  Number sum = 0;
  for (INDEX i = get_local_id(0); i < s.batches * s.size_y * s.size_x; i += GROUP) {
    const INDEX x = i % s.size_x, y = i / s.size_x % s.size_y, n = i / s.size_x / s.size_y;
    const INDEX from_y = SOURCE_Y(y, row), from_x = SOURCE_X(x, column);
    if (from_y < 0 || from_x < 0) continue;
    sum += JOIN(load_, TYPE)(from, AT(from_strides, n, channel / s.times, from_y, from_x)) *
           JOIN(load_, TYPE)(small, AT(to_strides, n, channel, y, x));
  }
  return sum;
}

#endif

// A work group computes one weight.
__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void depthwise_weight(
    Shape s, global Memory* to, long to_begin, global const Memory* from, long from_begin,
    global const Memory* small, long small_begin) {
  local Number sums[GROUP];
  const INDEX job = get_group_id(0);
  const int item = get_local_id(0);
  sums[item] = product(s, from + from_begin, small + small_begin, job / s.kernel_x / s.kernel_y,
                       job / s.kernel_x % s.kernel_y, job % s.kernel_x);
  for (int rest = GROUP / 2; rest > 0; rest /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < rest) sums[item] += sums[item + rest];
  }
  if (item == 0) JOIN(store_, TYPE)(to + to_begin, job, sums[0]);
}

#endif
