"""The digits network as OpenVINO IR (model.xml and model.bin), written without OpenVINO being installed."""

from pathlib import Path

import numpy as np

# The batch size is dynamic, and the layout says which dimension is the batch, so the server can complete the configuration by itself.
LAYOUT = '<rt_info><attribute name="layout" version="0" layout="[N,C]"/></rt_info>'


def _port(number: int, dims: list[int], names: str = "", layout: bool = False) -> str:
    attribute = f' names="{names}"' if names else ""
    inner = "".join(f"<dim>{dim}</dim>" for dim in dims) + (LAYOUT if layout else "")
    return f'<port id="{number}" precision="FP32"{attribute}>{inner}</port>'


class _Graph:
    """The layers, in the order in which they are added. The number of a layer is its id."""

    def __init__(self) -> None:
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.dims: list[list[int]] = []
        self.ports: list[int] = []  # of the output
        self.weights = b""

    def add(self, kind: str, inputs: list[int], dims: list[int], data: str = "", names: str = "", layout: bool = False) -> int:
        number, port = len(self.layers), len(inputs)
        text = f'<layer id="{number}" name="{names or kind + str(number)}" type="{kind}" version="opset1">'
        if data:
            text += f"<data {data}/>"
        if inputs:
            given = (_port(at, self.dims[source]) for at, source in enumerate(inputs))
            text += f"<input>{''.join(given)}</input>"
        if kind != "Result":
            text += f"<output>{_port(port, dims, names, layout)}</output>"
        self.layers.append(text + "</layer>")
        for at, source in enumerate(inputs):
            self.edges.append(
                f'<edge from-layer="{source}" from-port="{self.ports[source]}" to-layer="{number}" to-port="{at}"/>'
            )
        self.dims.append(dims)
        self.ports.append(port)
        return number

    def constant(self, array: np.ndarray) -> int:
        shape = ", ".join(str(dim) for dim in array.shape)
        offset, content = len(self.weights), array.astype("<f4").tobytes()
        self.weights += content
        return self.add(
            "Const", [], list(array.shape), f'element_type="f32" shape="{shape}" offset="{offset}" size="{len(content)}"'
        )

    def dense(self, source: int, weight: np.ndarray, bias: np.ndarray, names: str = "", layout: bool = False) -> int:
        dims = [-1, weight.shape[1]]
        product = self.add(
            "MatMul", [source, self.constant(weight)], dims, 'transpose_a="false" transpose_b="false"'
        )
        return self.add("Add", [product, self.constant(bias[None])], dims, 'auto_broadcast="numpy"', names, layout)


def write_digits(folder: Path, weights: dict[str, np.ndarray], layout: bool = True) -> None:
    """Writes FOLDER/model.xml and FOLDER/model.bin: logits = relu(image @ w0 + b0) @ w1 + b1."""
    graph = _Graph()
    image = graph.add("Parameter", [], [-1, 64], 'shape="?,64" element_type="f32"', "image", layout)
    hidden = graph.dense(image, weights["w0"], weights["b0"])
    active = graph.add("ReLU", [hidden], graph.dims[hidden])
    logits = graph.dense(active, weights["w1"], weights["b1"], "logits", layout)
    graph.add("Result", [logits], [-1, 10])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.bin").write_bytes(graph.weights)
    (folder / "model.xml").write_text(
        '<?xml version="1.0"?>\n<net name="digits" version="11">\n<layers>\n'
        + "\n".join(graph.layers) + "\n</layers>\n<edges>\n" + "\n".join(graph.edges) + "\n</edges>\n</net>\n"
    )
