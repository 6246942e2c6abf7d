// A step of an optimizer for one parameter: everything in one pass. A variant defines
//   INDEX     int, or long for tensors of more than 2^31 elements
//   TYPE      the dtype of the parameter, its gradient and the state
//   SCALED    if gradients are to be divided by a number in memory, as torch.amp scales them
//   CHECKED   if a number in memory may say that a gradient was not finite: then nothing happens
//   LR        if the learning rate is in memory
//   AMSGRAD, DECOUPLED (AdamW), NESTEROV, MOMENTUM   as the optimizers' arguments

typedef JOIN(number_, TYPE) Number;
typedef JOIN(memory_, TYPE) Memory;

#define TENSOR(type, name) , global type *name, long name##_begin

#ifdef SCALED
#define SCALE_ARGUMENT TENSOR(const float, scale)
#define UNSCALED(grad) ((grad) / scale[scale_begin])
#else
#define SCALE_ARGUMENT
#define UNSCALED(grad) (grad)
#endif
#ifdef CHECKED
#define CHECK_ARGUMENT TENSOR(const float, not_finite)
#define RETURN_IF_NOT_FINITE \
  if (not_finite[not_finite_begin] != 0) return
#else
#define CHECK_ARGUMENT
#define RETURN_IF_NOT_FINITE
#endif
#ifdef LR
#define LR_ARGUMENT TENSOR(const float, lr_memory)
#define RATE lr_memory[lr_memory_begin]
#else
#define LR_ARGUMENT
#define RATE lr
#endif
#define OPTIONAL_ARGUMENTS SCALE_ARGUMENT CHECK_ARGUMENT LR_ARGUMENT

#define LOAD(name) JOIN(load_, TYPE)(name + name##_begin, i)
#define STORE(name, value) JOIN(store_, TYPE)(name + name##_begin, i, value)

// The gradient without its scale, which is what the caller sees afterwards.
#ifdef SCALED
#define LOAD_GRADIENT                 \
  float g = UNSCALED(LOAD(gradient)); \
  STORE(gradient, g);                 \
  g *= sign
#else
#define LOAD_GRADIENT float g = sign * LOAD(gradient)
#endif

#ifdef AMSGRAD
#define GREATEST_ARGUMENT TENSOR(Memory, greatest)
#else
#define GREATEST_ARGUMENT
#endif

// `log_beta` are logarithms: 1 - beta^step loses no digits as -expm1(step * log(beta)).
kernel void adam(INDEX count, float lr, float decay, float eps, float sign, float rest_1,
                 float rest_2, float log_beta_1, float log_beta_2 TENSOR(const float, steps)
                     TENSOR(Memory, parameter) TENSOR(Memory, gradient) TENSOR(Memory, average)
                         TENSOR(Memory, square) GREATEST_ARGUMENT OPTIONAL_ARGUMENTS) {
  RETURN_IF_NOT_FINITE;
  const float step = steps[steps_begin], rate = RATE;
  const float size = rate / -expm1(step * log_beta_1);
  const float root = sqrt(-expm1(step * log_beta_2));
  EACH(i, count) {
    LOAD_GRADIENT;
    float p = LOAD(parameter);
#ifdef DECOUPLED
    p -= rate * decay * p;
#else
    g += decay * p;
#endif
    const float old_average = LOAD(average), old_square = LOAD(square);
    const float m = old_average + rest_1 * (g - old_average);
    const float v = old_square + rest_2 * (g * g - old_square);
    STORE(average, m);
    STORE(square, v);
#ifdef AMSGRAD
    const float most = fmax(LOAD(greatest), v);
    STORE(greatest, most);
#else
    const float most = v;
#endif
    STORE(parameter, p - size * m / (sqrt(most) / root + eps));
  }
}

#ifdef MOMENTUM
#define BUFFER_ARGUMENT TENSOR(Memory, buffer)
#else
#define BUFFER_ARGUMENT
#endif

kernel void sgd(INDEX count, float lr, float decay, float momentum, float damped, float sign,
                int first TENSOR(Memory, parameter) TENSOR(Memory, gradient) BUFFER_ARGUMENT
                    OPTIONAL_ARGUMENTS) {
  RETURN_IF_NOT_FINITE;
  const float rate = RATE;
  EACH(i, count) {
    LOAD_GRADIENT;
    const float p = LOAD(parameter);
    g += decay * p;
#ifdef MOMENTUM
    const float moved = first ? g : momentum * LOAD(buffer) + damped * g;
    STORE(buffer, moved);
#ifdef NESTEROV
    g += momentum * moved;
#else
    g = moved;
#endif
#endif
    STORE(parameter, p - rate * g);
  }
}
