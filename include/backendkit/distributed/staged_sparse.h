// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <c10/core/InferenceMode.h>

#include <backendkit/distributed/staged_group.h>

namespace backendkit {

/// An all_reduce of sparse tensors, whose ranks have elements in different places: Gloo adds them.
inline StagedGroup::WorkPtr all_reduce_sparse(StagedGroup& group, const at::Tensor& tensor,
                                              const c10d::AllreduceOptions& options) {
  const c10::InferenceMode normal(false);  // as in StagedBuffer
  auto call = std::make_shared<StagedCall>();
  const c10::Stream stream = device_guard().getStream(tensor.device());
  const auto run = [=, values = tensor.detach().cpu()](c10d::Backend& host) {
    std::vector<at::Tensor> sum{values};
    const auto work = host.allreduce(sum, options);
    const auto bring = [=] {
      const c10::StreamGuard guard(stream);  // on which the program uses the new elements
      tensor.copy_(sum[0]);                  // a detached tensor would get the elements for itself
    };
    return StagedCall::Begun{work, bring};
  };
  call->step({}, run, {});
  return group.collective(c10d::OpType::_ALLREDUCE_SPARSE, "all_reduce_sparse", {tensor}, call);
}

}  // namespace backendkit
