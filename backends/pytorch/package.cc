#include "package.hh"

#include <yyjson.h>

#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace
{

struct json_free {
    void operator()(yyjson_doc *doc) const
    {
        yyjson_doc_free(doc);
    }
};
using json = std::unique_ptr<yyjson_doc, json_free>;

json parse(const char *text)
{
    json doc(yyjson_read(text, strlen(text), 0));
    if (!doc)
        throw std::runtime_error("the package's call specification is not JSON");
    return doc;
}

/* Appends the names of the tensors below `spec`, which is described as PyTorch writes trees: its
 * type, its children, and as text the keys of a dictionary. */
void append_names(yyjson_val *spec, const std::string &name, std::vector<std::string> &names,
                  int depth)
{
    yyjson_val *children = yyjson_obj_get(spec, "children_spec");
    yyjson_val *type = yyjson_obj_get(spec, "type");
    const std::string kind = yyjson_is_str(type) ? yyjson_get_str(type) : "";
    if (depth > TREE_MOST_DEPTH || names.size() > TREE_MOST_VALUES)
        throw std::runtime_error("the package's call specification is too large");
    if (yyjson_is_null(type)) {
        names.push_back(name);
        return;
    }
    json keys;
    if (kind == "builtins.dict" || kind == "collections.OrderedDict") {
        const char *context = yyjson_get_str(yyjson_obj_get(spec, "context"));
        keys = parse(context ? context : "");
        if (yyjson_arr_size(yyjson_doc_get_root(keys.get())) != yyjson_arr_size(children))
            throw std::runtime_error("'" + name + "' of the package has values without keys");
    } else if (kind != "builtins.tuple" && kind != "builtins.list") {
        throw std::runtime_error("'" + name + "' of the package is of type '" + kind +
                                 "'; supported are tensors in tuples, lists and dictionaries");
    }
    size_t index, count;
    yyjson_val *child;
    yyjson_arr_foreach(children, index, count, child)
    {
        const char *key =
            keys ? yyjson_get_str(yyjson_arr_get(yyjson_doc_get_root(keys.get()), index)) : nullptr;
        if (keys && !key)
            throw std::runtime_error("'" + name + "' of the package has a key that is no text");
        append_names(child, name + "[" + (key ? key : std::to_string(index)) + "]", names,
                     depth + 1);
    }
}

yyjson_val *tree_of(const json &doc)
{
    return yyjson_arr_get(yyjson_doc_get_root(doc.get()), 1); /* after the version of the format */
}

/* Older versions of PyTorch cannot be told which GPU; they take the thread's. */
template <typename Loader>
std::unique_ptr<Loader> open(const std::string &path, c10::DeviceIndex device)
{
    if constexpr (std::is_constructible_v<Loader, const std::string &, const char *, bool, size_t,
                                          c10::DeviceIndex>)
        return std::make_unique<Loader>(path, "model", false, 1, device);
    else
        return std::make_unique<Loader>(path);
}

} // namespace

package::package(const std::string &path, at::Device device)
{
    loader = open<torch::inductor::AOTIModelPackageLoader>(path, device.index());
    const auto metadata = loader->get_metadata();
    const auto made_for = metadata.find("AOTI_DEVICE_KEY");
    if (made_for != metadata.end() && made_for->second != c10::DeviceTypeName(device.type(), true))
        throw std::runtime_error("the package was compiled for " + made_for->second +
                                 ", the instance is on " + device.str());
    const std::vector<std::string> spec = loader->get_call_spec();
    if (spec.size() != 2)
        throw std::runtime_error("the package has no call specification");
    const json in = parse(spec[0].c_str()), out = parse(spec[1].c_str());
    yyjson_val *calls = yyjson_obj_get(tree_of(in), "children_spec");
    if (yyjson_arr_size(calls) != 2)
        throw std::runtime_error("the package's call specification has no arguments");
    append_names(yyjson_arr_get(calls, 0), "ARGS", inputs, 0);
    append_names(yyjson_arr_get(calls, 1), "KWARGS", inputs, 0);
    append_names(tree_of(out), "RESULT", outputs, 0);
}

std::vector<at::Tensor> package::run(const std::vector<at::Tensor> &arguments)
{
    try {
        return loader->run(arguments);
    } catch (const std::exception &) {
        /* The runtime forgets the references that it took if the package refuses its inputs. */
        for (const at::Tensor &tensor : arguments)
            while (tensor.use_count() > 1)
                c10::raw::intrusive_ptr::decref(tensor.unsafeGetTensorImpl());
        throw std::runtime_error("the package failed, or was compiled for other shapes or types "
                                 "than its inputs have: its own words are on standard error");
    }
}
