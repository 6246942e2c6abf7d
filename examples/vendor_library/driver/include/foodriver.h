#pragma once

#include <stddef.h>

#if defined(_WIN32) && defined(FOODRIVER_BUILDS)
#define FOO_API __declspec(dllexport)
#elif defined(_WIN32)
#define FOO_API __declspec(dllimport)
#else
#define FOO_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a vendor's driver looks like: C functions that return a status. This one simulates its
   devices on the host's memory; the environment variable FOO_DEVICES says how many, 2 by default.
 */

typedef enum {
  FOO_OK = 0,
  FOO_INVALID_DEVICE = 1,
  FOO_OUT_OF_MEMORY = 2,
} foo_status;

FOO_API const char* foo_status_text(foo_status status);

FOO_API foo_status foo_get_device_count(int* count);
FOO_API foo_status foo_get_device(int* device);
FOO_API foo_status foo_set_device(int device);

FOO_API foo_status foo_malloc(void** pointer, size_t bytes, int device);
FOO_API foo_status foo_free(void* pointer);
FOO_API foo_status foo_copy(void* dst, const void* src, size_t bytes);
FOO_API foo_status foo_synchronize(int device);

#ifdef __cplusplus
}
#endif
