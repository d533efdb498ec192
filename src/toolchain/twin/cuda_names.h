// Names that CUDA's headers declare for device code and the CPU twin does not supply: made once from the
// headers of CUDA 13.0, less what cuda_twin.h has.
#pragma once

#include <array>
#include <string_view>

namespace warpsmith::toolchain {

// With these begin names of CUDA's alone.
inline constexpr std::array<std::string_view, 14> kCudaPrefixes = {
    "__mbarrier_", "__nv_",   "__nvvm_", "__pipeline_", "__cluster", "__cvta_", "awbarrier_",
    "pipeline_",   "CUDART_", "curand",  "tex1D",       "tex2D",     "tex3D",   "surf2D"};

// Between blanks.
inline constexpr std::string_view kCudaNames =
    " __assert_fail __assertfail __dadd_rd __dadd_ru __dadd_rz __ddiv_rd __ddiv_ru __ddiv_rz __dmul_rd"
    " __dmul_ru __dmul_rz __drcp_rd __drcp_ru __drcp_rz __dsqrt_rd __dsqrt_ru __dsqrt_rz __dsub_rd"
    " __dsub_ru __dsub_rz __fma_rd __fma_ru __fma_rz __fmaf_ieee_rd __fmaf_ieee_rn __fmaf_ieee_ru"
    " __fmaf_ieee_rz __fns __hcmadd __isClusterShared __isConstant __isGlobal __isGridConstant __isLocal"
    " __isShared __ll2double_rd __ll2double_ru __ll2double_rz __match_all_sync __pm0 __pm1 __pm2 __pm3"
    " __prof_trigger __u128AtomicCAS __u128AtomicCAS_block __u128AtomicCAS_system __u128AtomicExch"
    " __u128AtomicExch_block __u128AtomicExch_system __ull2double_rd __ull2double_ru __ull2double_rz"
    " acosh asinh atanh barrier_arrive barrier_wait block_rank block_tile_memory clusterDim clusterIdx"
    " clusterRelativeBlockIdx cluster_dim_blocks coalesced_group cospi cudaRoundMode cyl_bessel_i0"
    " cyl_bessel_i0f cyl_bessel_i1 cyl_bessel_i1f double2int double2ll double2uint double2ull"
    " double4_16a double4_32a erfcinv erfcx erfinv exclusive_scan exclusive_scan_update exp10 fdivide"
    " float2double ilogb inclusive_scan inclusive_scan_update int2double invoke_one_broadcast j0 j0f j1"
    " j1f jn jnf labs lgamma ll2double llmax llmin logb long1 long2 long3 long4_16a long4_32a"
    " longlong4_16a longlong4_32a make_double4_16a make_double4_32a make_long1 make_long2 make_long3"
    " make_long4 make_long4_16a make_long4_32a make_ulong1 make_ulong2 make_ulong3 make_ulong4"
    " make_ulong4_16a make_ulong4_32a memcpy_async multi_grid_group nearbyint nextafter norm4d normcdf"
    " normf reduce_store_async reduce_update_async remquo remquof rnorm rnorm4d rnormf scalbln scalbn"
    " sincos sincospi sinpi tgamma thread_block_scratch uint2double ull2double ullmax ullmin ulong1"
    " ulong2 ulong3 ulong4_16a ulong4_32a ulonglong4_16a ulonglong4_32a wait_prior y0 y0f y1 y1f yn ynf"
    " ";

}  // namespace warpsmith::toolchain
