"""A stub: the process in which one instance of a Python model runs. The server starts it; see docs/internals/python.md.

Started as `python3 triton_python_backend_stub.py MEMORY LIFE BELL`, descriptors all.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import traceback

SAID = 16384  # bytes of what an exception says; the frames come behind it
HERE = os.path.dirname(os.path.abspath(__file__))


def text_of(error):
    """What is said of an exception: its type, its text, and the frames from the innermost one outwards."""
    kind = type(error).__name__
    try:
        said = str(error)
    except BaseException:  # the model's, and not to end what answers for it
        said = "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>"
    if len(said) > SAID // 4:
        said = said[:SAID].encode(errors="backslashreplace")[:SAID].decode(errors="ignore")
    lines = [f"{kind}: {said}"]
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    frame = trace.tb_frame if trace else None
    if frame and frame.f_code.co_filename != __file__:
        lines.append("\n\nAt:\n")
        while frame and frame.f_code.co_filename != __file__:
            lines.append(f"  {frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}\n")
            frame = frame.f_back
    return "".join(lines)


def imported(name):
    """A module, without a frame of Python's between it and what is said of its errors."""
    __import__(name)
    return sys.modules[name]


async def outcome(coroutine):
    """What a coroutine returns, and what it raises: asyncio hands some of that to the loop, not to who waits."""
    try:
        return await coroutine, None
    except BaseException as error:
        return None, error.with_traceback(error.__traceback__.tb_next)


class Refused(Exception):
    """What a model returned is not what it may return; the text alone is told."""


class Model:
    """The model of this stub, from its file to its end."""

    def __init__(self):
        self.module = None
        self.instance = None
        self.execute = None
        self.name = ""
        self.path = ""
        self.loop = None
        self.background = set()

    def load(self, path):
        """Imports the model's file as the module VERSION.FILE, or as FILE where the backend itself is written in Python."""
        if self.module:
            return
        self.path = path
        folder, file = os.path.split(path)
        if not file.endswith(".py"):
            raise Refused(f"Model name must end with '.py'. Model name is \"{file}\".")
        parent, version = os.path.split(folder)
        pb_utils._directory = folder
        if not os.path.exists(path):
            raise Refused(f"Python model file not found in '{path}'")
        sys.path += [folder, parent, HERE]
        self.module = imported(f"{version}.{file[:-3]}")

    def load_backend(self, path, backend):
        if self.module:
            return
        self.path = os.path.join(backend, "model.py")
        pb_utils._directory = os.path.dirname(path)
        sys.path += [backend, HERE]
        self.module = imported("model")

    def complete(self, name, config):
        self.name = name
        made = pb_utils.ModelConfig(config)
        if hasattr(self.module.TritonPythonModel, "auto_complete_config"):
            made = self.module.TritonPythonModel.auto_complete_config(made)
        if not isinstance(made, pb_utils.ModelConfig):
            raise Refused(f"auto_complete_config function in model '{self.name}' must return a valid pb.ModelConfig object.")
        return json.dumps(made._model_config)

    def initialize(self, args):
        self.name = args["model_instance_name"]
        self.instance = self.module.TritonPythonModel()
        if hasattr(self.instance, "initialize"):
            self.instance.initialize(args)
        pb_utils._running = True

    # -- requests --

    def run(self, requests):
        """Executes requests and answers them."""
        try:
            try:
                execute = self.instance.execute
            except AttributeError:
                raise Refused(f"Python model {self.path} does not implement `execute` method.") from None
            returned = execute(requests[:])  # the list is the model's to change
            if returned.__class__ is not list and returned is not None and asyncio.iscoroutine(returned):
                returned = self.finish(returned)
            self.answer(requests, returned)
        except BaseException as error:
            self.fail(requests, error)

    def answer(self, requests, returned):
        if returned is not None:
            if core.decoupled():
                raise Refused(f"Python model '{self.name}' is using the decoupled mode and the execute function must return None.")
            if not isinstance(returned, list):
                raise Refused(f"Expected a list in the execute return, found type '{type(returned)}'.")
            if len(returned) != len(requests):
                raise Refused(
                    "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                    f"InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) size is:{len(returned)}\n"
                )
            try:
                core.check(requests, returned)
            except pb_utils.TritonModelException as error:
                raise Refused(str(error)) from None
        core.answer(requests, returned)

    def fail(self, requests, error):
        if isinstance(error, (SystemExit, KeyboardInterrupt)) and not isinstance(error, Exception):
            with contextlib.suppress(Exception):  # the model may have closed it
                print(f"model '{self.name}' asked its process to end: {error!r}", file=sys.stderr, flush=True)
        text = str(error) if isinstance(error, Refused) else text_of(error)
        text = f"Failed to process the request(s) for model '{self.name}', message: {text}"
        pb_utils._log(pb_utils._ERROR, text)
        core.fail(requests, text)

    def finish(self, coroutine):
        """Runs a coroutine on the loop of the model; to its end, unless the model is decoupled."""
        if not self.loop or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
            threading.Thread(target=self.turn, args=(self.loop,), daemon=True).start()
        future = asyncio.run_coroutine_threadsafe(outcome(coroutine), self.loop)
        if core.decoupled():
            self.background.add(future)
            future.add_done_callback(self.ended)
            return None
        returned, error = future.result()
        if error:
            raise error
        return returned

    def turn(self, loop):
        """Runs the loop as long as the model lives: what stops it is not the end of what others wait for."""
        while pb_utils._running and not loop.is_closed():
            try:
                loop.run_forever()
            except BaseException as error:
                pb_utils._log(pb_utils._ERROR, f"model '{self.name}' ended its event loop, which goes on: {text_of(error)}")

    def ended(self, future):
        self.background.discard(future)
        error = future.result()[1]
        if error:
            pb_utils._log(pb_utils._ERROR, "".join(traceback.format_exception(type(error), error, error.__traceback__)))

    def finalize(self):
        pb_utils._running = False
        if self.loop and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
        if self.instance is not None and hasattr(self.instance, "finalize"):
            self.instance.finalize()


