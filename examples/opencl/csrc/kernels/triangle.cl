// The elements of matrices on one side of a diagonal, and 0 on the other. A variant defines
//   INDEX   int, or long for tensors of more than 2^31 elements
//   RAW     the unsigned type of the elements' size
//   LOWER   for the side below the diagonal

kernel void triangle(INDEX count, INDEX rows, INDEX columns, long diagonal, global RAW* out,
                     long out_begin, global const RAW* in, long in_begin) {
  out += out_begin;
  in += in_begin;
  EACH(place, count) {
    const long beyond = (long)(place % columns) - (long)(place / columns % rows) - diagonal;
#ifdef LOWER
    out[place] = beyond <= 0 ? in[place] : 0;
#else
    out[place] = beyond >= 0 ? in[place] : 0;
#endif
  }
}
