# The few functions that the leaf lists use.

set(DRPS_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla)

# Common compile options of every target of the project.
function(drps_target target)
    target_compile_options(${target} PRIVATE ${DRPS_WARNINGS})
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE DRPS_VERSION="${PROJECT_VERSION}")
    if(DRPS_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    if(DRPS_NATIVE)
        target_compile_options(${target} PRIVATE -march=native)
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
endfunction()

# drps_module(NAME SOURCES... [PUBLIC_HEADERS ...]): adds one folder to libdrps. Public headers are those that programs
# include; the headers that these include are installed with them.
function(drps_module name)
    cmake_parse_arguments(M "" "" "PUBLIC_HEADERS" ${ARGN})
    target_sources(drps PRIVATE ${M_UNPARSED_ARGUMENTS})
    foreach(header IN LISTS M_PUBLIC_HEADERS)
        set_property(GLOBAL APPEND PROPERTY DRPS_PUBLIC_HEADERS ${name}/${header})
    endforeach()
endfunction()

# drps_public_headers(OUT): the public headers of all modules and those that they include.
function(drps_public_headers out)
    get_property(headers GLOBAL PROPERTY DRPS_PUBLIC_HEADERS)
    set(found "")
    while(headers)
        list(GET headers 0 header)
        list(REMOVE_AT headers 0)
        if(NOT header IN_LIST found)
            list(APPEND found ${header})
            set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
            file(STRINGS ${header} lines REGEX "^#include \"")
            string(REGEX REPLACE "#include \"([^\"]*)\"" "\\1" lines "${lines}")
            list(APPEND headers ${lines})
        endif()
    endwhile()
    list(SORT found)
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# drps_install_library(): libdrps, what programs need to use it, and, with BUILD_SHARED_LIBS, a shared libdrps of the same
# objects that exports what the public headers declare. The project's own programs are linked with the static one.
function(drps_install_library)
    drps_public_headers(headers)
    foreach(header IN LISTS headers)
        get_filename_component(folder ${header} DIRECTORY)
        install(FILES ${header} DESTINATION include/drps/${folder})
    endforeach()
    install(TARGETS drps DESTINATION ${CMAKE_INSTALL_LIBDIR})
    if(BUILD_SHARED_LIBS)
        set(exports ${PROJECT_BINARY_DIR}/drps.exports)
        add_custom_command(OUTPUT ${exports} COMMAND awk -f ${PROJECT_SOURCE_DIR}/cmake/exports.awk ${headers} > ${exports}
                           DEPENDS ${headers} cmake/exports.awk WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
        add_library(drps_shared SHARED $<TARGET_OBJECTS:drps> ${exports})
        drps_target(drps_shared)
        target_link_libraries(drps_shared PRIVATE ${DRPS_LIBRARIES} Threads::Threads m)
        target_link_options(drps_shared PRIVATE LINKER:--version-script=${exports})
        set_target_properties(drps_shared PROPERTIES OUTPUT_NAME drps LINKER_LANGUAGE C LINK_DEPENDS ${exports}
                              VERSION ${PROJECT_VERSION} SOVERSION 0)
        install(TARGETS drps_shared DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()

    set(libraries "")
    foreach(option rocksdb leveldb uring zlib zstd lzma zmq)
        string(TOUPPER DRPS_WITH_${option} macro)
        if("${macro}=1" IN_LIST DRPS_DEFINITIONS)
            string(APPEND libraries " -l${option}")
        endif()
    endforeach()
    string(REPLACE "-lzlib" "-lz" libraries "${libraries} -lm -pthread")
    # A static library alone: programs name all that it needs. Else only those that want to be linked statically do.
    if(BUILD_SHARED_LIBS)
        set(DRPS_PC_PRIVATE .private)
        set(DRPS_PC_STATIC_LIBRARIES "${libraries}")
    else()
        set(DRPS_PC_LIBRARIES "${libraries}")
    endif()
    # Relative, so that the file holds wherever `cmake --install --prefix` puts it.
    file(RELATIVE_PATH DRPS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    configure_file(cmake/drps.pc.in drps.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/drps.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# drps_tool(NAME SOURCES...): one command line tool.
function(drps_tool name)
    add_executable(${name} ${ARGN} cli.c hints.c)
    drps_target(${name})
    target_link_libraries(${name} PRIVATE drps ${DRPS_TOOL_LIBRARIES})
    install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# A test that runs longer hangs. Far above what any takes: machines that test may be slow and busy.
set(DRPS_TEST_TIMEOUT 1800)

# drps_test(NAME SOURCES... [LABELS ...] [ARGUMENTS ...]): one cmocka program; exit status 77 means skipped.
function(drps_test name)
    cmake_parse_arguments(T "" "" "LABELS;ARGUMENTS" ${ARGN})
    add_executable(${name} ${T_UNPARSED_ARGUMENTS})
    drps_target(${name})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE drps_test_support drps ${DRPS_TEST_LIBRARIES} ${DRPS_LIBRARIES}
                          ${DRPS_TOOL_LIBRARIES})
    # Tests of very many random rounds do one in so many of them: values are compared by the build without a sanitizer.
    set(one_in 1)
    if(DRPS_SANITIZE)
        set(one_in 10)
    endif()
    target_compile_definitions(${name} PRIVATE ${DRPS_DEFINITIONS} DRPS_TEST_ONE_IN=${one_in})
    add_test(NAME ${name} COMMAND ${name} ${T_ARGUMENTS})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${DRPS_TEST_TIMEOUT} SKIP_RETURN_CODE 77 LABELS "unit;${T_LABELS}"
                         ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
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
    add_executable(${name} ${ARGN})
    drps_target(${name})
    target_link_libraries(${name} PRIVATE drps)
endfunction()
