# Imported target LibTorch::cpu from the Python wheel of torch.
#
# The wheel's own TorchConfig.cmake demands a CUDA toolkit even for a CPU program, so the few lines that are
# needed stand here. Sets HSM_VENV, HSM_TORCH_VERSION, and HSM_PYTHON to the environment's interpreter. Nothing found is
# cached: a new configure sees what has changed in the environment.
if(NOT HSM_VENV)
  if(DEFINED ENV{HSM_VENV})  # remembered, for the build tool configures again without this shell's variables
    set(HSM_VENV_OF_SHELL $ENV{HSM_VENV} CACHE INTERNAL "HSM_VENV in the environment of the last configure")
  endif()
  set(HSM_VENV ${HSM_VENV_OF_SHELL})
  if(NOT HSM_VENV)
    set(HSM_VENV ${CMAKE_SOURCE_DIR}/.venv)
  endif()
endif()
set(HSM_PYTHON ${HSM_VENV}/bin/python)

set(TORCH_DIRECTORY "$ENV{TORCH_DIRECTORY}" CACHE PATH "Folder of an installed torch package (default: the one in HSM_VENV)")
set(hsm_torch ${TORCH_DIRECTORY})
if(NOT hsm_torch)
  file(GLOB hsm_torch ${HSM_VENV}/lib/python3*/site-packages/torch)
  list(LENGTH hsm_torch hsm_torch_count)
  if(NOT hsm_torch_count EQUAL 1)
    message(FATAL_ERROR "LibTorch not found in ${HSM_VENV}: run scripts/setup, or set HSM_VENV to a Python "
                        "environment with torch, or TORCH_DIRECTORY to the folder of an installed torch package")
  endif()
endif()
foreach(file version.py include/ATen/ATen.h lib/libtorch_cpu.so lib/libc10.so)
  if(NOT EXISTS ${hsm_torch}/${file})
    message(FATAL_ERROR "LibTorch in ${hsm_torch} is incomplete: ${file} is missing. Run scripts/setup again")
  endif()
endforeach()
file(STRINGS ${hsm_torch}/version.py hsm_torch_version_line REGEX "^__version__ = ")
string(REGEX REPLACE "^__version__ = ['\"](.*)['\"]$" "\\1" HSM_TORCH_VERSION "${hsm_torch_version_line}")

add_library(LibTorch::c10 SHARED IMPORTED)
set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${hsm_torch}/lib/libc10.so)
add_library(LibTorch::cpu SHARED IMPORTED)
set_target_properties(LibTorch::cpu PROPERTIES
  IMPORTED_LOCATION ${hsm_torch}/lib/libtorch_cpu.so
  INTERFACE_INCLUDE_DIRECTORIES "${hsm_torch}/include;${hsm_torch}/include/torch/csrc/api/include"
  INTERFACE_LINK_LIBRARIES LibTorch::c10)
# LibTorch::cuda: what libhsm_cuda.so is linked with, where the wheel has it. cuDNN and the other libraries that
# it needs to run (scripts/setup --gpu) are not needed for linking.
set(hsm_cudart "")
foreach(folder ${hsm_torch}/../nvidia/cu13/lib ${hsm_torch}/../nvidia/cu13/lib64 $ENV{CUDA_HOME}/lib64 /usr/local/cuda/lib64)
  if(NOT hsm_cudart AND EXISTS ${folder}/libcudart.so.13 AND EXISTS ${folder}/../include/cuda_runtime_api.h)
    get_filename_component(hsm_cudart ${folder}/libcudart.so.13 ABSOLUTE)
    get_filename_component(hsm_cuda_include ${folder}/../include ABSOLUTE)
  endif()
endforeach()
if(EXISTS ${hsm_torch}/lib/libtorch_cuda.so AND hsm_cudart)
  add_library(LibTorch::cudart SHARED IMPORTED)
  set_target_properties(LibTorch::cudart PROPERTIES
    IMPORTED_LOCATION ${hsm_cudart} INTERFACE_INCLUDE_DIRECTORIES ${hsm_cuda_include})
  add_library(LibTorch::c10_cuda SHARED IMPORTED)
  set_target_properties(LibTorch::c10_cuda PROPERTIES IMPORTED_LOCATION ${hsm_torch}/lib/libc10_cuda.so)
  add_library(LibTorch::cuda SHARED IMPORTED)
  set_target_properties(LibTorch::cuda PROPERTIES
    IMPORTED_LOCATION ${hsm_torch}/lib/libtorch_cuda.so
    INTERFACE_LINK_LIBRARIES "LibTorch::cpu;LibTorch::c10_cuda;LibTorch::cudart")
endif()
message(STATUS "LibTorch ${HSM_TORCH_VERSION} in ${hsm_torch}")
