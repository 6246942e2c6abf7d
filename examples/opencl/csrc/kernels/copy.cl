// A copy of bytes, for graphs: not every driver can record a copy of memory.

#define INDEX long

kernel void copy_bytes(INDEX count, global uchar* dst, long dst_begin, global const uchar* src,
                       long src_begin) {
  dst += dst_begin;
  src += src_begin;
  INDEPENDENT
  EACH(place, count) dst[place] = src[place];
}
