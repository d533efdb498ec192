#include "warpsmith/learn/moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "warpsmith/base/error.h"

namespace warpsmith::learn {

Moments::Moments(std::int64_t n, bool bytes, bool has_sign, const at::TensorOptions& options)
    : n_(n), has_sign_(has_sign) {
  if (!bytes) {
    values_ = at::empty({n}, options.dtype(at::kFloat));
    return;
  }
  codes_ = at::empty({n}, options.dtype(has_sign ? at::kChar : at::kByte));
  scales_ = at::empty({(n + kBlock - 1) / kBlock}, options.dtype(at::kFloat));
}

Moments::Moments(const at::Tensor& values, bool bytes, bool has_sign) {
  if (!bytes) {
    n_ = values.numel();
    values_ = values;
    return;
  }
  *this = Moments(values.numel(), true, has_sign, values.options());
  for (std::int64_t at = 0; at < n_; at += kAtATime)
    put(at, values.narrow(0, at, std::min(kAtATime, n_ - at)));
}

Moments Moments::first_of(std::int64_t n) const {
  Moments some = *this;
  some.n_ = n;
  if (values_.defined()) some.values_ = values_.narrow(0, 0, n);
  if (codes_.defined()) some.codes_ = codes_.narrow(0, 0, n);
  if (scales_.defined()) some.scales_ = scales_.narrow(0, 0, (n + kBlock - 1) / kBlock);
  return some;
}

std::vector<at::Tensor> Moments::tensors() const {
  return values_.defined() ? std::vector{values_} : std::vector{codes_, scales_};
}

at::Tensor Moments::read(std::int64_t begin, std::int64_t n) const {
  if (values_.defined()) return values_.narrow(0, begin, n);
  const at::Tensor codes = codes_.narrow(0, begin, n).to(at::kFloat);
  const at::Tensor share =
      has_sign_ ? codes.abs() * codes / (127.f * 127.f) : (codes / 255.f).square().square();
  const at::Tensor scales = scales_.narrow(0, begin / kBlock, (n + kBlock - 1) / kBlock);
  return share * scales.repeat_interleave(kBlock).narrow(0, 0, n);
}

void Moments::put(std::int64_t begin, const at::Tensor& values) {
  const std::int64_t n = values.numel();
  if (values_.defined()) {
    if (values.data_ptr() != values_.narrow(0, begin, n).data_ptr())
      values_.narrow(0, begin, n).copy_(values);
    return;
  }
  if (begin % kBlock != 0 || (n % kBlock != 0 && begin + n != n_))
    throw Error("moments in bytes are put in whole blocks");
  const std::int64_t missing = (kBlock - n % kBlock) % kBlock;
  const at::Tensor blocks =
      (missing > 0 ? at::constant_pad_nd(values, {0, missing}) : values).view({-1, kBlock});
  const at::Tensor most = blocks.abs().amax(1, true);
  const at::Tensor share = blocks / at::where(most > 0, most, 1);
  at::Tensor codes;
  if (has_sign_)
    codes = (share.abs().sqrt() * share.sign() * 127.f).round();
  else
    codes = at::where(share > 0, (share.sqrt().sqrt() * 255.f).round().clamp_min(1), 0);
  codes_.narrow(0, begin, n).copy_(codes.flatten().narrow(0, 0, n));
  scales_.narrow(0, begin / kBlock, blocks.size(0)).copy_(most.squeeze(1));
}

std::int64_t Moments::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor& x : tensors()) sum += static_cast<std::int64_t>(x.nbytes());
  return sum;
}

}  // namespace warpsmith::learn
