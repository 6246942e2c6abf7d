// Skeletons of kernels, begun by `backendgen ops --stub`. They compile once backend.toml has
//
//   [operators.kernels]
{{#kernels}}
//   {{op_quoted}} = {{function_quoted}}
{{/kernels}}

#include "kernels.h"

#include <c10/util/Exception.h>
{{#kernels}}

// {{schema}}
{{head}} {
  TORCH_CHECK_NOT_IMPLEMENTED(false, {{message_quoted}});
}
{{/kernels}}
