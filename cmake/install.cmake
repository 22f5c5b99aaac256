# What programs of others need of drps: the library, its headers, and what pkg-config says of them.

# drps_public_header(OUT): the header that programs include, as one file: what api/drps.h includes of the tree takes the
# place of the lines that include it.
function(drps_public_header out)
    set(header ${PROJECT_BINARY_DIR}/include/drps.h)
    file(READ api/drps.h text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS api/drps.h)
    while(text MATCHES "#include \"([^\"]+)\"")
        set(part ${CMAKE_MATCH_1})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${part})
        file(READ ${part} content)
        string(REPLACE "#include \"${part}\"" "${content}" text "${text}")
    endwhile()
    file(CONFIGURE OUTPUT ${header} CONTENT "${text}" @ONLY)
    set(${out} ${header} PARENT_SCOPE)
endfunction()

# drps_shared_library(HEADER): a shared libdrps of the static one's objects. It exports what the header declares.
function(drps_shared_library header)
    set(exports ${PROJECT_BINARY_DIR}/drps.exports)
    add_custom_command(OUTPUT ${exports} COMMAND awk -f cmake/exports.awk ${header} > ${exports}
                       DEPENDS ${header} cmake/exports.awk WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
    add_library(drps_shared SHARED $<TARGET_OBJECTS:drps> ${exports})
    drps_target(drps_shared)
    target_link_libraries(drps_shared PRIVATE ${DRPS_LIBRARIES} Threads::Threads m)
    target_link_options(drps_shared PRIVATE LINKER:--version-script=${exports})
    set_target_properties(drps_shared PROPERTIES OUTPUT_NAME drps LINKER_LANGUAGE C LINK_DEPENDS ${exports}
                          EXPORT_NAME drps VERSION ${PROJECT_VERSION} SOVERSION 0)
    target_include_directories(drps_shared INTERFACE $<INSTALL_INTERFACE:include>)
    install(TARGETS drps_shared EXPORT drpsTargets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
endfunction()

# drps_pkg_config(): drps.pc. Programs that are linked with the static library name all that it needs.
function(drps_pkg_config)
    set(libraries "")
    foreach(option rocksdb leveldb uring zlib zstd lzma zmq openblas microhttpd)
        string(TOUPPER DRPS_WITH_${option} macro)
        if("${macro}=1" IN_LIST DRPS_DEFINITIONS)
            string(APPEND libraries " -l${option}")
        endif()
    endforeach()
    string(REPLACE "-lzlib" "-lz" libraries "${libraries} -lm -pthread")
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

# drps_cmake_package(): what find_package(drps) needs: the target drps::drps, which is the shared library.
function(drps_cmake_package)
    set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/drps)
    include(CMakePackageConfigHelpers)
    install(EXPORT drpsTargets NAMESPACE drps:: DESTINATION ${folder})
    file(WRITE ${PROJECT_BINARY_DIR}/drpsConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/drpsTargets.cmake)\n")
    write_basic_package_version_file(${PROJECT_BINARY_DIR}/drpsConfigVersion.cmake COMPATIBILITY SameMajorVersion)
    install(FILES ${PROJECT_BINARY_DIR}/drpsConfig.cmake ${PROJECT_BINARY_DIR}/drpsConfigVersion.cmake DESTINATION ${folder})
endfunction()

# drps_install_library(): the project's own programs are linked with the static library, so that a shared one may hide all
# that is not public.
function(drps_install_library)
    drps_public_header(header)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    set(page ${PROJECT_SOURCE_DIR}/tools/man/drps.3)
    if(DRPS_PACKAGES)
        drps_gzip(page ${page} drps.3)
        add_custom_target(drps_manual_of_library ALL DEPENDS ${page})
    endif()
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
    install(TARGETS drps DESTINATION ${CMAKE_INSTALL_LIBDIR})
    if(BUILD_SHARED_LIBS)
        drps_shared_library(${header})
        drps_cmake_package()
    endif()
    drps_pkg_config()
endfunction()
