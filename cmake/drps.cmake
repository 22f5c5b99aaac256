# The few functions that the leaf lists use.

set(DRPS_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla)

# Common compile options of every target of the project.
function(drps_target target)
    target_compile_options(${target} PRIVATE ${DRPS_WARNINGS})
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE DRPS_VERSION="${PROJECT_VERSION}")
    if(DRPS_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    # Nothing is fused: all processors and all ranks compute the same bytes.
    target_compile_options(${target} PRIVATE -ffp-contract=off)
    if(DRPS_NATIVE)
        target_compile_options(${target} PRIVATE -march=native)
    elseif(DRPS_LEVELS)
        target_compile_definitions(${target} PRIVATE DRPS_HAS_LEVELS)
    endif()
    if(DRPS_BUILD_FUZZ)
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
    if(DRPS_SANITIZE)
        # Optimised little: most of such a build's time is its compiler's, and reports name more of the calls.
        target_compile_options(${target} PRIVATE -O1 -g1 -fsanitize=${DRPS_SANITIZE} -fno-omit-frame-pointer
                               -fno-sanitize-recover=all)
        target_link_options(${target} PRIVATE -fsanitize=${DRPS_SANITIZE})
    endif()
    if(DRPS_COVERAGE)
        # Not optimised, as lines are merged then. Threads add to the same counters.
        target_compile_options(${target} PRIVATE -O0 -g1 --coverage -fprofile-update=atomic)
        target_link_options(${target} PRIVATE --coverage)
    endif()
endfunction()

# drps_module(NAME SOURCES...): adds one folder to libdrps.
function(drps_module name)
    target_sources(drps PRIVATE ${ARGN})
endfunction()

# The levels of instructions that kernels are compiled for, besides the baseline (base/kernel/drps_level.h).
set(DRPS_LEVELS "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND NOT DRPS_NATIVE)
    set(DRPS_LEVELS avx2 avx512)
endif()
set(DRPS_LEVEL_avx2 -mavx2 -mbmi -mbmi2 -mpopcnt)
set(DRPS_LEVEL_avx512 ${DRPS_LEVEL_avx2} -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl -mprefer-vector-width=256)

# Functions begin on a cache line, loops on half of one: where the linker puts them, which any other file may change, costs
# up to a fifth of their speed. Nothing here lets the compiler change the order of a sum.
set(DRPS_KERNEL_OPTIONS -falign-functions=64 -falign-loops=32 -fopenmp-simd -fno-math-errno -fno-trapping-math)
if(NOT DRPS_SANITIZE AND NOT DRPS_COVERAGE) # with sanitizers a kernel would take half a minute to compile
    list(APPEND DRPS_KERNEL_OPTIONS -O3)
endif()
if(CMAKE_C_COMPILER_ID MATCHES Clang)
    list(APPEND DRPS_KERNEL_OPTIONS -Wno-pass-failed)
endif()

# drps_kernel_options(SOURCE OPTIONS...): how a source of libdrps is compiled that has hot loops.
function(drps_kernel_options source)
    set_source_files_properties(${source} TARGET_DIRECTORY drps PROPERTIES COMPILE_OPTIONS "${DRPS_KERNEL_OPTIONS};${ARGN}")
endfunction()

# drps_kernels(SOURCES...): these, of the calling folder's module, are kernels: compiled for each level, too.
function(drps_kernels)
    foreach(source IN LISTS ARGN)
        drps_kernel_options(${CMAKE_CURRENT_SOURCE_DIR}/${source})
        file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
        foreach(level IN LISTS DRPS_LEVELS)
            set(copy ${PROJECT_BINARY_DIR}/levels/${level}/${path})
            file(CONFIGURE OUTPUT ${copy} CONTENT "#define DRPS_LEVEL_HERE ${level}\n#include \"${path}\"\n")
            target_sources(drps PRIVATE ${copy})
            drps_kernel_options(${copy} ${DRPS_LEVEL_${level}})
        endforeach()
    endforeach()
endfunction()

# drps_tool(NAME SOURCES...): one command line tool.
function(drps_tool name)
    add_executable(${name} ${ARGN})
    drps_target(${name})
    target_link_libraries(${name} PRIVATE drps_tools)
    install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endfunction()

# A test that runs longer hangs. Far above what any takes: machines that test may be slow and busy.
set(DRPS_TEST_TIMEOUT 1800)

# Tests of very many random rounds, or of a fault in each of very many calls, do one in so many of them: values are
# compared, and all calls tried, by the plain build.
set(DRPS_TEST_ONE_IN 1)
if(DRPS_SANITIZE OR DRPS_COVERAGE)
    set(DRPS_TEST_ONE_IN 10)
endif()

# drps_test_options(NAME): there are hundreds of tests, and the library does most of their work. Optimised little, they compile
# in half the time, and the linker of LLVM, where it is there, takes half the time of the other.
find_program(DRPS_LLD ld.lld)
function(drps_test_options name)
    if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo AND NOT DRPS_COVERAGE)
        target_compile_options(${name} PRIVATE -O1 -g1)
    endif()
    if(DRPS_LLD)
        target_link_options(${name} PRIVATE -fuse-ld=lld)
    endif()
endfunction()

# drps_compiled(NAME SOURCES...): a program that a build for the tests of one label (DRPS_TESTS) does not run.
function(drps_compiled name)
    add_library(${name} OBJECT ${ARGN})
    drps_target(${name})
    target_compile_options(${name} PRIVATE -O0 -fno-sanitize=all)
endfunction()

# drps_test(NAME SOURCES... [LIBRARIES ...] [LABELS ...] [ARGUMENTS ...]): one cmocka program; exit status 77 means
# skipped. Tests of storage/ are labelled disk: what they test depends on where files lie.
function(drps_test name)
    cmake_parse_arguments(T "" "" "LIBRARIES;LABELS;ARGUMENTS" ${ARGN})
    list(GET T_UNPARSED_ARGUMENTS 0 source)
    if(source MATCHES "^storage/")
        list(APPEND T_LABELS disk)
    endif()
    list(APPEND T_LABELS unit)
    if(DRPS_TESTS AND NOT DRPS_TESTS IN_LIST T_LABELS)
        drps_compiled(${name} ${T_UNPARSED_ARGUMENTS})
    else()
        add_executable(${name} ${T_UNPARSED_ARGUMENTS})
        drps_target(${name})
        drps_test_options(${name})
        add_test(NAME ${name} COMMAND ${name} ${T_ARGUMENTS})
        set_tests_properties(${name} PROPERTIES TIMEOUT ${DRPS_TEST_TIMEOUT} SKIP_RETURN_CODE 77 LABELS "${T_LABELS}"
                             ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
    endif()
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE ${T_LIBRARIES} drps_test_support drps ${DRPS_TEST_LIBRARIES} ${DRPS_LIBRARIES}
                          ${DRPS_TOOL_LIBRARIES})
    target_compile_definitions(${name} PRIVATE ${DRPS_DEFINITIONS} DRPS_TEST_ONE_IN=${DRPS_TEST_ONE_IN})
endfunction()

# drps_mpi_test(NAME): the tests of a program that are for MPI, under mpirun.
function(drps_mpi_test name)
    if(NOT TEST ${name}) # not of the label that is built
        return()
    endif()
    add_test(NAME ${name}_mpi COMMAND bash ${PROJECT_SOURCE_DIR}/tests/net/mpirun.sh $<TARGET_FILE:${name}>)
    set_tests_properties(${name}_mpi PROPERTIES TIMEOUT ${DRPS_TEST_TIMEOUT} SKIP_RETURN_CODE 77 LABELS unit)
endfunction()

# drps_script_test(NAME SCRIPT [COST S]): one shell script; gets the tools' folder as its argument. Where several tests
# run at a time, those that cost most begin first.
function(drps_script_test name script)
    cmake_parse_arguments(T "" "COST" "" ${ARGN})
    if(NOT T_COST)
        set(T_COST 0)
    endif()
    add_test(NAME ${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/${script}
             $<TARGET_FILE_DIR:drps-train> ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${DRPS_TEST_TIMEOUT} COST ${T_COST} SKIP_RETURN_CODE 77 LABELS e2e)
endfunction()

# drps_bench(NAME SOURCES...): one benchmark program, not run as a test.
function(drps_bench name)
    if(DRPS_TESTS)
        drps_compiled(${name} ${ARGN})
    else()
        add_executable(${name} ${ARGN})
        drps_target(${name})
    endif()
    target_link_libraries(${name} PRIVATE drps)
endfunction()
