// cuDNN: the library that torch has loaded, opened when it is first asked for, its errors, and a handle.
#pragma once

#include <cudnn.h>

namespace warpsmith::measure::cudnn {

// X(function) of each that is called. Of cuDNN 8 the graphs are not.
#if CUDNN_MAJOR >= 9
#define WARPSMITH_CUDNN_GRAPH_FUNCTIONS(X) \
  X(cudnnGetLastErrorString)               \
  X(cudnnBackendCreateDescriptor)          \
  X(cudnnBackendDestroyDescriptor)         \
  X(cudnnBackendSetAttribute)              \
  X(cudnnBackendGetAttribute)              \
  X(cudnnBackendFinalize)                  \
  X(cudnnBackendExecute)
#else
#define WARPSMITH_CUDNN_GRAPH_FUNCTIONS(X)
#endif
#define WARPSMITH_CUDNN_FUNCTIONS(X)       \
  X(cudnnCreate)                           \
  X(cudnnGetVersion)                       \
  X(cudnnGetErrorString)                   \
  X(cudnnCreateTensorDescriptor)           \
  X(cudnnSetTensor4dDescriptor)            \
  X(cudnnCreateFilterDescriptor)           \
  X(cudnnSetFilter4dDescriptor)            \
  X(cudnnCreateActivationDescriptor)       \
  X(cudnnSetActivationDescriptor)          \
  X(cudnnActivationForward)                \
  X(cudnnCreatePoolingDescriptor)          \
  X(cudnnSetPooling2dDescriptor)           \
  X(cudnnGetPooling2dForwardOutputDim)     \
  X(cudnnPoolingForward)                   \
  X(cudnnSoftmaxForward)                   \
  X(cudnnCreateReduceTensorDescriptor)     \
  X(cudnnSetReduceTensorDescriptor)        \
  X(cudnnGetReductionWorkspaceSize)        \
  X(cudnnReduceTensor)                     \
  X(cudnnCreateConvolutionDescriptor)      \
  X(cudnnSetConvolution2dDescriptor)       \
  X(cudnnSetConvolutionMathType)           \
  X(cudnnGetConvolution2dForwardOutputDim) \
  X(cudnnFindConvolutionForwardAlgorithm)  \
  X(cudnnConvolutionForward)               \
  X(cudnnGetConvolutionForwardWorkspaceSize) WARPSMITH_CUDNN_GRAPH_FUNCTIONS(X)

struct Library {
#define WARPSMITH_CUDNN_POINTER(name) decltype(&::name) name = nullptr;
  WARPSMITH_CUDNN_FUNCTIONS(WARPSMITH_CUDNN_POINTER)
#undef WARPSMITH_CUDNN_POINTER
};

// Throws Error where it does not load or lacks a function.
const Library& api();

// Throws Error with what cuDNN says unless `status` is success. `doing`: "describing a tensor".
void check(cudnnStatus_t status, const char* doing);

// One a process, on the default stream; never destroyed: such a process ends without destructors.
cudnnHandle_t handle();

}  // namespace warpsmith::measure::cudnn
