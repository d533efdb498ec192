import hashlib
import json
import os


def extension_key(kind, arguments, folder=None):
    """The name of an extension: SHA-256 (64 hex digits) of all that its binary is made from.

    kind: "load" or "load_inline". arguments: all of them by torch's names of its parameters, defaults
    filled in, as they are before torch sees them (load_inline puts lines into the lists that it is given).
    folder: where the candidate's files lie (by default the working folder): it is another one each time,
    so that it is no part of the key."""
    # What changes where the extension is built and what is printed, but not the binary.
    left_out = {"build_directory", "keep_intermediates", "use_pch", "verbose"}
    names = [os.path.abspath(folder or os.getcwd())]
    if os.path.realpath(names[0]) != names[0]:
        names.append(os.path.realpath(names[0]))

    def text(value):
        for name in names:
            value = value.replace(name + os.sep, "").replace(name, ".")
        return value

    def plain(value):
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, (str, os.PathLike)):
            return text(os.fsdecode(value))
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if isinstance(value, dict):
            return {k if isinstance(k, str) else repr(k): plain(v) for k, v in value.items()}
        return text(repr(value))

    def source_file(path):
        # Of a file that the module has just written somewhere else the name may be another one each time.
        path = os.fsdecode(path)
        name = text(os.path.abspath(os.path.join(names[0], path)))
        if os.path.isabs(name):
            name = os.path.splitext(name)[1]
        with open(os.path.join(names[0], path), "rb") as file:
            return [name, hashlib.sha256(file.read()).hexdigest()]

    words = {name: plain(value) for name, value in arguments.items() if name not in left_out}
    if kind == "load":
        sources = arguments["sources"]
        if isinstance(sources, (str, os.PathLike)):
            sources = [sources]
        words["sources"] = [source_file(path) for path in sources]
    canonical = json.dumps([kind, words], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
