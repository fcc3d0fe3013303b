# Turns the CUDA language on as HSM_CUDA says: AUTO (when there is an nvcc), ON (an error without one) or OFF.
# Sets HSM_WITH_CUDA.
#
# nvcc is looked for in CUDACXX, in the Python environment (the release that belongs to its LibTorch), then on
# PATH and in /usr/local/cuda.
set(HSM_WITH_CUDA OFF)
if(NOT HSM_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HSM_CUDA is \"${HSM_CUDA}\"; expected AUTO, ON or OFF")
endif()
if(HSM_CUDA STREQUAL "OFF")
  return()
endif()

file(GLOB hsm_venv_nvcc ${HSM_VENV}/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
if(NOT CMAKE_CUDA_COMPILER)
  if(DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER $ENV{CUDACXX})
  elseif(hsm_venv_nvcc)
    set(CMAKE_CUDA_COMPILER ${hsm_venv_nvcc})
  else()
    find_program(HSM_NVCC nvcc PATHS /usr/local/cuda/bin)
    if(HSM_NVCC)
      set(CMAKE_CUDA_COMPILER ${HSM_NVCC})
    endif()
  endif()
endif()
if(NOT CMAKE_CUDA_COMPILER)
  if(HSM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HSM_CUDA is ON and there is no nvcc in CUDACXX, in ${HSM_VENV}, on PATH or in "
                        "/usr/local/cuda. Run scripts/setup (without --cpu), or configure with HSM_CUDA=OFF")
  endif()
  message(STATUS "CUDA: no nvcc found, compiling for the CPU only")
  return()
endif()

# CMake 3.25 knows no CUDA20 for nvcc 13: kernels are C++17, host code C++20.
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # 90 is compiled to PTX as well, for later devices
endif()
# The toolkit of the Python wheels has lib where nvcc looks for lib64.
get_filename_component(hsm_nvcc ${CMAKE_CUDA_COMPILER} REALPATH)
get_filename_component(hsm_toolkit ${hsm_nvcc}/../.. ABSOLUTE)
if(EXISTS ${hsm_toolkit}/lib/libcudart_static.a AND NOT EXISTS ${hsm_toolkit}/lib64)
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -L${hsm_toolkit}/lib")
endif()
enable_language(CUDA)
set(HSM_WITH_CUDA ON)
message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}: ${CMAKE_CUDA_COMPILER} for ${CMAKE_CUDA_ARCHITECTURES}")
