# Compile options that all of the project's own targets share, and one function for each kind of target.
add_library(hsm_options INTERFACE)
target_compile_options(hsm_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-Wold-style-cast;-Woverloaded-virtual;-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(hsm_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # false alarms on std::string
endif()
if(HSM_SANITIZE)
  # GCC takes some of what the sanitizers add for uses of uninitialized values.
  target_compile_options(hsm_options INTERFACE -fsanitize=${HSM_SANITIZE} -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  target_link_options(hsm_options INTERFACE -fsanitize=${HSM_SANITIZE})
endif()
if(HSM_COVERAGE)
  target_compile_options(hsm_options INTERFACE --coverage -fprofile-update=atomic -O1)
  target_link_options(hsm_options INTERFACE --coverage)
endif()

# hsm_library(NAME [LIBRARIES...]): the static library hsm_NAME of all sources in src/NAME. Sources named
# *_absent.cpp stand in for a .cu file of that name when CUDA is off.
function(hsm_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  if(HSM_WITH_CUDA)
    list(FILTER sources EXCLUDE REGEX "_absent\\.cpp$")
    file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cu)
  endif()
  string(REPLACE "/" "_" target ${name})
  add_library(hsm_${target} STATIC ${sources} ${cuda_sources})
  target_include_directories(hsm_${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(hsm_${target} PUBLIC ${ARGN} PRIVATE hsm_options)
endfunction()

# hsm_test(FOLDER [LIBRARIES...]): the program test_FOLDER of all sources in tests/FOLDER, each case a ctest.
function(hsm_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
  string(REPLACE "/" "_" target ${folder})
  add_executable(test_${target} ${sources})
  target_include_directories(test_${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(test_${target} PRIVATE HSM_PROGRAM="$<TARGET_FILE:hsm>" HSM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(test_${target} PRIVATE ${ARGN} hsm_options GTest::gmock GTest::gtest_main)
  gtest_discover_tests(test_${target} TEST_PREFIX ${folder}. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 600)
endfunction()
