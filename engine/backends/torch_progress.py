"""How far transformers is with loading: its progress bars, told to us in place of the screen."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

from engine.backends.torch_library import transformers

Item = TypeVar("Item")
Progress = Callable[[float], None]


@contextmanager
def told(progress: Progress, *ends: float) -> Iterator[None]:
    """While the context is open, bars report here: the first up to the share `ends[0]`, the next up to `ends[1]` ...

    What `progress` raises ends the loading.
    """
    from transformers import modeling_gguf_pytorch_utils as gguf

    shares = iter(zip((0.0, *ends), ends, strict=False))

    def bar(items: Collection[Item], **_: object) -> Iterator[Item]:
        begin, end = next(shares, (1.0, 1.0))
        for done, item in enumerate(items):
            progress(begin + (end - begin) * done / len(items))
            yield item

    def instead(factory: Callable[..., object], args: tuple[Collection[object]], more: dict[str, object]) -> object:
        return bar(*args) if args else factory(*args, **more)

    hooked = transformers.utils.logging.set_tqdm_hook(instead)
    direct, gguf.tqdm = gguf.tqdm, bar
    try:
        yield
    finally:
        gguf.tqdm = direct
        transformers.utils.logging.set_tqdm_hook(hooked)
