// The loss of each row's target. A variant defines
//   IN, TARGET   the dtypes of the rows and of the targets
//   WEIGHT       that of the classes' factors, if there are any
//   OUT          that of the losses
//   GRAD         for the gradient, with the dtype of the result's; MEAN if that is a mean

#ifdef WEIGHT
#define FACTOR(target) JOIN(load_, WEIGHT)(weight + weight_begin, target)
#else
#define WEIGHT f32
#define FACTOR(target) 1.0f
#endif

typedef long INDEX;

#ifndef GRAD
// A target that is no class, which OpenCL has no way to report, makes the loss NaN.
kernel void forward(long rows, long classes, long ignored, global JOIN(memory_, OUT) * losses,
                    long losses_begin, global float* factors, long factors_begin,
                    global const JOIN(memory_, IN) * in, long in_begin,
                    global const JOIN(memory_, TARGET) * targets, long targets_begin,
                    global const JOIN(memory_, WEIGHT) * weight, long weight_begin) {
  EACH(row, rows) {
    const long target = targets[targets_begin + row];
    const bool counts = target != ignored, known = target >= 0 && target < classes;
    const float factor = !counts ? 0 : known ? FACTOR(target) : NAN;
    const float value =
        counts && known ? -factor * JOIN(load_, IN)(in + in_begin, row * classes + target) : 0;
    factors[factors_begin + row] = factor;
    JOIN(store_, OUT)(losses + losses_begin, row, counts && !known ? NAN : value);
  }
}
#else
// Writes what is not 0: each row's target. `step` is 0 if the gradient is of one number.
kernel void backward(long rows, long classes, long ignored, long step,
                     global JOIN(memory_, OUT) * out, long out_begin,
                     global const JOIN(memory_, GRAD) * grad, long grad_begin,
                     global const JOIN(memory_, GRAD) * total, long total_begin,
                     global const JOIN(memory_, TARGET) * targets, long targets_begin,
                     global const JOIN(memory_, WEIGHT) * weight, long weight_begin) {
  EACH(row, rows) {
    const long target = targets[targets_begin + row];
    if (target == ignored || target < 0 || target >= classes) continue;
    float value = -FACTOR(target) * JOIN(load_, GRAD)(grad + grad_begin, row * step);
#ifdef MEAN
    value /= JOIN(load_, GRAD)(total + total_begin, 0);
#endif
    JOIN(store_, OUT)(out + out_begin, row * classes + target, value);
  }
}
#endif
