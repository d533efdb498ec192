#include "warpsmith/learn/moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "warpsmith/base/error.h"

namespace warpsmith::learn {

Moments::Moments(const at::Tensor& values, bool bytes, bool has_sign)
    : n_(values.numel()), has_sign_(has_sign) {
  if (!bytes) {
    values_ = values;
    return;
  }
  codes_ = at::empty({n_}, values.options().dtype(has_sign ? at::kChar : at::kByte));
  scales_ = at::zeros({(n_ + kBlock - 1) / kBlock}, values.options());
  for (std::int64_t at = 0; at < n_; at += kAtATime)
    put(at, values.narrow(0, at, std::min(kAtATime, n_ - at)));
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
  for (const at::Tensor& x : {values_, codes_, scales_})
    if (x.defined()) sum += x.numel() * static_cast<std::int64_t>(x.element_size());
  return sum;
}

}  // namespace warpsmith::learn
