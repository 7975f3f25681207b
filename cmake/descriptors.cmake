# A FileDescriptorSet as C: what reflection hands out.
#   cmake -DSET=<file> -DTO=<file> -P descriptors.cmake

file(READ ${SET} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "#include \"proto/descriptors.h\"\n
const unsigned char descriptors_set[] = {\n${bytes}};\n
const unsigned long descriptors_bytes = sizeof(descriptors_set);\n")
