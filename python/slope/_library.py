"""libslope by ctypes: where it is found, its functions and structs, and sessions that turn failures into exceptions.

The structs are those of include/slope.h, field by field; scripts/check.py compares them."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
import threading
import weakref
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ._interrupt import Interrupts

STATUS_OK = 0


class SlopeError(Exception):
    """The compiler or the program has failed. The text is the compiler's message, with the source line."""

    def __init__(self, text: str, coloured: Optional[str] = None):
        super().__init__(text)
        self.coloured = coloured or text  # the same for a terminal

    def _render_traceback_(self) -> List[str]:
        """What a notebook shows in place of a traceback."""
        return self.coloured.splitlines()


class SlopeField(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_void_p), ("offset", c_size_t)]


class SlopeParameter(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_void_p), ("direction", c_int)]


class SlopeUniform(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_void_p), ("is_block", c_bool)]


class SlopeDefine(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class SlopeDiagnostic(ctypes.Structure):
    _fields_ = [("severity", c_int), ("code", c_int), ("message", c_char_p), ("path", c_char_p), ("line", c_int),
                ("column", c_int), ("first_line", c_int), ("first_column", c_int), ("end_line", c_int), ("end_column", c_int),
                ("fix", c_char_p), ("fix_column", c_int), ("fix_end_column", c_int), ("notes", c_void_p), ("note_count", c_int), ("text", c_char_p), ("coloured", c_char_p), ("json", c_char_p)]


Report = ctypes.CFUNCTYPE(None, c_void_p, POINTER(SlopeDiagnostic))
Write = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)


class SlopeConfig(ctypes.Structure):
    _fields_ = [("user", c_void_p), ("resize", c_void_p), ("read_file", c_void_p), ("release_file", c_void_p),
                ("report", Report), ("write", Write), ("include_paths", POINTER(c_char_p)), ("include_path_count", c_int),
                ("defines", POINTER(SlopeDefine)), ("define_count", c_int), ("conformances", c_void_p),
                ("conformance_count", c_int), ("links", c_void_p), ("link_count", c_int), ("error_limit", c_int), ("no_warnings", c_bool),
                ("warnings_as_errors", c_bool), ("portable", c_bool), ("optimization", c_int), ("debug_info", c_bool), ("unchecked", c_bool),
                ("floats", c_int), ("threads", c_int), ("lanes", c_int), ("groups", c_int), ("wave", c_int), ("block", c_int * 3), ("stack_mib", c_int),
                ("limit_memory", c_int), ("limit_time", c_int), ("device", c_char_p), ("device_code", c_char_p), ("tape_mib", c_int), ("strict", c_bool), ("interpret", c_bool),
                ("cache", c_char_p)]


class SlopeGradcheckOptions(ctypes.Structure):
    _fields_ = [("function", c_char_p), ("samples", c_int), ("tolerance", c_double), ("seed", c_uint64),
                ("points", POINTER(c_char_p)), ("point_count", c_int), ("ranges", POINTER(c_char_p)), ("range_count", c_int),
                ("seconds", c_double), ("report", c_void_p), ("user", c_void_p)]


class SlopeGradcheckResult(ctypes.Structure):
    _fields_ = [("function", c_char_p), ("path", c_char_p), ("line", c_int), ("verdict", c_int), ("samples", c_int),
                ("discarded", c_int), ("tolerance", c_double), ("fwd_error", c_double), ("bwd_error", c_double),
                ("identity_error", c_double), ("point", c_char_p), ("inputs", c_char_p), ("message", c_char_p)]


class SlopeBlob(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class SlopeBuildOptions(ctypes.Structure):
    _fields_ = [("target", c_char_p), ("entries", POINTER(c_char_p)), ("entry_count", c_int), ("openmp", c_bool),
                ("alone", c_bool), ("header", c_bool), ("lines", c_bool), ("comments", c_bool), ("side_by_side", c_bool),
                ("header_path", c_char_p), ("page_path", c_char_p), ("tape", c_int),
                ("sanitize", c_bool)]


OUT = POINTER(c_void_p)
FUNCTIONS = {  # name: result, parameters
    "slope_version": (c_char_p, []),
    "slope_status_name": (c_char_p, [c_int]),
    "slope_config_init": (None, [POINTER(SlopeConfig)]),
    "slope_session_new": (c_int, [POINTER(SlopeConfig), OUT]),
    "slope_session_free": (None, [c_void_p]),
    "slope_stop": (None, [c_void_p]),
    "slope_load_text": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, OUT]),
    "slope_program_free": (None, [c_void_p]),
    "slope_check": (c_int, [c_void_p]),
    "slope_type_kind": (c_int, [c_void_p]),
    "slope_type_name": (c_char_p, [c_void_p]),
    "slope_type_size": (c_size_t, [c_void_p]),
    "slope_type_align": (c_size_t, [c_void_p]),
    "slope_type_element": (c_void_p, [c_void_p]),
    "slope_type_count": (c_int64, [c_void_p]),
    "slope_type_element_stride": (c_size_t, [c_void_p]),
    "slope_type_field_count": (c_int, [c_void_p]),
    "slope_type_field": (c_bool, [c_void_p, c_int, POINTER(SlopeField)]),
    "slope_type_buffer_kind": (c_int, [c_void_p]),
    "slope_find_function": (c_int, [c_void_p, c_char_p, OUT]),
    "slope_function_parameter_count": (c_int, [c_void_p]),
    "slope_function_parameter": (c_bool, [c_void_p, c_int, POINTER(SlopeParameter)]),
    "slope_function_result": (c_void_p, [c_void_p]),
    "slope_call": (c_int, [c_void_p, c_void_p]),
    "slope_buffer_wrap": (c_int, [c_void_p, c_void_p, c_size_t, OUT]),
    "slope_buffer_free": (None, [c_void_p]),
    "slope_uniform_count": (c_int, [c_void_p]),
    "slope_uniform": (c_bool, [c_void_p, c_int, POINTER(SlopeUniform)]),
    "slope_built_name": (c_char_p, [c_void_p, c_char_p]),
    "slope_kernel_uses": (c_bool, [c_void_p, c_int]),
    "slope_find_uniform": (c_int, [c_void_p, c_char_p, POINTER(SlopeUniform)]),
    "slope_set_uniform": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "slope_bind_buffer": (c_int, [c_void_p, c_char_p, c_void_p]),
    "slope_find_kernel": (c_int, [c_void_p, c_char_p, OUT]),
    "slope_kernel_group_size": (None, [c_void_p, POINTER(c_int)]),
    "slope_kernel_prepare": (c_int, [c_void_p]),
    "slope_dispatch": (c_int, [c_void_p, c_int, c_int, c_int]),
    "slope_build": (c_int, [c_void_p, POINTER(SlopeBuildOptions), POINTER(POINTER(SlopeBlob))]),
    "slope_blob_free": (None, [POINTER(SlopeBlob)]),
    "slope_gradcheck": (c_int, [c_void_p, POINTER(SlopeGradcheckOptions), POINTER(POINTER(SlopeGradcheckResult)), POINTER(c_int)]),
    "slope_verdict_name": (c_char_p, [c_int]),
}


