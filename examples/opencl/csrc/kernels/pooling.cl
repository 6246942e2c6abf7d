// Pooling: each element of the small image is made of a window of the large one. The gradient of an
// element of the large image is a sum over the windows in which it is. A variant defines
//   INDEX     int, or long where an offset needs it
//   TYPE      the dtype
//   ADAPTIVE  if the windows divide the large image evenly, instead of having a size

typedef JOIN(number_, TYPE) Number;
typedef JOIN(memory_, TYPE) Memory;

#define lowest_f32 (-INFINITY)
#define lowest_f16 (-INFINITY)
#define lowest_bf16 (-INFINITY)
#define lowest_i64 LONG_MIN
#define lowest_i32 INT_MIN

#define is_nan_f32(number) isnan(number)
#define is_nan_f16(number) isnan(number)
#define is_nan_bf16(number) isnan(number)
#define is_nan_i64(number) false
#define is_nan_i32(number) false

typedef struct {
  INDEX length, stride, padding, dilation, large, small;  // the length of a window, the images'
} Axis;

typedef struct {
  INDEX batches, channels;
  Axis y, x;
  INDEX large[4], small[4], indices[4];  // strides
  INDEX counts_padding, divisor;         // of an average; a divisor of 0: the size of the window
} Shape;

#define AT(strides, y, x) \
  (n * s.strides[0] + channel * s.strides[1] + (y) * s.strides[2] + (x) * s.strides[3])

// The batch, the channel and the place of an element of an image.
#define FIND_ELEMENT(job, image)                                    \
  const INDEX x = job % s.x.image, y = job / s.x.image % s.y.image; \
  const INDEX channel = job / s.x.image / s.y.image % s.channels;   \
  const INDEX n = job / s.x.image / s.y.image / s.channels

// Where a window begins and ends, in the image with its padding.
INDEX begin_of(Axis a, INDEX window) {
#ifdef ADAPTIVE
  return (INDEX)((ulong)window * a.large / a.small);
#else
  return window * a.stride - a.padding;
#endif
}

INDEX end_of(Axis a, INDEX window) {
#ifdef ADAPTIVE
  return (INDEX)(((ulong)(window + 1) * a.large + a.small - 1) / a.small);
#else
  return min(begin_of(a, window) + a.length, a.large + a.padding);
#endif
}

// The first window in which a place may be, and the one after the last.
INDEX first_window(Axis a, INDEX place) {
#ifdef ADAPTIVE
  return (INDEX)((ulong)place * a.small / a.large);
#else
  const INDEX begin = place + a.padding - (a.length - 1) * a.dilation;
  return begin <= 0 ? 0 : (begin + a.stride - 1) / a.stride;
#endif
}

INDEX last_window(Axis a, INDEX place) {
#ifdef ADAPTIVE
  return (INDEX)(((ulong)(place + 1) * a.small + a.large - 1) / a.large);
#else
  return min(a.small, (place + a.padding) / a.stride + 1);
#endif
}

// What the sum over a window is divided by.
Number divisor_of(const Shape* s, INDEX window_y, INDEX window_x) {
  if (s->divisor != 0) return s->divisor;
  INDEX begin_y = begin_of(s->y, window_y), end_y = end_of(s->y, window_y);
  INDEX begin_x = begin_of(s->x, window_x), end_x = end_of(s->x, window_x);
  if (!s->counts_padding) {
    begin_y = max(begin_y, (INDEX)0);
    begin_x = max(begin_x, (INDEX)0);
    end_y = min(end_y, s->y.large);
    end_x = min(end_x, s->x.large);
  }
  return (end_y - begin_y) * (end_x - begin_x);
}

kernel void avg_pool(Shape s, global Memory* small, long small_begin, global const Memory* large,
                     long large_begin) {
  small += small_begin;
  large += large_begin;
  EACH(job, s.batches * s.channels * s.y.small * s.x.small) {
    FIND_ELEMENT(job, small);
    const INDEX end_y = min(end_of(s.y, y), s.y.large), end_x = min(end_of(s.x, x), s.x.large);
    Number sum = 0;
    for (INDEX row = max(begin_of(s.y, y), (INDEX)0); row < end_y; ++row) {
      for (INDEX column = max(begin_of(s.x, x), (INDEX)0); column < end_x; ++column) {
        sum += JOIN(load_, TYPE)(large, AT(large, row, column));
      }
    }
    // With ceil_mode, a window may have no element.
    const bool empty = begin_of(s.y, y) >= s.y.large || begin_of(s.x, x) >= s.x.large;
    JOIN(store_, TYPE)(small, AT(small, y, x), empty ? 0 : sum / divisor_of(&s, y, x));
  }
}

