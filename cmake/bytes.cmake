# A file as bytes in C.
#   cmake -DFILE=<file> -DTO=<file> -DHEADER=<include> -DDATA=<name> -DBYTES=<name> -P bytes.cmake

file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "#include \"${HEADER}\"\n
const unsigned char ${DATA}[] = {\n${bytes}};\n
const unsigned long ${BYTES} = sizeof(${DATA});\n")
