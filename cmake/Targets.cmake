# Compile options that all of the project's own targets share, and one function for each kind of target.
add_library(hsm_options INTERFACE)
target_compile_options(hsm_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                                             -Woverloaded-virtual -Werror)
if(HSM_SANITIZE)
  target_compile_options(hsm_options INTERFACE -fsanitize=${HSM_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(hsm_options INTERFACE -fsanitize=${HSM_SANITIZE})
endif()
if(HSM_COVERAGE)
  target_compile_options(hsm_options INTERFACE --coverage -O1)
  target_link_options(hsm_options INTERFACE --coverage)
endif()

# hsm_library(NAME [LIBRARIES...]): the static library hsm_NAME of all sources in src/NAME.
function(hsm_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  string(REPLACE "/" "_" target ${name})
  add_library(hsm_${target} STATIC ${sources})
  target_include_directories(hsm_${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(hsm_${target} PUBLIC ${ARGN} PRIVATE hsm_options)
endfunction()

# hsm_test(FOLDER [LIBRARIES...]): the program test_FOLDER of all sources in tests/FOLDER, each case a ctest.
function(hsm_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${folder} ${sources})
  target_include_directories(test_${folder} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(test_${folder} PRIVATE ${ARGN} hsm_options GTest::gmock GTest::gtest_main)
  gtest_discover_tests(test_${folder} TEST_PREFIX ${folder}. DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()
