#include "foodriver.h"

#include <stdlib.h>
#include <string.h>

enum { kAlignment = 64, kDefaultDevices = 2, kMostDevices = 16 };

static _Thread_local int current_device = 0;

static int device_count(void) {
  const char* text = getenv("FOO_DEVICES");
  if (text == NULL || *text == '\0') return kDefaultDevices;
  const long count = strtol(text, NULL, 10);
  if (count < 0) return 0;
  return count > kMostDevices ? kMostDevices : (int)count;
}

static foo_status check(int device) {
  return device >= 0 && device < device_count() ? FOO_OK : FOO_INVALID_DEVICE;
}

const char* foo_status_text(foo_status status) {
  switch (status) {
    case FOO_OK: return "done";
    case FOO_INVALID_DEVICE: return "there is no such device";
    case FOO_OUT_OF_MEMORY: return "out of memory";
  }
  return "unknown status";
}

foo_status foo_get_device_count(int* count) {
  *count = device_count();
  return FOO_OK;
}

foo_status foo_get_device(int* device) {
  *device = current_device;
  return FOO_OK;
}

foo_status foo_set_device(int device) {
  const foo_status status = check(device);
  if (status == FOO_OK) current_device = device;
  return status;
}

foo_status foo_malloc(void** pointer, size_t bytes, int device) {
  *pointer = NULL;
  const foo_status status = check(device);
  if (status != FOO_OK) return status;
  if (bytes > (size_t)-1 - kAlignment - sizeof(void*)) return FOO_OUT_OF_MEMORY;
  /* The driver keeps no list of blocks: the address that malloc gave stands before each. */
  char* block = malloc(bytes + kAlignment + sizeof(void*));
  if (block == NULL) return FOO_OUT_OF_MEMORY;
  char* start = block + sizeof(void*);
  start += kAlignment - (size_t)start % kAlignment;
  memcpy(start - sizeof(void*), &block, sizeof(void*));
  *pointer = start;
  return FOO_OK;
}

foo_status foo_free(void* pointer) {
  if (pointer == NULL) return FOO_OK;
  void* block;
  memcpy(&block, (char*)pointer - sizeof(void*), sizeof(void*));
  free(block);
  return FOO_OK;
}

foo_status foo_copy(void* dst, const void* src, size_t bytes) {
  memmove(dst, src, bytes);
  return FOO_OK;
}

foo_status foo_synchronize(int device) { return check(device); }