def candidates() -> List[str]:
    """Where the library may be, best first: SLOPE_LIBRARY (a file or its folder), beside the package, in the prefix
    the package is installed in, in `build` of the checkout the package is in, where the loader looks."""
    name, here = "libslope.so", Path(__file__).resolve().parent
    named = os.environ.get("SLOPE_LIBRARY")
    if named:
        named = os.path.abspath(named)  # the library looks for its own parts beside itself
        return [os.path.join(named, name) if os.path.isdir(named) else named]
    found = [here / name]
    for parent in list(here.parents)[:5]:
        found += [parent / name, *sorted((parent / "lib").glob(f"*/{name}")), parent / "lib" / name]
    found += [here.parent.parent / "build" / name, Path(sys.prefix) / "lib" / name]
    known = ctypes.util.find_library("slope")
    return [str(path) for path in found if path.exists()] + ([known] if known else []) + [name + ".0"]


def load_library() -> ctypes.CDLL:
    problems = []
    for path in candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            problems.append(f"    {path}: {error}")
            continue
        for name, (result, parameters) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
        return library
    raise ImportError("libslope was not found; set SLOPE_LIBRARY to the file libslope.so or to its folder. Tried:\n"
                      + "\n".join(problems))


native = load_library()
interrupts = Interrupts(native.slope_stop)


def text_of(data: Optional[bytes]) -> str:
    return data.decode("utf-8", "replace") if data else ""


class Process:
    """Counts the forks that led to this process. Whoever held a lock then is not in the child."""

    generation = 0
    sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()

    @classmethod
    def forked(cls) -> None:
        cls.generation += 1
        for session in cls.sessions:
            session.lock = threading.RLock()


os.register_at_fork(after_in_child=Process.forked)


def free_session(handle: int, owner: int) -> None:
    if os.getpid() == owner:  # in a child of fork the threads of the session do not exist
        native.slope_session_free(handle)


def write_text(user: Optional[int], text: int, size: int) -> None:
    sys.stdout.write(ctypes.string_at(text, size).decode("utf-8", "replace"))


class Session:
    """A session of the library. It is used by one thread at a time: whoever calls into it holds `lock`."""

    def __init__(self, include_paths: Sequence[str], defines: Mapping[str, Any], options: Mapping[str, Any]):
        self.lock = threading.RLock()
        self.owner, self.generation = os.getpid(), Process.generation
        self.messages: List[Tuple[int, str, str]] = []
        config, handle = SlopeConfig(), c_void_p()
        native.slope_config_init(byref(config))
        paths = [os.fsencode(path) for path in include_paths]
        config.include_paths, config.include_path_count = (c_char_p * len(paths))(*paths), len(paths)
        macros = [SlopeDefine(name.encode(), str(value).encode()) for name, value in defines.items()]
        config.defines, config.define_count = (SlopeDefine * len(macros))(*macros), len(macros)
        for name, value in options.items():
            setattr(config, name, value)
        messages = self.messages

        def report(user: Optional[int], diagnostic: Any) -> None:
            found = diagnostic.contents
            messages.append((found.severity, text_of(found.text), text_of(found.coloured)))

        self.callbacks = config.report, config.write = Report(report), Write(write_text)
        status = native.slope_session_new(byref(config), byref(handle))
        if status != STATUS_OK:
            said = "".join(message[1] for message in messages).rstrip() or text_of(native.slope_status_name(status))
            raise SlopeError("a session could not be made: " + said)
        self.handle = handle.value
        finalizer = weakref.finalize(self, free_session, self.handle, self.owner)
        finalizer.atexit = False  # a thread of Python may still be inside
        Process.sessions.add(self)

    def __reduce__(self) -> Any:
        raise TypeError("a module of Slope cannot be pickled; load it again where it is needed")

    def enter(self) -> None:
        if self.generation != Process.generation:
            raise SlopeError("this module was loaded before the process forked; load it again in the child")
        self.messages.clear()

    def check(self, status: int) -> None:
        """Raises what the compiler said, if it did not succeed."""
        if status == STATUS_OK:
            return
        said = [message for message in self.messages if message[0] == 2] or self.messages
        text = "".join(message[1] for message in said).rstrip() or text_of(native.slope_status_name(status))
        raise SlopeError(text, "".join(message[2] for message in said).rstrip())