// The gradients: a line of the large image is computed in parts of so many elements. Its windows
// are found once for a part; on a GPU a work item computes one element.
#ifdef ON_CPU
#define PART 64
#else
#define PART 1
#endif

// Begins the loop over parts: of the line `y` from `x` on, so many elements, whose gradients the
// loop adds to `sums`. Its windows are in these rows and columns of the small image.
#define EACH_PART                                                                               \
  const INDEX parts = (s.x.large + PART - 1) / PART;                                            \
  EACH(job, s.batches * s.channels * s.y.large * parts) {                                       \
    const INDEX x = job % parts * PART, y = job / parts % s.y.large;                            \
    const INDEX channel = job / parts / s.y.large % s.channels;                                 \
    const INDEX n = job / parts / s.y.large / s.channels;                                       \
    const INDEX count = min((INDEX)PART, s.x.large - x);                                        \
    const INDEX first_row = first_window(s.y, y), last_row = last_window(s.y, y);               \
    const INDEX first = first_window(s.x, x), last = last_window(s.x, x + count - 1);           \
    Number sums[PART];                                                                          \
    for (INDEX i = 0; i < count; ++i) sums[i] = 0;

#define END_OF_PART                                                                         \
    for (INDEX i = 0; i < count; ++i) JOIN(store_, TYPE)(large, AT(large, y, x + i), sums[i]); \
  }

kernel void avg_pool_backward(Shape s, global Memory* large, long large_begin,
                              global const Memory* small, long small_begin) {
  large += large_begin;
  small += small_begin;
  EACH_PART
    for (INDEX row = first_row; row < last_row; ++row) {
      for (INDEX column = first; column < last; ++column) {
        const Number share =
            JOIN(load_, TYPE)(small, AT(small, row, column)) / divisor_of(&s, row, column);
        const INDEX begin = max(begin_of(s.x, column) - x, (INDEX)0);
        const INDEX end = min(end_of(s.x, column) - x, count);
        for (INDEX i = begin; i < end; ++i) sums[i] += share;
      }
    }
  END_OF_PART
}

#ifndef ADAPTIVE

// The greatest element of each window and its place, counted in a channel of the large image. Of
// equal ones it is the first, but NaN is greater than all, and there it is the last.
kernel void max_pool(Shape s, global Memory* small, long small_begin, global long* indices,
                     long indices_begin, global const Memory* large, long large_begin) {
  small += small_begin;
  indices += indices_begin;
  large += large_begin;
  EACH(job, s.batches * s.channels * s.y.small * s.x.small) {
    FIND_ELEMENT(job, small);
    INDEX begin_y = begin_of(s.y, y), begin_x = begin_of(s.x, x);
    const INDEX end_y = min(begin_y + (s.y.length - 1) * s.y.dilation + 1, s.y.large);
    const INDEX end_x = min(begin_x + (s.x.length - 1) * s.x.dilation + 1, s.x.large);
    while (begin_y < 0) begin_y += s.y.dilation;
    while (begin_x < 0) begin_x += s.x.dilation;
    Number greatest = JOIN(lowest_, TYPE);
    INDEX place = begin_y * s.x.large + begin_x;
    for (INDEX row = begin_y; row < end_y; row += s.y.dilation) {
      for (INDEX column = begin_x; column < end_x; column += s.x.dilation) {
        const Number one = JOIN(load_, TYPE)(large, AT(large, row, column));
        const bool greater = one > greatest || JOIN(is_nan_, TYPE)(one);
        greatest = greater ? one : greatest;
        place = greater ? row * s.x.large + column : place;
      }
    }
    JOIN(store_, TYPE)(small, AT(small, y, x), greatest);
    indices[AT(indices, y, x)] = place;
  }
}

kernel void max_pool_backward(Shape s, global Memory* large, long large_begin,
                              global const Memory* small, long small_begin,
                              global const long* indices, long indices_begin) {
  large += large_begin;
  small += small_begin;
  indices += indices_begin;
  EACH_PART
    for (INDEX row = first_row; row < last_row; ++row) {
      for (INDEX column = first; column < last; ++column) {
        const INDEX place = indices[AT(indices, row, column)] - (y * s.x.large + x);
        if (place >= 0 && place < count) {
          sums[place] += JOIN(load_, TYPE)(small, AT(small, row, column));
        }
      }
    }
  END_OF_PART
}

#endif
