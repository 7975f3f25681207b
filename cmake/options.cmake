# Options, compiler flags and where things are put in the build tree.

option(NEREID_WERROR "warnings are errors" OFF)
option(NEREID_TESTS "build the C tests" ON)
option(NEREID_UNITS "and among them all of the layers and the corpora of the fuzzers" ON)
option(NEREID_LTO "link-time optimisation" OFF)
option(NEREID_HARDEN "hardening flags" OFF)
option(NEREID_COVERAGE "instrument for gcov" OFF)
option(NEREID_FUZZ "build the fuzzers for libFuzzer (clang)" OFF)
option(NEREID_ANALYZE "run the compiler's static analyser" OFF)
set(NEREID_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize= takes them")
set(NEREID_VENV ${CMAKE_SOURCE_DIR}/build/venv CACHE PATH "the Python environment of tools/setup.sh")
set(NEREID_DEPS ${CMAKE_SOURCE_DIR}/build/deps CACHE PATH "libraries unpacked by tools/setup.sh")

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_BUILD_WITH_INSTALL_RPATH OFF)

find_package(Threads REQUIRED)

# nereid_flags: every target of ours links it. Generated code links nereid_build_flags alone.
add_library(nereid_build_flags INTERFACE)
add_library(nereid_flags INTERFACE)
target_link_libraries(nereid_flags INTERFACE nereid_build_flags)

set(warnings
    -Wall -Wextra -Wconversion -Wshadow -Wvla -Wformat=2 -Wswitch-enum -Wundef -Wpointer-arith
    -Wwrite-strings)
set(c_warnings -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition)
target_compile_options(nereid_flags INTERFACE
    ${warnings} $<$<COMPILE_LANGUAGE:C>:${c_warnings}>)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    if(NEREID_ANALYZE)
        target_compile_options(nereid_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fanalyzer>)
    endif()
else()
    target_compile_options(nereid_flags INTERFACE -Wno-sign-conversion -Wno-string-conversion)
endif()
if(NEREID_WERROR)
    target_compile_options(nereid_flags INTERFACE -Werror)
endif()

target_compile_definitions(nereid_build_flags INTERFACE _GNU_SOURCE)
# Without errno of the math functions, a square root is one instruction and no call.
target_compile_options(nereid_build_flags INTERFACE -fno-common -fno-math-errno)
target_link_libraries(nereid_build_flags INTERFACE Threads::Threads)

if(NEREID_SANITIZE)
    target_compile_options(nereid_build_flags INTERFACE
        -fsanitize=${NEREID_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
        # GCC loses track of what is set once the sanitizers' checks stand between.
        -Wno-maybe-uninitialized -Wno-uninitialized)
    target_link_options(nereid_build_flags INTERFACE -fsanitize=${NEREID_SANITIZE})
endif()
if(NEREID_FUZZ)
    target_compile_options(nereid_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(NEREID_COVERAGE)
    target_compile_options(nereid_build_flags INTERFACE --coverage -fprofile-update=atomic)
    target_link_options(nereid_build_flags INTERFACE --coverage)
endif()
if(NEREID_HARDEN)
    target_compile_options(nereid_build_flags INTERFACE
        -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection
        $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection>)
    target_link_options(nereid_build_flags INTERFACE -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack)
endif()
if(NEREID_LTO)
    # Fat objects: the C tests link the same libraries without paying for LTO in each of them.
    target_compile_options(nereid_build_flags INTERFACE -flto=auto -ffat-lto-objects)
    set(CMAKE_AR ${CMAKE_C_COMPILER_AR})
    set(CMAKE_RANLIB ${CMAKE_C_COMPILER_RANLIB})
    set(NEREID_LINK_LTO -flto=auto -O2)
    set(NEREID_LINK_NO_LTO -fno-lto)
endif()
