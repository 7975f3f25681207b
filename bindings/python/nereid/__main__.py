"""python -m nereid: the server with its command line."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the server: the executable of the package takes the place of this process."""
    program = Path(__file__).parent / "bin" / "nereid"
    os.execv(program, ["nereid", *sys.argv[1:]])


if __name__ == "__main__":
    main()