def do(model, kind, texts):
    """Does what the server asks for by texts; returns what to tell it."""
    if kind == core.FINALIZE:
        try:
            model.finalize()
        except Exception as error:
            pb_utils._log(pb_utils._INFO, text_of(error))
        return ""
    path, backend = texts[:2]
    if backend:
        model.load_backend(path, backend)
    else:
        model.load(path)
    if kind == core.COMPLETE:
        return model.complete(texts[2], texts[3])
    model.initialize(dict(zip(texts[2::2], texts[3::2])))
    return ""


ENDS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


def ignore(number, frame):
    """The server says when a stub ends."""


forking = threading.local()


def hold():
    """Python forgets the signals that come to a forked process before its handlers are set: they wait until those are."""
    forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)


def release():
    signal.pthread_sigmask(signal.SIG_SETMASK, forking.mask)


def mind():
    """A process that a model forks ends when that tells it to, as multiprocessing's pools do."""
    for each, usual in ENDS.items():
        if signal.getsignal(each) is ignore:
            signal.signal(each, usual)
    release()


def main():
    core.open(*(int(each) for each in sys.argv[1:4]))
    del sys.argv[1:]
    sys.argv[0] = ""
    model = Model()
    while True:
        task = core.take()
        if task.__class__ is list:
            model.run(task)
            del task
            continue
        kind, texts = task
        try:
            well, told = True, do(model, kind, texts)
        except Refused as error:
            well, told = False, str(error)
        except BaseException as error:
            well, told = False, text_of(error)
        core.result(well, told)
        if kind == core.FINALIZE or not well:
            return


if __name__ == "__main__":
    for each in ENDS:
        signal.signal(each, ignore)
    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=mind)
    sys.path.remove(sys.path[0])
    sys.path.append(HERE)
    import nereid_python_stub as core
    import triton_python_backend_utils as pb_utils

    sys.path.remove(HERE)
    main()
